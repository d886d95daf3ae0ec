from hdl.vector.waiting import *
