from hdl.vector.places import *
