from hdl.fusesoc import *
