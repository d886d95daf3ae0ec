"""Operands as the compiled kernels take them: narrow formats, and those that are not IEEE 754's, in a wider format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import convert, quantize
from golden.formats import FloatFormat
from golden.kernels.products import Indexed, carrier

__all__ = ["carried_codes", "carried_indexed", "carried_values"]

Codes = NDArray[Any]


def carried_codes(operand: FloatFormat, a: Codes, b: Codes) -> tuple[Codes, Codes]:
    """Return the codes of both operands as codes of their carrier."""
    wider = carrier(operand)
    if wider is operand:
        return a, b
    return np.asarray(convert(a, operand, wider)), np.asarray(convert(b, operand, wider))


def carried_values(
    operand: FloatFormat, a: NDArray[np.float32], b: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the values of both operands, rounded to their format unless the kernels do that."""
    if carrier(operand) is operand:
        return a, b
    return np.asarray(quantize(a, operand)), np.asarray(quantize(b, operand))


def carried_indexed(operand: FloatFormat, a: Indexed, b: Indexed) -> tuple[Indexed, Indexed]:
    """Do as `carried_values` for operands by tables."""
    x, y = carried_values(operand, a.data, b.data)
    return a._replace(data=x), b._replace(data=y)
