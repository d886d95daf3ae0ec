from hdl.axi_stream import *
