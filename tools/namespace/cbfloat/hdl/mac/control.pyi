from hdl.mac.control import *
