from golden.torch.backend import *
