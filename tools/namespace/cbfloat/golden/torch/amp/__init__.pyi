from golden.torch.amp import *
