from hdl.vector.results import *
