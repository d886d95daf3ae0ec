"""Matrix products of float32 values (NUMERICS section 5)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.backends import ProductBackend, serve
from golden.arrays.checks import as_values
from golden.arrays.counting import as_counting
from golden.arrays.requests import ProductKeywords, Request, check_initial, matmul_shape
from golden.counts import Counts
from golden.formats import FloatFormat
from golden.kernels.products import Indexed
from golden.machine import Machine
from golden.reduction import DEFAULT_CHUNK, Reduction, ReductionKeywords, reduction_of
from golden.rounding import Rounding

__all__ = ["indexed_values", "matmul_values"]

Values = NDArray[np.float32]


@overload
def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    counts: Literal[False] = ...,
    counted_rows: None = ...,
    **options: Unpack[ProductKeywords],
) -> Values: ...
@overload
def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    counts: Literal[True, "rows", "sum"],
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ProductKeywords],
) -> tuple[Values, Counts]: ...
@overload
def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    counts: bool | str,
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ProductKeywords],
) -> Values | tuple[Values, Counts]: ...
def matmul_values(
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
) -> Values | tuple[Values, Counts]:
    """Matrix product ``(..., M, K) @ (..., K, N)`` of float32 values: `quantize`, `matmul` and `decode` in one call.

    Parameters
    ----------
    a, b : float32 arrays of at least two axes, of any strides
        Every value is rounded once to `operand`.
    operand : FloatFormat or str
    level, chunk, reduction
        As of `dot`.
    initial : float32 array, optional
        Values, rounded once to the outer format, from which the totals start; it broadcasts to the result.
    out : FloatFormat or str, optional
        Rounds the result once more; the outer format of the reduction unless given.
    rounding, out_rounding, seed, call, random_bits, subnormals, backend
        As of `dot`; operands and initial values are rounded to nearest even. With ``subnormals="flush"``, those
        that are subnormal after it count as zeros.
    counts, counted_rows
        As of `matmul`; the rounding of the operands is counted nowhere.

    Returns
    -------
    values : float32 array of shape (..., M, N)
        Values of `out` or the outer format; the canonical NaN for every NaN.
    counts : Counts
        Only if `counts`, as of `matmul`.

    Raises
    ------
    TypeError
        If values are not float32 (or float16), or another argument has the wrong type.
    ValueError
        If shapes do not fit, or another argument is out of range or names nothing.
    """
    whole = reduction_of(
        operand=operand, level=level, chunk=chunk, reduction=reduction, out=out, rounding=rounding,
        out_rounding=out_rounding, seed=seed, call=call, random_bits=random_bits, subnormals=subnormals,
    )  # fmt: skip
    x, y = as_values(a, "a"), as_values(b, "b")
    shape = matmul_shape(x, y)
    start = None if initial is None else as_values(initial, "initial")
    if start is not None:
        check_initial(start, shape)
    counting = as_counting(counts, counted_rows, shape[-2])
    whole = whole if whole.out else _into(whole, whole.outer)
    request = Request(whole, x, y, start, shape, as_values=True, counting=counting)
    answer = serve(request.checked(), backend)
    return answer.result if answer.counts is None else (answer.result, answer.counts)


@lru_cache(maxsize=1024)
def _into(reduction: Reduction, fmt: FloatFormat) -> Reduction:
    """Return a reduction that names the format of its result, in which values have the canonical NaN."""
    return replace(reduction, out=fmt)


def indexed_values(
    a: Indexed, b: Indexed, *, initial: Values | None = None, **keywords: Unpack[ReductionKeywords]
) -> Values:
    """Multiply matrices by tables, such as the windows of a convolution, as `matmul_values` does others.

    Parameters
    ----------
    a, b : Indexed
        float32 values, rounded to the operand format.
    initial : float32 array, optional
        It broadcasts to the result.
    keywords
        As of `golden.dot`, but that the result is in `operand` unless `out` is given.

    Returns
    -------
    float32 array of shape (batches, M, N)
    """
    shape = len(a.batches), len(a.rows), len(b.columns)
    whole = reduction_of(**keywords)
    whole = whole if whole.out else _into(whole, whole.factors)
    request = Request(whole, a, b, initial, shape, as_values=True)
    return serve(request.checked()).result
