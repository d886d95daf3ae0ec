"""Floating-point hardware in Amaranth: format converters and multiply-accumulate units with precision levels.

Streams are named ``i`` and ``o`` (`amaranth.lib.stream`). `golden` defines the results of the units; the two share the
parameters of formats and reductions and nothing else.
"""

import hdl.origin  # noqa: F401  # first: it refuses another golden
from hdl.converter import FloatConverter
from hdl.float_shape import FloatShape, FloatView
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.mac.ports import Error
from hdl.matrix.matrix_mac import MatrixMac
from hdl.matrix_engine.matrix_engine import MatrixEngine
from hdl.mx.quantizer import MxQuantizer
from hdl.philox import Philox4x32
from hdl.vector.vector_mac import VectorMac

#: Distinguishes this package from others of the same name.
__distribution__ = "cbfloat"

__all__ = [
    "Error",
    "FloatConverter",
    "FloatShape",
    "FloatView",
    "MatrixEngine",
    "MatrixMac",
    "MultiplyAccumulate",
    "MxQuantizer",
    "Philox4x32",
    "VectorMac",
]
