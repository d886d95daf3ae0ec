"""Fused steps of float16 by Berkeley SoftFloat: a judge from outside, one vector after another."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import softfloatpy
from numpy.typing import NDArray
from softfloatpy import Float16, RoundingMode, TininessMode

from golden import FP16

__all__ = ["fused_steps"]

#: SoftFloat's modes and flags belong to the process.
_LOCK = threading.Lock()


def _number(code: int) -> Float16:
    return Float16.from_bytes(code.to_bytes(2, "big"))


def fused_steps(operands: Sequence[NDArray[np.uint16]]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return codes and flags of ``a * b + acc`` on arrays of float16 codes; a NaN is the contract's."""
    codes, flags = [], []
    with _LOCK:
        softfloatpy.set_rounding_mode(RoundingMode.NEAR_EVEN)
        softfloatpy.set_tininess_mode(TininessMode.AFTER_ROUNDING)
        for a, b, acc in zip(*(each.tolist() for each in operands), strict=True):
            softfloatpy.set_exception_flags(0)
            made = softfloatpy.f16_mul_add(_number(a), _number(b), _number(acc))
            codes.append(int.from_bytes(made.to_bytes(), "big"))
            flags.append(softfloatpy.get_exception_flags())
    results = np.array(codes, np.uint16)
    # SoftFloat hands payloads and signs of NaNs on.
    return np.where(FP16.is_nan(results), np.uint16(FP16.nan), results), np.array(flags, np.uint8)
