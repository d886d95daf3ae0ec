"""Failure lines: codes in hex and as values, distances in ulp, flags by name."""

from __future__ import annotations

import numpy as np

from golden import Flag, FloatFormat, Rounding, decode
from golden.arrays.checks import code_dtype

__all__ = ["distance_in_ulp", "flag_names", "mode_name", "show"]

_MODES = {mode.value: str(mode) for mode in Rounding}


def show(code: int, fmt: FloatFormat) -> str:
    """Return a code in hex and its value."""
    digits = -(-fmt.width // 4)
    if code >> fmt.width:  # what a broken unit may answer
        return f"{code:#x} (no code of {fmt})"
    value = float(decode(np.array(code, code_dtype(fmt)), fmt))
    return f"0x{code:0{digits}x} ({value!r})"


def distance_in_ulp(expected: int, actual: int, fmt: FloatFormat) -> str:
    """Return the distance of two codes in representable values, or the reason why there is none."""
    ordinals = []
    for code in (expected, actual):
        if fmt.is_nan(code):
            return "one is NaN" if expected != actual else "0 ulp"
        magnitude = code & (fmt.sign_mask - 1)
        ordinals.append(-magnitude if code & fmt.sign_mask else magnitude)
    if ordinals == [0, 0] and expected != actual:
        return "0 ulp, but the sign of zero"
    return f"{ordinals[1] - ordinals[0]:+d} ulp"


def mode_name(code: int) -> str:
    """Return the name of a rounding mode; a refused payload may have an invalid code."""
    return _MODES.get(code, f"mode {code}")


def flag_names(flags: int) -> str:
    """Return the names of flags, such as ``inexact|overflow``, or ``none``."""
    names = [flag.name.lower() for flag in Flag if flags & flag and flag.name]
    if flags & 8:
        names.append("divide_by_zero")
    return "|".join(names) or "none"
