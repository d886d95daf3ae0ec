from hdl.vector.arrangement import *
