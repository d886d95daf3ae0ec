from golden.torch.utils import *
