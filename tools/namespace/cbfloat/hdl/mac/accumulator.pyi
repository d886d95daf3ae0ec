from hdl.mac.accumulator import *
