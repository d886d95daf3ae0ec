from hdl.vector.group import *
