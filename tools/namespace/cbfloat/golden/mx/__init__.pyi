from golden.mx import *
