from golden.torch.utils.data import *
