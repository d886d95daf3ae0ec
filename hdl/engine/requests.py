"""Requests of `golden` for products, as the engine serves them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from golden.formats import FP32
from golden.reduction import Reduction
from golden.rounding import Rounding
from hdl.engine.arguments import Matrices, Operands, as_chunk, is_among
from hdl.engine.conversion import to_codes
from hdl.engine.device import Features
from hdl.engine.products import Product

__all__ = ["RequestLike", "obstacle_of", "product_of"]


class RequestLike(Protocol):
    """What this module needs of `golden.arrays.requests.Request`, which `hdl` does not import."""

    @property
    def reduction(self) -> Reduction:
        """What is computed."""

    @property
    def a(self) -> Any:
        """Codes, values, or a table of values."""

    @property
    def b(self) -> Any:
        """Likewise."""

    @property
    def initial(self) -> NDArray[Any] | None:
        """Codes of the outer format, or values."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""

    @property
    def is_dot(self) -> bool:
        """The operands are vectors."""

    @property
    def as_values(self) -> bool:
        """Operands, initial values and results are float32 values."""

    @property
    def flags(self) -> bool:
        """The flags of each result are wanted."""

    @property
    def counting(self) -> object | None:
        """The events that are counted."""

    @property
    def length(self) -> int:
        """Products of each result."""

    def answer(self, result: NDArray[Any]) -> Any:
        """Return the answer with this result."""


def obstacle_of(request: RequestLike, features: Features) -> str | None:
    """Return the reason to refuse a request; None to serve it."""
    reduction = request.reduction
    if request.flags:
        return "the engine collects flags of all results together, not of each"
    if request.counting is not None:
        return "the engine counts no events of the steps"
    if reduction.accumulator is not None:
        return "the engine has no accumulator of another machine"
    if not is_among(reduction.factors, features.operands):
        return f"the engine takes {_words(features.operands)}, not {reduction.factors}"
    level = _level_of(reduction)
    if level is None:
        return "the engine sums at the levels 0 to 2 alone"
    if level not in features.levels:
        return f"the engine was built for level {_words(features.levels)}, not {level}"
    if reduction.random is not None or reduction.rounding not in features.roundings:
        return f"the engine was built for rounding {_words(features.roundings)}, not {reduction.rounding}"
    if reduction.flushes != features.flushes:
        return f"the engine {'makes subnormals zeros' if features.flushes else 'keeps subnormals'}"
    if reduction.result != reduction.outer:
        if not is_among(reduction.result, features.results):
            return f"the engine converts results into {_words(features.results) or 'no other format'}"
        if reduction.out_rounding is not Rounding.NEAREST_EVEN:
            return "the engine converts results to nearest even"
    if request.initial is not None and not features.has_initial:
        return "the engine was built without initial values"
    try:
        as_chunk(reduction.chunk, request.length, level, features)
    except ValueError as error:
        return f"of the engine {error}"
    return None


def _words(several: Any) -> str:
    return ", ".join(map(str, several))


def _level_of(reduction: Reduction) -> int | None:
    """Return the level of a reduction, None if it is none."""
    if reduction.is_chain:
        return 0
    if reduction.inner != reduction.factors:
        return None
    return {FP32: 1, reduction.factors: 2}.get(reduction.outer)


def product_of(
    request: RequestLike, features: Features
) -> tuple[Product, Operands, NDArray[Any] | None, tuple[int, ...]]:
    """Return product, operands and totals of a request, and the shape of its result."""
    reduction, level = request.reduction, _level_of(request.reduction)
    assert level is not None
    chunk = as_chunk(reduction.chunk, request.length, level, features)
    outer, result = reduction.outer, reduction.result
    # Reductions of no products do not come here.
    product = Product(reduction.factors, level, chunk, reduction.rounding, outer, result, result != outer)
    a, b = (each.matrices() if hasattr(each, "matrices") else each for each in (request.a, request.b))
    start = request.initial
    if request.is_dot:  # a row times a column each
        a, b = a[..., np.newaxis, :], b[..., :, np.newaxis]
        start = None if start is None else start[..., np.newaxis, np.newaxis]
    if start is not None and request.as_values:
        start = to_codes(start, reduction.outer)
    operands = Operands(*(_matrices(each, request.as_values) for each in (a, b)))
    return product, operands, start, request.shape


def _matrices(array: NDArray[Any], as_values: bool) -> Matrices:
    if not as_values:
        return Matrices(array.astype(np.uint16, copy=False), False, False)
    return Matrices(array.astype(np.float32, copy=False).view(np.uint32), False, True)
