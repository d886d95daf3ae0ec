from hdl.mac.counters import *
