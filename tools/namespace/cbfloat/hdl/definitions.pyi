from hdl.definitions import *
