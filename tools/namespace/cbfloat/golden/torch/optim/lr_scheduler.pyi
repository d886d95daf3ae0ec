from golden.torch.optim.lr_scheduler import *
