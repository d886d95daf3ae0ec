from hdl import *
