from hdl.parameters import *
