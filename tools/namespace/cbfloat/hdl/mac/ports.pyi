from hdl.mac.ports import *
