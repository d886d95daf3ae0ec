from golden.reference import *
