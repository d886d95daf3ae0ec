"""The arguments of a reduction of arrays, beside the operands: its plan, its modes, its shapes, its initial values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypedDict

from numpy.typing import ArrayLike, NDArray

from golden.accumulator import Accumulator
from golden.arrays.checks import as_codes, same_shape
from golden.formats import FloatFormat
from golden.philox import MOST_STEPS
from golden.reduction import Reduction
from golden.rounding import ReductionRounding, Rounding

__all__ = [
    "ReductionOptions",
    "allowed",
    "arguments_of",
    "as_start",
    "check_initial",
    "check_length",
    "matmul_shape",
    "plan_for_level",
    "plan_of",
    "steps_of",
]

Codes = NDArray[Any]


class ReductionOptions(TypedDict, total=False):
    """Types of the arguments of a reduction, for the signatures that differ by what they return."""

    level: int
    chunk: int | None
    reduction: Reduction | Accumulator | None
    initial: ArrayLike | None
    out: FloatFormat | str | None
    rounding: Rounding | str
    out_rounding: Rounding | str
    seed: int
    call: int
    random_bits: int


plan_for_level = lru_cache(maxsize=256)(Reduction.for_level)


def plan_of(
    operand: FloatFormat, level: int, chunk: int | None, reduction: Reduction | Accumulator | None
) -> Reduction | Accumulator:
    """Accept what says how to reduce."""
    if reduction is None:
        plain = type(level) is int and (chunk is None or type(chunk) is int)  # what the cache tells apart
        return (plan_for_level if plain else Reduction.for_level)(level, operand, chunk=chunk)
    if isinstance(reduction, Accumulator):
        reduction.check_operand(operand)
    elif not isinstance(reduction, Reduction):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction, one of golden.accumulators, or None")
    return reduction


def arguments_of(modes: ReductionRounding, *, with_last: bool = False) -> dict[str, Any]:
    """Return the modes as arguments, the last conversion to nearest even unless `with_last`."""
    last = {"out_rounding": modes.out_rounding} if with_last else {}
    seeds = {"seed": modes.seed, "call": modes.call, "random_bits": modes.random_bits}
    return {"rounding": modes.rounding, **last, **seeds}


def check_length(length: int, rounding: ReductionRounding) -> None:
    """Refuse more products than random bits have places for."""
    if length > MOST_STEPS and rounding.is_random:
        raise ValueError(f"a, b: got {length} products a result, must be at most {MOST_STEPS} to round stochastically")


def check_initial(start: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse initial values that do not broadcast to the results."""
    if start.shape != shape and same_shape("initial", start.shape, shape) != shape:
        raise ValueError(f"initial: got shape {start.shape}, must broadcast to the result's shape {shape}")


def as_start(initial: ArrayLike | None, plan: Reduction | Accumulator, shape: tuple[int, ...]) -> Codes | None:
    """Accept codes from which the totals start."""
    if initial is None:
        return None
    start = as_codes(initial, plan.outer, "initial")
    check_initial(start, shape)
    return start


def matmul_shape(x: NDArray[Any], y: NDArray[Any]) -> tuple[int, ...]:
    """Return the shape of a matrix product."""
    for argument, given in (("a", x), ("b", y)):
        if given.ndim < 2:
            raise ValueError(f"{argument}: got shape {given.shape}, must have at least two axes")
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"a, b: got shapes {x.shape} and {y.shape}, must be (..., M, K) and (..., K, N)")
    return (*same_shape("a, b", x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])


def allowed(rule: Accumulator, modes: ReductionRounding) -> Accumulator:
    """Refuse the modes that another machine's accumulator has not."""
    rule.refuse(nearest_even=modes.rounding is Rounding.NEAREST_EVEN)
    return rule


def steps_of(plan: Reduction, length: int) -> tuple[int, int]:
    """Return how many products and promotions a reduction of `length` products has."""
    return length, 0 if plan.is_chain or length == 0 else -(-length // (plan.chunk or length))
