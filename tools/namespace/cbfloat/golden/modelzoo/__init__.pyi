from golden.modelzoo import *
