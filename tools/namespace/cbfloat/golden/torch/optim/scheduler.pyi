from golden.torch.optim.scheduler import *
