from hdl.mac.bank import *
