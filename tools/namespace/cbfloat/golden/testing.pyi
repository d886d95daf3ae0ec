from golden.testing import *
