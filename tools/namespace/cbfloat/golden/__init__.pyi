from golden import *
