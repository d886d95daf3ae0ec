from hdl.mac.flags import *
