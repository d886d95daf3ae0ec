from hdl.mac.operands import *
