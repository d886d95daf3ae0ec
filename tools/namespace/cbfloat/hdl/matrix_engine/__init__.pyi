from hdl.matrix_engine import *
