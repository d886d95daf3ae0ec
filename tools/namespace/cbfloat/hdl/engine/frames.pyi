from hdl.engine.frames import *
