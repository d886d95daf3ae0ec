"""One fused step on code arrays (NUMERICS section 4)."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.chain import Chain
from golden.arrays.checks import as_codes, as_flag, as_format, code_dtype, same_shape
from golden.arrays.operands import carried_codes, carrier
from golden.arrays.rounding import Flags, codes_to_float64, float64_to_codes
from golden.formats import FloatFormat
from golden.kernels import products as kernels

__all__ = ["multiply_accumulate"]

Codes = NDArray[Any]


@overload
def multiply_accumulate(
    a: ArrayLike,
    b: ArrayLike,
    acc: ArrayLike,
    *,
    operand: FloatFormat | str,
    accumulator: FloatFormat | str,
    return_flags: Literal[False] = ...,
) -> Codes: ...
@overload
def multiply_accumulate(
    a: ArrayLike,
    b: ArrayLike,
    acc: ArrayLike,
    *,
    operand: FloatFormat | str,
    accumulator: FloatFormat | str,
    return_flags: Literal[True],
) -> tuple[Codes, Flags]: ...
@overload
def multiply_accumulate(
    a: ArrayLike,
    b: ArrayLike,
    acc: ArrayLike,
    *,
    operand: FloatFormat | str,
    accumulator: FloatFormat | str,
    return_flags: bool,
) -> Codes | tuple[Codes, Flags]: ...
def multiply_accumulate(
    a: ArrayLike,
    b: ArrayLike,
    acc: ArrayLike,
    *,
    operand: FloatFormat | str,
    accumulator: FloatFormat | str,
    return_flags: bool = False,
) -> Codes | tuple[Codes, Flags]:
    """One fused step ``round(a * b + acc)``, one rounding, elementwise.

    Parameters
    ----------
    a, b : unsigned arrays or Python ints
        Codes in `operand`; the three arguments broadcast.
    acc : unsigned array or Python int
        Codes in `accumulator`, which is also the format of the result.
    operand, accumulator : FloatFormat or str
    return_flags : bool
        Also return a uint8 array of `Flag` bits.

    Raises
    ------
    TypeError
        If an argument is not unsigned codes.
    ValueError
        If a code is wider than its format, the shapes do not broadcast, or a name names no format.
    """
    operand, accumulator = as_format(operand, "operand"), as_format(accumulator, "accumulator", with_infinity=True)
    given = as_codes(a, operand, "a"), as_codes(b, operand, "b"), as_codes(acc, accumulator, "acc")
    shape = same_shape("a, b, acc", *(codes.shape for codes in given))
    if not as_flag(return_flags, "return_flags"):
        served = np.empty(shape, code_dtype(accumulator))
        formats = kernels.Formats(carrier(operand), accumulator, None, accumulator, accumulator, is_step=True)
        if kernels.multiply_accumulate(*carried_codes(operand, *given[:2]), given[2], served, formats):
            return served[()]
    chain = Chain(shape, return_flags)
    with np.errstate(all="ignore"):
        x, y = codes_to_float64(given[0], operand), codes_to_float64(given[1], operand)
        result = chain.step(x, y, codes_to_float64(given[2], accumulator), accumulator)
    for codes, fmt in zip(given, (operand, operand, accumulator), strict=True):
        chain.note_signalling(fmt.is_signalling(codes))
    codes = float64_to_codes(np.broadcast_to(result, shape), accumulator)[()]
    return (codes, chain.flags[()]) if return_flags else codes
