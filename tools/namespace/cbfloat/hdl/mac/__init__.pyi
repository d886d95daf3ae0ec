from hdl.mac import *
