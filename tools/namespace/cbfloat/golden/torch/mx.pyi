from golden.torch.mx import *
