from hdl.axi_lite import *
