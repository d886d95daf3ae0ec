from hdl.verilog import *
