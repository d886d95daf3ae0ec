from golden.torch import *
