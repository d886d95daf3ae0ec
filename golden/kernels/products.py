"""Calls of the compiled library for products."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.formats import BF16, FP16, FP32, FloatFormat
from golden.kernels.counting import CountSink
from golden.kernels.library import active, address, format_number
from golden.reduction import Reduction
from golden.rounding import Randomness, Rounding

__all__ = [
    "Call",
    "Indexed",
    "batch_offsets",
    "call_of",
    "call_of_chain",
    "carrier",
    "dot",
    "flushes",
    "matmul",
    "matmul_indexed",
    "most_results",
    "multiply_accumulate",
    "strided",
]

Matrix = NDArray[Any]

# struct cbfloat_product of kernels.h: 13 numbers, three matrices of 4 each, the result; struct cbfloat_tables.
_PRODUCT, _TABLES = struct.Struct("26q"), struct.Struct("2q")
_MATMUL, _DOT = 0, 1
_NO_CHUNKS = -1
_B_IS_ROUNDED, _FLUSHED = 32, 64  # of enum cbfloat_contents
_ROUNDING = struct.Struct("2qQ2q")  # struct cbfloat_rounding
# Of a sum's fraction and a random word beside it, which a double holds; of results, which 32 bits number.
_MOST_BITS, _MOST_RESULTS, _UNLIMITED = 51, 2**32, 2**63


class Indexed(NamedTuple):
    """An operand by tables: element (i, j) of matrix t is ``data[batches[t] + rows[i] + columns[j]]``.

    `data` is a contiguous vector, the tables are contiguous vectors of int64.
    """

    data: NDArray[Any]
    batches: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    def matrices(self) -> NDArray[Any]:
        """Return the elements gathered, (batches, rows, columns)."""
        return self.data[self.batches[:, np.newaxis, np.newaxis] + self.rows[:, np.newaxis] + self.columns]


class Call(NamedTuple):
    """A reduction as the C interface has it, and the contents of the arrays.

    Parameters
    ----------
    numbers : tuple of int
        Fields of struct cbfloat_product, from `contents` to `chunk`.
    rounding : bytes or None
        Struct cbfloat_rounding; None rounds to nearest even.
    most_results : int
        For so many results there is room for random bits.
    """

    numbers: tuple[int, ...]
    rounding: bytes | None
    most_results: int


@lru_cache(maxsize=256)
def carrier(operand: FloatFormat) -> FloatFormat:
    """Return the format in which the kernels take operands: their own, or the first wider one that holds it.

    A wider format that holds every value of the operands makes the same exact products, so that results are the same
    bits. Only a signalling NaN looks different there, which shows in flags alone.
    """
    if operand.is_ieee and operand.width > 8:
        return operand
    return next(wider for wider in (FP16, BF16, FP32) if wider.holds(operand))


@lru_cache(maxsize=1024)
def call_of(reduction: Reduction, *, as_values: bool = False, b_is_rounded: bool = False) -> Call:
    """Return the call of a reduction with an operand.

    Parameters
    ----------
    reduction : Reduction
    as_values : bool
        The arrays hold float32 values, else codes.
    b_is_rounded : bool
        The values of b are of the operand format, as `quantize` gives them.
    """
    formats = carrier(reduction.factors), reduction.inner, reduction.outer, reduction.result
    contents = as_values + _B_IS_ROUNDED * b_is_rounded + _FLUSHED * reduction.flushes
    numbers = contents, *map(format_number, formats), reduction.chunk or 0
    rounding = _rounding_of(reduction.rounding, reduction.out_rounding, reduction.random)
    return Call(numbers, rounding, most_results(reduction))


def flushes(reduction: Reduction, *, counts: bool) -> bool:
    """Return whether the kernels flush the subnormals of a reduction.

    A carrier in place of the operand's own format has other subnormals.
    """
    return reduction.is_nearest_even and not counts and carrier(reduction.factors) == reduction.factors


def _rounding_of(steps: Rounding, last: Rounding, random: Randomness | None) -> bytes | None:
    if steps is last is Rounding.NEAREST_EVEN:
        return None
    given = random or Randomness()
    return _ROUNDING.pack(steps.value, last.value, given.seed, given.call, given.random_bits)


@lru_cache(maxsize=256)
def call_of_chain(operand: FloatFormat, accumulator: FloatFormat, rounding: Rounding = Rounding.NEAREST_EVEN) -> Call:
    """Return the call of chains of steps in any format: no chunks, the total is the chain itself."""
    formats = carrier(operand), accumulator, accumulator, accumulator
    return Call(
        (0, *map(format_number, formats), _NO_CHUNKS), _rounding_of(rounding, Rounding.NEAREST_EVEN, None), _UNLIMITED
    )


def most_results(reduction: Reduction) -> int:
    """Return for how many results kernels, of the processor or of a card, have room for random bits."""
    if reduction.random is None:
        return _UNLIMITED
    rounded = (reduction.inner, reduction.outer) if reduction.rounding is Rounding.STOCHASTIC else ()
    if reduction.out_rounding is Rounding.STOCHASTIC:
        rounded = (*rounded, reduction.result)
    fits = all(fmt.fraction_bits + reduction.random.random_bits <= _MOST_BITS for fmt in rounded)
    return _MOST_RESULTS if fits else 0


def strided(array: Matrix) -> Matrix:
    """Return the array itself, or a copy if its strides are no whole numbers of aligned elements."""
    size = array.itemsize
    regular = array.dtype.isnative and array.flags.aligned
    for stride in array.strides:  # `any` would cost a small product as much as all other checks
        regular = regular and stride % size == 0
    return array if regular else np.array(array, array.dtype.newbyteorder("="), order="C")


def batch_offsets(array: Matrix, batch: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the first element of each matrix of a batch that the array broadcasts to, counted in elements."""
    leading = np.broadcast_to(array, batch + array.shape[-2:]).strides[:-2]
    offsets = np.zeros(1, np.int64)
    for length, stride in zip(batch, leading, strict=True):
        steps = np.arange(length, dtype=np.int64) * (stride // array.itemsize)
        offsets = (offsets[:, np.newaxis] + steps).ravel()
    return offsets


def _multiply(
    mode: int,
    a: Matrix,
    b: Matrix,
    initial: Matrix | None,
    result: Matrix,
    call: Call,
    sink: CountSink | None,
) -> bool:
    """Fill `result`, contiguous and of shape (..., M, N); the last two axes of `initial` broadcast, too."""
    served = active()
    if served is None or result.size > call.most_results:
        return False
    *batch, rows, columns = result.shape
    batches = prod(batch)
    given, matrices, kept = [a, b], [], []
    if initial is not None:
        given.append(np.broadcast_to(initial, result.shape))
    for array in given:
        size = array.itemsize
        offsets = 0
        if batches != 1:
            kept.append(batch_offsets(array, tuple(batch)))  # lives until the call is over
            offsets = address(kept[-1])
        matrices += [address(array), array.strides[-2] // size, array.strides[-1] // size, offsets]
    if initial is None:
        matrices += [0] * 4
    numbers = served.path, served.threads, mode, *call.numbers
    sizes = batches, rows, columns, a.shape[-2] if mode == _DOT else a.shape[-1]
    product, how = _PRODUCT.pack(*numbers, *sizes, *matrices, address(result)), call.rounding
    if sink is not None:
        failed = served.library.cbfloat_multiply_counted(product, None, None, how, sink.request())
    elif how is None:
        failed = served.library.cbfloat_multiply(product)
    else:
        failed = served.library.cbfloat_multiply_rounded(product, None, None, how)
    if failed:
        raise MemoryError(f"no memory for the product of shapes {a.shape} and {b.shape}")
    return True


def _of_two_bytes(array: Matrix | None) -> Any:
    """Return codes of 8 bits and fewer as the library has them."""
    return array.astype(np.uint16) if array is not None and array.dtype == np.uint8 else array


def _narrowed(function: Callable[..., bool], *given: Matrix | None, result: Matrix, call: Call, **options: Any) -> bool:
    """Let a function fill a result of 2 bytes instead of one of 1."""
    wide = np.empty(result.shape, np.uint16)
    served = function(*given, wide, call, **options)
    result[...] = wide
    return served


def matmul(
    a: Matrix,
    b: Matrix,
    initial: Matrix | None,
    result: Matrix,
    call: Call,
    *,
    sink: CountSink | None = None,
) -> bool:
    """Fill `result` with the products of (..., M, K) and (..., K, N), K at least 1; False if NumPy has to do it.

    Parameters
    ----------
    a, b : arrays
        Codes of the operands' format, or float32 values that are rounded to it, of any strides.
    initial : array or None
        Codes of the outer format or float32 values; it broadcasts to the result.
    result : array of shape (..., M, N), contiguous
        Codes or values of the destination.
    call : Call
        What the arrays hold, and how they are summed; `most_results` says how many results it serves.
    sink : CountSink, optional
        Of the results' shape: the steps are counted into it. Signalling NaNs do not count.
    """
    if active() is None:
        return False
    if result.dtype == np.uint8:
        return _narrowed(matmul, a, b, initial, result=result, call=call, sink=sink)
    a, b = strided(_of_two_bytes(a)), strided(_of_two_bytes(b))
    start = None if initial is None else strided(_of_two_bytes(initial))
    if b.ndim == 2 and a.ndim > 2:
        # One matrix for the whole batch: one product of all rows is quicker than many products.
        rows, columns = prod(a.shape[:-1]), result.shape[-1]
        if start is not None:
            start = np.broadcast_to(start, result.shape).reshape(rows, columns)
        a, result = a.reshape(rows, a.shape[-1]), result.reshape(rows, columns)
    return _multiply(_MATMUL, a, b, start, result, call, sink)


def matmul_indexed(a: Indexed, b: Indexed, initial: Matrix | None, result: Matrix, call: Call) -> bool:
    """Fill `result` of shape (batches, M, N), as `matmul` does; no table is empty."""
    served = active()
    if served is None or result.size > call.most_results:
        return False
    batches, rows, columns = result.shape
    matrices: list[int] = []
    for operand in (a, b):
        matrices += [address(operand.data), 0, 0, address(operand.batches)]
    if initial is None:
        matrices += [0] * 4
    else:
        start = np.broadcast_to(strided(initial), result.shape)
        offsets = batch_offsets(start, (batches,))
        size = start.itemsize
        matrices += [address(start), start.strides[-2] // size, start.strides[-1] // size, address(offsets)]
    numbers = served.path, served.threads, _MATMUL, *call.numbers, batches, rows, columns, len(a.columns)
    tables = [_TABLES.pack(address(operand.rows), address(operand.columns)) for operand in (a, b)]
    product, how = _PRODUCT.pack(*numbers, *matrices, address(result)), call.rounding
    if how is None:
        failed = served.library.cbfloat_multiply_indexed(product, *tables)
    else:
        failed = served.library.cbfloat_multiply_rounded(product, *tables, how)
    if failed:
        raise MemoryError(f"no memory for {batches} products of {rows} by {columns} results")
    return True


def dot(
    a: Matrix,
    b: Matrix,
    initial: Matrix | None,
    result: Matrix,
    call: Call,
    *,
    sink: CountSink | None = None,
) -> bool:
    """Fill `result` of shape (N,) with the dot products of the rows of two (N, K) arrays; parameters as of `matmul`."""
    if active() is None:
        return False
    if result.dtype == np.uint8:
        return _narrowed(dot, a, b, initial, result=result, call=call, sink=sink)
    start = None if initial is None else strided(_of_two_bytes(initial))
    x, y = strided(_of_two_bytes(a)), strided(_of_two_bytes(b))
    return _multiply(_DOT, x.T, y.T, start, result[np.newaxis], call, sink)


def multiply_accumulate(a: Matrix, b: Matrix, acc: Matrix, result: Matrix, call: Call) -> bool:
    """Fill `result` with one step ``round(a * b + acc)`` for each element, to whose shape the others broadcast."""
    if active() is None:
        return False
    if result.dtype == np.uint8:
        return _narrowed(multiply_accumulate, a, b, acc, result=result, call=call)
    x, y, z = (strided(np.broadcast_to(_of_two_bytes(array), result.shape).reshape(1, -1)) for array in (a, b, acc))
    return _multiply(_DOT, x, y, z, result.reshape(1, -1), call, None)
