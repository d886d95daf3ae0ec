from hdl.mac.hazards import *
