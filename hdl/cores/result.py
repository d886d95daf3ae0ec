"""A result: a code and the accumulated flags."""

from __future__ import annotations

from amaranth import Cat, Const, Mux, Value
from amaranth.lib import data

from golden.formats import FloatFormat
from golden.rounding import Rounding
from hdl.cores.rounding import too_large

__all__ = ["FLAG_BITS", "flags_layout", "pack", "result_layout"]

#: Width of the flags of a result, in the bit order of RISC-V ``fflags``.
FLAG_BITS = 5


def flags_layout() -> data.StructLayout:
    """Return the layout of the flags, in the bit order of `golden.Flag`; divide by zero is always 0."""
    return data.StructLayout({"inexact": 1, "underflow": 1, "overflow": 1, "divide_by_zero": 1, "invalid": 1})


def result_layout(width: int) -> data.StructLayout:
    """Return the layout of a code of `width` bits and its flags."""
    return data.StructLayout({"bits": width, "flags": flags_layout()})


def pack(fmt: FloatFormat, *, sign: Value, magnitude: Value, is_infinite: Value, is_nan: Value) -> Value:
    """Return a code: the canonical NaN overrides infinity, which overrides ``[sign | exponent field and fraction]``.

    Results that are too large count as infinite, as they do when rounded to nearest.
    """
    code = Cat(Mux(is_infinite, too_large(fmt, Rounding.NEAREST_EVEN, sign), magnitude)[: fmt.width - 1], sign)
    return Mux(is_nan, Const(fmt.nan, fmt.width), code)
