"""One fused step on code arrays (NUMERICS section 4)."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.chain import Chain
from golden.arrays.checks import as_codes, as_flag, as_format, code_dtype, same_shape
from golden.arrays.choices import as_choice
from golden.arrays.operands import carried_codes
from golden.arrays.rounding import Flags, codes_to_float64, float64_to_codes
from golden.formats import FloatFormat
from golden.kernels import products as kernels
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding

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
    rounding: Rounding | str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
    subnormals: str = ...,
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
    rounding: Rounding | str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
    subnormals: str = ...,
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
    rounding: Rounding | str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
    subnormals: str = ...,
    return_flags: bool,
) -> Codes | tuple[Codes, Flags]: ...
def multiply_accumulate(
    a: ArrayLike,
    b: ArrayLike,
    acc: ArrayLike,
    *,
    operand: FloatFormat | str,
    accumulator: FloatFormat | str,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    random: ArrayLike | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
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
    rounding : Rounding or str
        The mode (NUMERICS section 9), to nearest even unless given.
    random : unsigned array or Python ints, optional
        The random bits of each step, 0 to ``2**random_bits - 1``; it broadcasts to the others. The mode
        ``stochastic`` needs it, no other takes it.
    random_bits : int
        How many bits `random` has, 1 to 32.
    subnormals : str
        ``"keep"``, or ``"flush"``: subnormal operands and results become zeros of their sign (NUMERICS section 12).
    return_flags : bool
        Also return a uint8 array of `Flag` bits.

    Raises
    ------
    TypeError
        If an argument is not unsigned codes, or `random` not unsigned where it is needed.
    ValueError
        If a code is wider than its format, `random` wider than its bits, the shapes do not broadcast, or a name names
        nothing.
    """
    operand, accumulator = as_format(operand, "operand"), as_format(accumulator, "accumulator", with_infinity=True)
    given = as_codes(a, operand, "a"), as_codes(b, operand, "b"), as_codes(acc, accumulator, "acc")
    shape = same_shape("a, b, acc", *(codes.shape for codes in given))
    choice = as_choice(rounding, "special", random, random_bits, "a, b, acc", shape, subnormals)
    computes_more = as_flag(return_flags, "return_flags") or choice.flushes or not accumulator.subnormals
    if not computes_more and choice.random is None:
        served = np.empty(shape, code_dtype(accumulator))
        call = kernels.call_of_chain(operand, accumulator, choice.rounding)
        if kernels.multiply_accumulate(*carried_codes(operand, given[0], given[1]), given[2], served, call):
            return served[()]
    chain = Chain(shape, return_flags)
    with np.errstate(all="ignore"):
        x, y = (codes_to_float64(each, operand, flushes=choice.flushes) for each in given[:2])
        z = codes_to_float64(given[2], accumulator, flushes=choice.flushes)
        signalling = operand.is_signalling(given[0]) | operand.is_signalling(given[1])
        signalling = signalling | accumulator.is_signalling(given[2])
        result = chain.step(x, y, z, accumulator, choice, signalling=signalling)
    codes = float64_to_codes(np.broadcast_to(result, shape), accumulator)[()]
    return (codes, chain.flags[()]) if return_flags else codes
