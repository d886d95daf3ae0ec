from golden.identification import *
