from hdl.engine import *
