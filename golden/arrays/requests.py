"""The request for a product, as every back end gets it, and the answer of a back end."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_codes, same_shape
from golden.arrays.conversion import convert, decode, encode, quantize
from golden.arrays.counting import Counting
from golden.arrays.randomness import random_words
from golden.counts import Counts
from golden.formats import FloatFormat
from golden.kernels.products import Indexed
from golden.philox import FINAL_CONVERSION, MOST_STEPS
from golden.reduction import Reduction, ReductionKeywords
from golden.rounding import Rounding

__all__ = [
    "Answer",
    "ProductKeywords",
    "Request",
    "as_start",
    "check_initial",
    "last_rounding",
    "matmul_shape",
    "steps_of",
]

Array = NDArray[Any]


class ProductKeywords(ReductionKeywords, total=False):
    """Types of the keywords of a product, for overloads with different return types."""

    initial: ArrayLike | None
    backend: Any


class Request(NamedTuple):
    """A product of arrays whose arguments have been checked.

    Parameters
    ----------
    reduction : Reduction
        With `operand`.
    a, b : arrays, or two `Indexed`
        Codes of the operand format, or float32 values that are rounded to it first. Matrices (..., M, K) and
        (..., K, N), or with `is_dot` vectors (..., K) and (..., K). The leading axes broadcast.
    initial : array, optional
        Codes of the outer format, or values, from which the totals start; it broadcasts to `shape`. None is +0.
    shape : tuple of int
        Of the result.
    is_dot : bool
    as_values : bool
        Operands, initial values and results are float32 values.
    flags : bool
        Compute the flags, too.
    counting : Counting, optional
        Count these events, too.
    """

    reduction: Reduction
    a: Any
    b: Any
    initial: Array | None
    shape: tuple[int, ...]
    is_dot: bool = False
    as_values: bool = False
    flags: bool = False
    counting: Counting | None = None

    @property
    def operand(self) -> FloatFormat:
        """The format of the factors."""
        return self.reduction.factors

    @property
    def length(self) -> int:
        """Products of each result."""
        return len(self.a.columns) if isinstance(self.a, Indexed) else int(self.a.shape[-1])

    def checked(self) -> Request:
        """Return the request itself; refuse flags, counts and lengths that its reduction does not have.

        Raises
        ------
        ValueError
            If flags or counts of another machine's accumulator are wanted, or there are too many products.
        """
        reduction = self.reduction
        if reduction.accumulator is not None:
            reduction.accumulator.refuse(return_flags=self.flags, counts=self.counting is not None)
        if reduction.random is not None and self.length > MOST_STEPS:
            raise ValueError(
                f"a, b: got {self.length} products a result, must be at most {MOST_STEPS} to round stochastically"
            )
        return self

    def in_outer(self) -> Request:
        """Return the same without the conversion into `out`."""
        return self._replace(reduction=_in_outer(self.reduction))

    def in_codes(self) -> Request:
        """Return the same with codes in the place of values, and matrices in the place of tables."""
        a, b = (each.matrices() if isinstance(each, Indexed) else each for each in (self.a, self.b))
        if not self.as_values:
            return self._replace(a=a, b=b)
        start = None if self.initial is None else encode(self.initial, self.reduction.outer)
        return self._replace(a=encode(a, self.operand), b=encode(b, self.operand), initial=start, as_values=False)

    def answer(self, result: Array) -> Answer:
        """Return an answer without flags and counts, for back ends that know no more of this package."""
        return Answer(result)

    def steps(self) -> tuple[int, int]:
        """Return how many products and promotions each result has."""
        return steps_of(self.reduction, self.length)


class Answer(NamedTuple):
    """A result, in codes or values like the request, with flags and counts if the request wants them."""

    result: Array
    flags: NDArray[np.uint8] | None = None
    counts: Counts | None = None

    def converted(self, request: Request) -> Answer:
        """Convert an answer from the outer format into `out`, and add the flags of the conversion."""
        reduction = request.reduction
        if reduction.out is None:
            return self
        last = last_rounding(request.shape, reduction)
        if request.as_values:
            return self._replace(result=quantize(self.result, reduction.out, out=self.result, **last))
        if self.flags is None:
            return self._replace(result=convert(self.result, reduction.outer, reduction.out, **last))
        codes, raised = convert(self.result, reduction.outer, reduction.out, return_flags=True, **last)
        return self._replace(result=codes, flags=self.flags | raised)

    def in_form_of(self, request: Request) -> Answer:
        """Return an answer in codes, or its values if the request has values."""
        return self._replace(result=decode(self.result, request.reduction.result)) if request.as_values else self


@lru_cache(maxsize=256)
def _in_outer(reduction: Reduction) -> Reduction:
    return replace(reduction, out=None, out_rounding=Rounding.NEAREST_EVEN)


def last_rounding(shape: tuple[int, ...], reduction: Reduction) -> dict[str, Any]:
    """Return the arguments of the conversion of results into `out`."""
    options: dict[str, Any] = {"rounding": reduction.out_rounding, "subnormals": reduction.subnormals}
    if reduction.out_rounding is Rounding.STOCHASTIC and reduction.random is not None:
        words = random_words(shape, reduction.random)(FINAL_CONVERSION)
        options |= {"random": words, "random_bits": reduction.random.random_bits}
    return options


def check_initial(start: Array, shape: tuple[int, ...]) -> None:
    """Refuse initial values that do not broadcast to the results."""
    if start.shape != shape and same_shape("initial", start.shape, shape) != shape:
        raise ValueError(f"initial: got shape {start.shape}, must broadcast to the result's shape {shape}")


def as_start(initial: ArrayLike | None, reduction: Reduction, shape: tuple[int, ...]) -> Array | None:
    """Accept codes from which the totals start."""
    if initial is None:
        return None
    start = as_codes(initial, reduction.outer, "initial")
    check_initial(start, shape)
    return start


def matmul_shape(x: Array, y: Array) -> tuple[int, ...]:
    """Return the shape of a matrix product."""
    for argument, given in (("a", x), ("b", y)):
        if given.ndim < 2:
            raise ValueError(f"{argument}: got shape {given.shape}, must have at least two axes")
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"a, b: got shapes {x.shape} and {y.shape}, must be (..., M, K) and (..., K, N)")
    return (*same_shape("a, b", x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])


def steps_of(reduction: Reduction, length: int) -> tuple[int, int]:
    """Return how many products and promotions a reduction of `length` products has."""
    return length, 0 if reduction.is_chain or length == 0 else -(-length // (reduction.chunk or length))
