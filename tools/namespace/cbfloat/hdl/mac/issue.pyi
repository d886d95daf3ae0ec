from hdl.mac.issue import *
