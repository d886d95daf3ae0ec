from hdl.mac.promotions import *
