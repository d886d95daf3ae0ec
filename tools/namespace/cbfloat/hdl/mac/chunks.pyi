from hdl.mac.chunks import *
