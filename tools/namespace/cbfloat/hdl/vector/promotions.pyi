from hdl.vector.promotions import *
