from hdl.vector import *
