from hdl.catalogue import *
