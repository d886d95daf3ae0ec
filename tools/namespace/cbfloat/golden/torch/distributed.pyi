from golden.torch.distributed import *
