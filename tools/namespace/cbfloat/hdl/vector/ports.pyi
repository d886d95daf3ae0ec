from hdl.vector.ports import *
