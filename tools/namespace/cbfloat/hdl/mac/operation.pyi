from hdl.mac.operation import *
