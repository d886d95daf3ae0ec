"""Microscaling on exact integers: the specification in code of `golden.mx`, one block or one sum at a time."""

from __future__ import annotations

from collections.abc import Sequence

from golden.exact import Class, Value, as_sequence
from golden.exact_rounding import decode, floor_log2, round_value
from golden.exact_steps import fused_step
from golden.flags import Flag
from golden.formats import FloatFormat, as_format
from golden.reduction import Reduction
from golden.reference import convert
from golden.rounding import Rounding

__all__ = ["dequantize", "dot", "quantize"]

_BIAS, _NAN = 127, 255
_ONE = Value(Class.FINITE, 0, 1)

#: The scale and the codes of a block.
Block = tuple[int, Sequence[int]]


def quantize(
    values: Sequence[Value], element: FloatFormat | str, *, rounding: Rounding | str = Rounding.NEAREST_EVEN
) -> tuple[int, list[int]]:
    """Return the scale and the codes of one block of values."""
    element = as_format(element, "element")
    if any(value.kind is not Class.FINITE for value in as_sequence(values, "values")):
        return _NAN, [0] * len(values)
    largest = max(abs(value.as_fraction()) for value in values)
    exponent = floor_log2(largest) - element.emax if largest else -_BIAS
    exponent = max(-_BIAS, min(_BIAS, exponent))
    codes = []
    for value in values:
        scaled = Value(Class.FINITE, value.sign, value.significand, value.exponent - exponent)
        codes.append(round_value(scaled, element, rounding=rounding, overflow="saturate")[0])
    return exponent + _BIAS, codes


def _scaled(value: Value, *scales: int) -> Value:
    if value.is_nan:
        return value
    if _NAN in scales:
        return Value(Class.QUIET_NAN)
    if value.kind is Class.INFINITE:
        return value
    return Value(Class.FINITE, value.sign, value.significand, value.exponent + sum(scale - _BIAS for scale in scales))


def dequantize(scale: int, codes: Sequence[int], element: FloatFormat | str) -> list[Value]:
    """Return the values of one block."""
    return [_scaled(decode(code, element), scale) for code in as_sequence(codes, "codes")]


def dot(
    a: Sequence[Block],
    b: Sequence[Block],
    *,
    element: FloatFormat,
    reduction: Reduction,
    initial: int = 0,
    out: FloatFormat | None = None,
) -> tuple[int, Flag]:
    """Sum the products of two sequences of blocks; return code and flags."""
    total, flags, outer = initial, Flag(0), reduction.outer
    for (a_scale, x), (b_scale, y) in zip(a, b, strict=True):
        chunk = len(x) if reduction.is_chain else reduction.chunk or 0
        if len(x) != len(y) or not chunk or len(x) % chunk:
            raise ValueError(f"a, b: got blocks of {len(x)} and {len(y)}, must be equal multiples of the chunk {chunk}")
        for start in range(0, len(x), chunk):
            partial = 0
            for code, other in zip(x[start : start + chunk], y[start : start + chunk], strict=True):
                left, right = decode(code, element), decode(other, element)
                if reduction.is_chain:
                    total, raised = fused_step(_scaled(left, a_scale, b_scale), right, decode(total, outer), outer)
                else:
                    partial, raised = fused_step(left, right, decode(partial, reduction.inner), reduction.inner)
                flags |= raised
            if not reduction.is_chain:
                scale = _scaled(_ONE, a_scale, b_scale)
                total, raised = fused_step(decode(partial, reduction.inner), scale, decode(total, outer), outer)
                flags |= raised
    if out is not None:
        total, raised = convert(total, outer, out)
        flags |= raised
    return total, flags
