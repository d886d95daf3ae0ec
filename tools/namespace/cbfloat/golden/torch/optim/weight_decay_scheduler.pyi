from golden.torch.optim.weight_decay_scheduler import *
