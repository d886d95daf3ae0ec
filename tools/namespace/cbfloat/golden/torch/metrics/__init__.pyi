from golden.torch.metrics import *
