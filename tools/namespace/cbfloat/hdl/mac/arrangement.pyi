from hdl.mac.arrangement import *
