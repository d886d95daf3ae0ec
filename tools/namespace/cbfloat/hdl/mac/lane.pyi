from hdl.mac.lane import *
