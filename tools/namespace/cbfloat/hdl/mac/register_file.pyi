from hdl.mac.register_file import *
