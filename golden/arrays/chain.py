"""Chains of fused steps and whole reductions on float64 arrays (NUMERICS sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import code_dtype
from golden.arrays.conversion import convert
from golden.arrays.rounding import Flags, Float64, codes_to_float64, float64_to_codes
from golden.arrays.steps import fused_step, step_flags
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.kernels.library import warn_of_slowness
from golden.reduction import Reduction

__all__ = ["Chain", "reduce_codes"]

Codes = NDArray[Any]

_SECONDS_PER_STEP = 1.5e-8  # roughly


@dataclass
class Chain:
    """A chain of steps for each result; it collects their flags on request."""

    shape: tuple[int, ...]
    with_flags: bool
    flags: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.flags = np.zeros(self.shape, np.uint8)

    def step(self, a: Float64, b: Float64, acc: Float64, accumulator: FloatFormat) -> Float64:
        """Return ``round(a * b + acc)``."""
        rounded, exact = fused_step(a, b, acc, accumulator)
        if self.with_flags:
            self.flags = self.flags | step_flags(a, b, acc, exact, rounded, accumulator)
        return rounded

    def note_signalling(self, signalling: NDArray[np.bool_] | np.bool_) -> None:
        """Raise invalid where an operand is a signalling NaN."""
        self.flags = self.flags | signalling.astype(np.uint8) * np.uint8(Flag.INVALID)

    def reduce(
        self, length: int, pair: Callable[[int], tuple[Float64, Float64]], plan: Reduction, initial: Float64
    ) -> Float64:
        """Run the reduction of `length` pairs ``a[k], b[k]``; k is never re-ordered (NUMERICS section 5)."""
        total = np.broadcast_to(initial, self.shape)
        if plan.is_chain:
            for k in range(length):
                total = self.step(*pair(k), total, plan.outer)
            return total
        one = np.ones(self.shape)
        chunk = plan.chunk or max(length, 1)
        for start in range(0, length, chunk):
            partial = np.zeros(self.shape)
            for k in range(start, min(start + chunk, length)):
                partial = self.step(*pair(k), partial, plan.inner)
            total = self.step(partial, one, total, plan.outer)
        return total


def reduce_codes(
    a: Codes,
    b: Codes,
    shape: tuple[int, ...],
    *,
    operand: FloatFormat,
    plan: Reduction,
    start: Codes | None,
    out: FloatFormat | None,
    with_flags: bool,
) -> tuple[Codes, Flags]:
    """Reduce over axis 0 of `a` and `b`, whose other axes broadcast to `shape`; return codes and their flags."""
    if start is None:
        start = np.zeros((), code_dtype(plan.outer))
    chain = Chain(shape, with_flags)
    length = a.shape[0]
    warn_of_slowness(length * prod(shape) * _SECONDS_PER_STEP)
    if with_flags and length:
        chain.note_signalling(plan.outer.is_signalling(start))
        chain.note_signalling(operand.is_signalling(a).any(axis=0))
        chain.note_signalling(operand.is_signalling(b).any(axis=0))
    if length == 0:
        codes = np.broadcast_to(start, shape).copy()
    else:
        with np.errstate(all="ignore"):
            x, y = codes_to_float64(a, operand), codes_to_float64(b, operand)
            total = chain.reduce(length, lambda k: (x[k], y[k]), plan, codes_to_float64(start, plan.outer))
            codes = float64_to_codes(total, plan.outer)
    # Also into the outer format itself: the initial value that an empty reduction gives may be any NaN.
    if out is not None:
        codes, raised = convert(codes, plan.outer, out, return_flags=True)
        chain.flags = chain.flags | raised
    return codes[()], chain.flags[()]
