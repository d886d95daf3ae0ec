from golden.torch.optim import *
