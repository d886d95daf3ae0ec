from hdl.mac.results import *
