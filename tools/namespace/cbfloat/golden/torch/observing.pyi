from golden.torch.observing import *
