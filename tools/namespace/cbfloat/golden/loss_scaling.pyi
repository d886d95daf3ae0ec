from golden.loss_scaling import *
