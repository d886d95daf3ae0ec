from golden.torch.utils.tensorboard import *
