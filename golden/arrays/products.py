"""Products of code arrays (NUMERICS section 5)."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

from numpy.typing import ArrayLike, NDArray

from golden.arrays.backends import ProductBackend, serve
from golden.arrays.checks import as_codes, as_flag, same_shape
from golden.arrays.counting import as_counting
from golden.arrays.requests import ProductKeywords, Request, as_start, matmul_shape
from golden.counts import Counts
from golden.formats import FloatFormat
from golden.machine import Machine
from golden.reduction import DEFAULT_CHUNK, Reduction, reduction_of
from golden.rounding import Rounding

__all__ = ["dot", "matmul"]

Codes = NDArray[Any]


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str | None = None,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | Machine | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
    rounding: Rounding | str | None = None,
    out_rounding: Rounding | str | None = None,
    seed: int | None = None,
    call: int | None = None,
    random_bits: int | None = None,
    subnormals: str | None = None,
    return_flags: bool = False,
    counts: bool | str = False,
    backend: str | ProductBackend | None = None,
) -> Any:
    """Sum ``a[..., k] * b[..., k]`` over the last axis, in the order and formats of a precision level.

    Its hardware twins are `hdl.MultiplyAccumulate`, which gives the same bits and flags one result at a time, and
    `hdl.VectorMac`, which does so in each of its lanes.

    Parameters
    ----------
    a, b : unsigned arrays
        Codes in `operand`, of at least one axis; the last axes have one length K (0 allowed), the others broadcast.
    operand : FloatFormat or str
        Format of the factors; it may be left out where `reduction` has one.
    level : int
        Precision optimization level 0, 1 or 2.
    chunk : int or None
        Products in a chunk; None is one chunk of any length.
    reduction : Reduction or Accumulator, optional
        In place of `level` and `chunk`, which are refused beside it unless they agree. It may carry all that the other
        keywords say; a keyword that is given takes the place of that part. An accumulator of another machine, one of
        `golden.accumulators`, takes operands of its width, rounds in its own way and has no flags.
    initial : unsigned array or int, optional
        Codes in the outer format from which the total starts, +0 unless given; it broadcasts to the result.
    out : FloatFormat or str, optional
        Converts the result once more; the outer format of the reduction unless given.
    rounding : Rounding or str
        Mode of every step and promotion (NUMERICS section 9), to nearest even unless given.
    out_rounding : Rounding or str
        Mode of the conversion into `out`, likewise.
    seed, call : int
        Where a mode is ``stochastic``: the key of its random bits, 0 to 2**64 - 1, and a number that tells calls apart,
        0 to 2**32 - 1. The bits of a rounding are those of its place (NUMERICS section 10), so that a call repeats.
    random_bits : int
        How many bits such a rounding has, 1 to 32.
    subnormals : str
        ``"keep"``, unless given, or ``"flush"``: subnormal operands, initial values and results become zeros of their
        sign (NUMERICS section 12).
    return_flags : bool
        Also return a uint8 array: the OR of the flags of all steps, promotions and the conversion.
    counts : bool or "sum"
        Also return how often each event occurred in the steps (NUMERICS section 11): True for each result, ``"sum"``
        for all together.
    backend : str or ProductBackend, optional
        What computes it, one of `golden.backends()`; the fastest that serves it unless given. All give the same bits.

    Returns
    -------
    codes : unsigned array
        In `out` or the outer format; shape of the operands without the last axis.
    flags : uint8 array
        Only if `return_flags`.
    counts : Counts
        Only if `counts`: int64 arrays of the result's shape, or ints.

    Raises
    ------
    TypeError
        If codes are not unsigned, or another argument has the wrong type.
    ValueError
        If shapes do not fit, a code is wider than its format, another argument is out of range or names nothing, or
        `backend` does not serve this product.
    """
    whole = reduction_of(
        operand=operand, level=level, chunk=chunk, reduction=reduction, out=out, rounding=rounding,
        out_rounding=out_rounding, seed=seed, call=call, random_bits=random_bits, subnormals=subnormals,
    )  # fmt: skip
    x, y = as_codes(a, whole.factors, "a"), as_codes(b, whole.factors, "b")
    for argument, codes in (("a", x), ("b", y)):
        if codes.ndim == 0:
            raise ValueError(f"{argument}: got a scalar, must have at least one axis to reduce")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"a, b: got {x.shape[-1]} and {y.shape[-1]} products on the last axis, must be equal")
    shape = same_shape("a, b", x.shape[:-1], y.shape[:-1])
    start, flags, counting = as_start(initial, whole, shape), as_flag(return_flags, "return_flags"), as_counting(counts)
    request = Request(whole, x, y, start, shape, is_dot=True, flags=flags, counting=counting)
    answer = serve(request.checked(), backend)
    found: list[Any] = [each[()] for each in (answer.result, answer.flags) if each is not None]
    if answer.counts is not None:
        found.append(answer.counts)
    return tuple(found) if len(found) > 1 else found[0]


@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    counts: Literal[False] = ...,
    counted_rows: None = ...,
    **options: Unpack[ProductKeywords],
) -> Codes: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    counts: Literal[True, "rows", "sum"],
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ProductKeywords],
) -> tuple[Codes, Counts]: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    counts: bool | str,
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ProductKeywords],
) -> Codes | tuple[Codes, Counts]: ...
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str | None = None,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | Machine | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
    rounding: Rounding | str | None = None,
    out_rounding: Rounding | str | None = None,
    seed: int | None = None,
    call: int | None = None,
    random_bits: int | None = None,
    subnormals: str | None = None,
    counts: bool | str = False,
    counted_rows: int | slice | ArrayLike | None = None,
    backend: str | ProductBackend | None = None,
) -> Codes | tuple[Codes, Counts]:
    """Matrix product ``(..., M, K) @ (..., K, N)`` of codes; every element is a `dot`, with its parameters and errors.

    Parameters
    ----------
    counts : bool, "rows" or "sum"
        Also return how often each event occurred in the steps (NUMERICS section 11): True for each result, ``"rows"``
        for each row of `a`, ``"sum"`` for all together. The codes are the same with and without.
    counted_rows : int, slice or array of ints, optional
        Which rows of `a` are counted, the same ones of every matrix of a batch; all unless given. An int n is n rows,
        evenly spread: row i * M // n for i from 0 to n - 1. The others cost what they cost without `counts`.

    Returns
    -------
    codes : unsigned array of shape (..., M, N)
        In `out` or the outer format.
    counts : Counts
        Only if `counts`: int64 arrays of shape (..., M, N) or (..., M), with `counted_rows` in place of M, or ints.
    """
    whole = reduction_of(
        operand=operand, level=level, chunk=chunk, reduction=reduction, out=out, rounding=rounding,
        out_rounding=out_rounding, seed=seed, call=call, random_bits=random_bits, subnormals=subnormals,
    )  # fmt: skip
    x, y = as_codes(a, whole.factors, "a"), as_codes(b, whole.factors, "b")
    shape = matmul_shape(x, y)
    start, counting = as_start(initial, whole, shape), as_counting(counts, counted_rows, shape[-2])
    answer = serve(Request(whole, x, y, start, shape, counting=counting).checked(), backend)
    return answer.result if answer.counts is None else (answer.result, answer.counts)
