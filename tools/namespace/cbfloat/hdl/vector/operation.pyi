from hdl.vector.operation import *
