"""Operands as the compiled kernels take them: narrow formats, and those that are not IEEE 754's, in a wider format.

A wider format that holds every value of the operands makes the same exact products, so that the results are the same
bits. Only a signalling NaN looks different there, which no result shows and flags are not computed by the kernels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import convert, quantize
from golden.formats import BF16, FP16, FP32, FloatFormat
from golden.kernels.products import Indexed

__all__ = ["carried_codes", "carried_indexed", "carried_values", "carrier"]


@lru_cache(maxsize=256)
def carrier(operand: FloatFormat) -> FloatFormat:
    """Return the format in which the kernels take operands: their own, or the first wider one that holds it."""
    if operand.has_inf and operand.width > 8:
        return operand
    return next(wider for wider in (FP16, BF16, FP32) if wider.holds(operand))


def carried_codes(operand: FloatFormat, *given: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return codes of operands as codes of their carrier."""
    wider = carrier(operand)
    return given if wider is operand else tuple(np.asarray(convert(codes, operand, wider)) for codes in given)


def carried_values(operand: FloatFormat, *given: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
    """Return values rounded to the operands' format, unless the kernels do that."""
    if carrier(operand) is operand:
        return given
    return tuple(np.asarray(quantize(values, operand)) for values in given)


def carried_indexed(operand: FloatFormat, *given: Indexed) -> tuple[Indexed, ...]:
    """Do as `carried_values` for operands by tables."""
    if carrier(operand) is operand:
        return given
    return tuple(each._replace(data=np.asarray(quantize(each.data, operand))) for each in given)
