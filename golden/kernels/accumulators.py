"""Calls of the compiled library for the accumulators of other machines; each returns False if NumPy has to do it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator, FusedSum
from golden.formats import FP32, FloatFormat
from golden.kernels.library import active, address
from golden.kernels.products import batch_offsets, strided
from golden.machine import Machine

__all__ = ["dot", "matmul", "serves"]

Matrix = NDArray[np.float32]

# struct cbfloat_accumulation of kernels.h: 7 numbers, two matrices of 4, the result; struct cbfloat_accumulator.
_CALL, _MOST_STAGES = struct.Struct("102q"), 8
_SUM = 8  # fields of a sum
_MATMUL, _DOT = 0, 1
_FLUSHES = {"none": 0, "signed": 1, "positive": 2}
_NO_EXPONENT = -(1 << 20)
_FEW_COLUMNS = 16  # with fewer, and more rows, the operands are exchanged: lanes run along the columns


def _or(number: int | None, otherwise: int) -> int:
    return otherwise if number is None else number


def _sum(spec: FusedSum) -> tuple[int, ...]:
    rounding = -1 if spec.rounding is None else spec.rounding.value
    bits = _or(spec.fraction_bits, -1)
    result = spec.result.fraction_bits, spec.result.emin
    return spec.terms, bits, spec.cut.value, rounding, *result, spec.chain, spec.interleaved


@lru_cache(maxsize=256)
def _rule(rule: Accumulator, operand: FloatFormat) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Return the fields of struct cbfloat_accumulator, and the array to which they point."""
    order = np.array(rule.order, np.int64)
    stages = [number for stage in rule.stages for number in _sum(stage)]
    stages += [0] * (_SUM * _MOST_STAGES - len(stages))
    numbers = (
        *(rule.block, len(rule.stages), *stages, *_sum(rule.join)),
        *(address(order) if order.size else 0, _or(rule.total_fraction_bits, -1), _or(rule.total_reach, -1)),
        *(_or(rule.zero_exponent, _NO_EXPONENT), rule.zero_total_exponent),
        *(rule.products_overflow, _FLUSHES[rule.flush]),
        *(rule.depth or rule.block, rule.promote_every or 0, operand.emin, operand.fraction_bits),
        rule.nan if rule.outer == FP32 else FP32.nan,
    )
    return numbers, order


def serves(rule: Machine) -> bool:
    """Return whether the library has such rules, and room for the stages of this one."""
    return isinstance(rule, Accumulator) and len(rule.stages) <= _MOST_STAGES


def _accumulate(
    mode: int, a: Matrix, b: Matrix, result: Matrix, sizes: Sequence[int], operand: FloatFormat, rule: Accumulator
) -> bool:
    served = active()
    if served is None or not serves(rule):
        return False
    batch, kept, matrices = result.shape[:-2], [], []
    for array in (a, b):
        offsets = 0
        if prod(batch) != 1:
            kept.append(batch_offsets(array, batch))  # lives until the call is over
            offsets = address(kept[-1])
        matrices += [address(array), array.strides[-2] // array.itemsize, array.strides[-1] // array.itemsize, offsets]
    fields, _ = _rule(rule, operand)
    numbers = served.path, served.threads, mode, *sizes, *matrices, address(result), *fields
    failed = served.library.cbfloat_accumulate(_CALL.pack(*numbers))
    if failed == 1:
        raise MemoryError(f"no memory for the product of shapes {a.shape} and {b.shape}")
    return not failed


def matmul(a: Matrix, b: Matrix, result: Matrix, operand: FloatFormat, rule: Accumulator) -> bool:
    """Add the products of (..., M, K) and (..., K, N) to `result`, contiguous and of shape (..., M, N), none empty.

    Parameters
    ----------
    a, b : float32 arrays of any strides
        Values of `operand`.
    result : float32 array
        Values of the initial totals, in whose place the new ones come; a NaN has the rule's code if that is of float32.
    """
    if b.ndim == 2 and a.ndim > 2:  # one matrix for the whole batch: all rows form one product
        rows = prod(a.shape[:-1])
        return matmul(a.reshape(rows, a.shape[-1]), b, result.reshape(rows, result.shape[-1]), operand, rule)
    *batch, rows, columns = result.shape
    if columns < min(_FEW_COLUMNS, rows):
        exchanged = np.ascontiguousarray(np.swapaxes(result, -1, -2))
        done = matmul(np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2), exchanged, operand, rule)
        result[...] = np.swapaxes(exchanged, -1, -2)
        return done
    sizes = prod(batch), rows, columns, a.shape[-1]
    return _accumulate(_MATMUL, strided(a), strided(b), result, sizes, operand, rule)


def dot(a: Matrix, b: Matrix, result: Matrix, operand: FloatFormat, rule: Accumulator) -> bool:
    """Add the dot products of the rows of two (N, K) arrays to `result` of shape (N,); parameters as of `matmul`."""
    x, y = strided(a).T, strided(b).T
    return _accumulate(_DOT, x, y, result[np.newaxis], (1, 1, *x.shape[::-1]), operand, rule)
