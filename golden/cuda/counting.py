"""Products that count what their steps do, and histograms of exponents, on a card: the launches of their kernels."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_void_p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.counts import NO_EXPONENT, Counts, Events
from golden.cuda.axes import merged
from golden.cuda.plan import COMMON, THREADS, Arrays, Launch, source_fields
from golden.cuda.scales import Steps
from golden.cuda.structures import Product, SourceFields, TargetFields, target
from golden.flags import EVENTS
from golden.formats import FP32, FloatFormat
from golden.reduction import Reduction
from golden.rounding import Randomness

__all__ = [
    "NUMBERS",
    "SLOTS",
    "CountedProduct",
    "Exponents",
    "Wanted",
    "counted_launch",
    "counts_of",
    "exponents_launch",
]

#: Numbers of a result: events of products, events of promotions, bits of the largest finite magnitude as a float.
NUMBERS = 2 * len(EVENTS) + 1

#: Numbers of a histogram: of the exponent fields of finite float32 but for zeros, of zeros, of infinities, of NaNs.
SLOTS = 258

_HISTOGRAM_VALUES = 16384  # of a block: a constant of exponents.h


class CountedProduct(ctypes.Structure):
    """The argument of `multiply_counted`."""

    _fields_ = [
        ("product", Product),
        ("a", SourceFields),
        ("b", SourceFields),
        ("operand", TargetFields),
        ("joins", c_int32),
        ("computed", c_int64),
        ("rows", c_void_p),
        ("only_if", c_void_p),
        ("numbers", c_void_p),
        ("places", c_int64),
        ("matrix_place", c_int64),
        ("row_place", c_int64),
        ("column_place", c_int64),
        ("reference", c_void_p),
    ]


class Exponents(ctypes.Structure):
    """The argument of `count_exponents`."""

    _fields_ = [
        ("values", c_void_p),
        ("count", c_int64),
        ("slots", c_void_p),
        ("memory", c_int32),
        ("padding", c_int32),
    ]


class Wanted(NamedTuple):
    """The outputs that a counting launch fills, by addresses on the card.

    Parameters
    ----------
    numbers : int
        Address of `NUMBERS` arrays of int64 of the form's shape; the launch adds its counts to them.
    form : True, "rows" or "sum"
        Arrays of numbers for each result, (..., computed, N), for each row, (..., computed), or of one number.
    rows : int
        Address of an int64 table of the rows that are computed and counted, `computed` of them; 0: all are.
    reference : int
        Address of a float32 array (..., computed, N) for products of the same values in fp32: a chain of fused steps,
        and then the initial value; 0: not wanted.
    only_if : int
        Address of an int64 on the card: if that holds 0, the launch does nothing. 0: it always runs.
    """

    numbers: int
    form: bool | str = "sum"
    rows: int = 0
    computed: int | None = None
    reference: int = 0
    only_if: int = 0


def counted_launch(
    reduction: Reduction,
    arrays: Arrays,
    wanted: Wanted,
    *,
    initial_format: FloatFormat | None = None,
    first_index: int = 0,
) -> Launch | None:
    """Return the launch that multiplies and counts; None if there are no results.

    Parameters
    ----------
    reduction, arrays, initial_format, first_index
        As of `golden.cuda.plan.plan_product`; operands are rounded to their format as they are read.
    wanted : Wanted

    Raises
    ------
    ValueError
        If the strides along the batch need more axes than the kernels know.
    """
    batch, (m, k, n), a, b, result, initial = arrays
    form, computed = wanted.form, wanted.computed
    given = [a, b, result] if initial is None else [a, b, result, initial]
    axes, strides = merged(batch, [each.axes for each in given])
    a, b, result, *rest = (each._replace(axes=along) for each, along in zip(given, strides, strict=True))
    count = m if computed is None else computed
    if not (axes.count and count and n):
        return None
    random = reduction.random or Randomness()
    chunk = k if reduction.chunk is None else min(reduction.chunk, k)
    product = Product(
        lengths=axes.padded(axes.lengths, 1),
        m=m, n=n, k=k, chunk=max(1, chunk),
        initial=source_fields(rest[0]) if rest else SourceFields(),
        result=result.address,
        result_row=result.row_stride,
        result_column=result.column_stride,
        result_axes=axes.padded(result.axes, 0),
        result_memory=result.memory,
        initial_target=target(initial_format or FP32),
        inner=target(reduction.inner),
        outer=target(reduction.outer),
        destination=target(reduction.result),
        mode=reduction.rounding.value,
        last_mode=reduction.out_rounding.value,
        key=(random.seed & 0xFFFFFFFF, random.seed >> 32),
        call=random.call,
        random_bits=random.random_bits,
        first_index=first_index & 0xFFFFFFFF,
        batch_index=m * n & 0xFFFFFFFF,
        row_index=n & 0xFFFFFFFF,
    )  # fmt: skip
    steps = {True: (count * n, n, 1), "rows": (count, 1, 0), "sum": (0, 0, 0)}[form]
    places = {True: count * n, "rows": count, "sum": 1}[form] * (1 if form == "sum" else axes.count)
    fields = CountedProduct(
        product, source_fields(a), source_fields(b), target(reduction.factors), not reduction.is_chain, count,
        wanted.rows or None, wanted.only_if or None, wanted.numbers, places, *steps, wanted.reference or None,
    )  # fmt: skip
    blocks = -(-axes.count * count * n // THREADS)
    return Launch(Steps(reduction.rounding, "counted", "none"), "multiply_counted", blocks, bytes(fields))


def counts_of(numbers: NDArray[np.int64], products: int, promotions: int) -> Counts:
    """Return the counts that numbers of a card stand for.

    Parameters
    ----------
    numbers : int64 array of shape (NUMBERS, ...)
    products, promotions : int
        Steps of which each number tells.
    """
    largest = numbers[-1].astype(np.uint32).view(np.float32)
    exponents = np.where(largest > 0, np.frexp(largest.astype(np.float64))[1] - 1, NO_EXPONENT).astype(np.int64)
    kinds = [
        Events(np.full(largest.shape, steps, np.int64), *numbers[first : first + len(EVENTS)])
        for first, steps in ((0, products), (len(EVENTS), promotions))
    ]
    counts = Counts(kinds[0], kinds[1], exponents)
    return counts if largest.ndim else counts.sum()


def exponents_launch(values: int, count: int, memory: int, slots: int) -> Launch:
    """Return the launch that adds the exponents of contiguous values to a histogram.

    Parameters
    ----------
    values : int
        Address on the card.
    count : int
        At least 1.
    memory : int
        `golden.cuda.plan.FLOAT32`, `FLOAT16` or `BFLOAT16`.
    slots : int
        Address of `SLOTS` numbers of int64.
    """
    fields = Exponents(values, count, slots, memory)
    return Launch(COMMON, "count_exponents", -(-count // _HISTOGRAM_VALUES), bytes(fields))
