from golden.formats import *
