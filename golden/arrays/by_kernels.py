"""The back end of the compiled kernels: the same bits as NumPy's, faster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator
from golden.arrays.checks import code_dtype
from golden.arrays.conversion import decode, encode, quantize
from golden.arrays.operands import carried_codes, carried_indexed, carried_values
from golden.arrays.requests import Answer, Request
from golden.arrays.signalling import has_signalling, with_signalling
from golden.formats import FP32
from golden.kernels import accumulators, products
from golden.kernels.counting import CountSink
from golden.kernels.library import active
from golden.kernels.products import Call, Indexed

__all__ = ["Kernels"]

Array = NDArray[Any]


class Kernels:
    """The compiled library, on the path and the threads that `golden.kernels.use` has chosen."""

    name = "kernels"

    def obstacle(self, request: Request) -> str | None:
        """Return the reason to refuse a request; None to serve it."""
        if active() is None:
            return "there is no compiled library, or CBFLOAT_KERNELS chooses NumPy"
        if request.flags:
            return "the kernels compute no flags"
        if not request.length:
            return "there are no products"
        reduction = request.reduction
        if reduction.flushes and not products.flushes(reduction, counts=request.counting is not None):
            return "the kernels flush subnormals to nearest even, in formats of 16 bits and more, without counts"
        if not all(fmt.subnormals for fmt in (reduction.inner, reduction.outer)):
            return "the kernels sum in formats with subnormals alone"
        if reduction.accumulator is not None:
            served = accumulators.serves(reduction.accumulator)
            return None if served else "the kernels have no room for the accumulator's stages, or not its kind"
        if _size(request) > products.most_results(reduction):
            return "the kernels have no room for so many random bits"
        if request.is_dot and request.counting is not None and has_signalling(request):
            return "the kernels take signalling NaNs, which count as invalid, for quiet ones"
        return None

    def compute(self, request: Request) -> Answer:
        """Return the answer to a request without an obstacle."""
        reduction = request.reduction
        if reduction.accumulator is not None:
            return _accumulated(request).converted(request)
        if not reduction.result.is_ieee:  # kernels round into no others
            return self.compute(request.in_outer()).converted(request)
        if isinstance(request.a, Indexed):
            return _by_tables(request)
        result = np.empty(request.shape, np.float32 if request.as_values else code_dtype(reduction.result))
        counting, call = request.counting, products.call_of(reduction, as_values=request.as_values)
        sink = None
        if counting is not None:
            sink = CountSink(counting.form, request.shape, counting.rows, has_rows=not request.is_dot)
        carried = carried_values if request.as_values else carried_codes
        x, y = carried(request.operand, request.a, request.b)
        (_dot if request.is_dot else products.matmul)(x, y, request.initial, result, call, sink=sink)
        if sink is None:
            return Answer(result)
        counts = sink.counts(*request.steps())
        return Answer(result, None, counts if request.as_values else with_signalling(counts, request))


def _size(request: Request) -> int:
    size = 1
    for length in request.shape:
        size *= length
    return size


def _dot(x: Array, y: Array, start: Array | None, result: Array, call: Call, *, sink: CountSink | None) -> None:
    shape = result.shape
    rows, columns = (np.broadcast_to(each, shape + each.shape[-1:]).reshape(-1, each.shape[-1]) for each in (x, y))
    begin = None if start is None else np.broadcast_to(start, shape).ravel()
    products.dot(rows, columns, begin, result.reshape(-1), call, sink=sink)


def _by_tables(request: Request) -> Answer:
    a, b, operand = request.a, request.b, request.operand
    is_rounded = 2 * b.data.size <= len(b.batches) * len(b.rows) * len(b.columns)  # as of windows that overlap
    if is_rounded:
        b = b._replace(data=np.asarray(quantize(b.data, operand)))
    result = np.empty(request.shape, np.float32)
    call = products.call_of(request.reduction, as_values=True, b_is_rounded=is_rounded)
    products.matmul_indexed(*carried_indexed(operand, a, b), request.initial, result, call)
    return Answer(result)


def _accumulated(request: Request) -> Answer:
    """Return the totals of a machine that accumulates in another way."""
    rule, operand = request.reduction.accumulator, request.operand
    assert isinstance(rule, Accumulator)
    if isinstance(request.a, Indexed):
        return _one_by_one(request)
    x, y = ((quantize if request.as_values else decode)(each, operand) for each in (request.a, request.b))
    totals = _initial_totals(request)
    if not totals.size:
        pass
    elif request.is_dot:
        x, y = (np.broadcast_to(each, totals.shape + each.shape[-1:]).reshape(-1, each.shape[-1]) for each in (x, y))
        accumulators.dot(x, y, totals.reshape(-1), operand, rule)
    else:
        accumulators.matmul(x, y, totals, operand, rule)
    if request.as_values:
        return Answer(totals)
    if rule.outer == FP32:
        return Answer(totals.view(np.uint32))
    codes = np.asarray(encode(totals, rule.outer))
    return Answer(np.where(np.isnan(totals), codes.dtype.type(rule.nan), codes))


def _initial_totals(request: Request) -> NDArray[np.float32]:
    """Return a writable array of the values from which totals start."""
    start, outer = request.initial, request.reduction.outer
    if start is None:
        return np.zeros(request.shape, np.float32)
    if outer == FP32:  # with codes of NaNs as they are
        return np.array(np.broadcast_to(start, request.shape), order="C").view(np.float32)
    values = (quantize if request.as_values else decode)(start, outer)
    return np.array(np.broadcast_to(values, request.shape), order="C")


def _one_by_one(request: Request) -> Answer:
    """Gather matrices one after the other, since all of them together may take too much memory."""
    result = np.empty(request.shape, np.float32)
    starts = None if request.initial is None else np.broadcast_to(request.initial, request.shape)
    for at, product in enumerate(result):
        a, b = (each._replace(batches=each.batches[at : at + 1]).matrices()[0] for each in (request.a, request.b))
        start = None if starts is None else starts[at]
        product[...] = _accumulated(request._replace(a=a, b=b, initial=start, shape=product.shape)).result
    return Answer(result)
