from golden.kernels import *
