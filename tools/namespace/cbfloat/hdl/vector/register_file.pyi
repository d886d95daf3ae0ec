from hdl.vector.register_file import *
