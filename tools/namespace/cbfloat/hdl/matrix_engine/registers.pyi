from hdl.matrix_engine.registers import *
