"""The plan of a product of tensors: what it computes, and what its gradients do.

Plans are made in every product, and in code that PyTorch's compiler traces. The compiler cannot follow how a reduction
is made. It takes the functions that make them for constants, and knows their arguments: numbers and text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from golden.formats import FP32
from golden.reduction import DEFAULT_CHUNK, Reduction
from golden.rounding import Randomness
from golden.torch.common.pytorch import constant
from golden.torch.settings.draws import branched
from golden.torch.settings.half_type import HalfType, half_named
from golden.torch.settings.reductions import format_of, level_of, reduction_in, without_random

__all__ = ["Plan", "at_level", "plan_of", "rule_by_machine_of", "rule_of"]


class Plan(NamedTuple):
    """A product of tensors.

    Parameters
    ----------
    half : HalfType
        In whose dtype the result travels.
    reduction : Reduction
        What the product computes.
    backward : Reduction
        What the products of its gradients compute.
    """

    half: HalfType
    reduction: Reduction
    backward: Reduction

    @property
    def level(self) -> int:
        """The level of the product; 0 by the accumulator of another machine."""
        return _level(str(self.reduction))

    @property
    def of_gradients(self) -> Plan:
        """The plan of its gradients."""
        return Plan(self.half.of_gradients, self.backward, self.backward)

    @property
    def of_sums(self) -> Plan:
        """The plan of a product that only adds up, in fp32."""
        sums = _sums(without_random(str(self.reduction)))
        if self.reduction.random is not None:
            sums = sums.with_random(self.reduction.random)
        return Plan(self.half, sums, sums)

    def drawn(self, random: Randomness) -> Plan:
        """Return this plan with other random bits."""
        return Plan(self.half, self.reduction.with_random(random), self.backward.with_random(random))

    def branch(self, number: int) -> Plan:
        """Return this plan with random bits of its own for a branch of the product."""
        random = self.reduction.random
        return self if random is None else self.drawn(branched(random, number))


def plan_of(half: HalfType, fwd: int, bwd: int, chunk: int | None, rule: str) -> Plan:
    """Return the plan of a product at the levels of its two passes.

    `rule` is the line of a reduction with the modes of all products, and the accumulator of another machine.

    Raises
    ------
    ValueError
        If that machine has no operands as wide as the factors.
    """
    after = half.of_gradients
    backward = _reduction(after.factors, after.text, bwd, chunk, rule)
    return Plan(half, _reduction(half.factors, half.text, fwd, chunk, rule), backward)


@constant
def _reduction(factors: str, half: str, level: int, chunk: int | None, rule: str) -> Reduction:
    return _reduction_once(factors, half, level, chunk, rule)


@lru_cache(maxsize=256)
def _reduction_once(factors: str, half: str, level: int, chunk: int | None, rule: str) -> Reduction:
    operand, out, given = format_of(factors), format_of(half), reduction_in(rule)
    if given.accumulator is not None:
        return _with_line(given, operand=operand, out=out)
    at_level = Reduction.for_level(level, operand, chunk=chunk, inner=out)
    return _with_line(given, **_sums_of(at_level), operand=operand, out=out)


@constant
def _sums(line: str) -> Reduction:
    return _sums_once(line)


@lru_cache(maxsize=256)
def _sums_once(line: str) -> Reduction:
    given = reduction_in(line)
    return _with_line(given, **_sums_of(Reduction()), operand=given.out, accumulator=None)


def _sums_of(reduction: Reduction) -> dict[str, Any]:
    return {"inner": reduction.inner, "chunk": reduction.chunk, "outer": reduction.outer}


def _with_line(reduction: Reduction, **changes: Any) -> Reduction:
    """Return a changed reduction that has its line already: the compiler cannot follow how one is written."""
    changed = replace(reduction, **changes)
    assert str(changed)
    return changed


@constant
def _level(line: str) -> int:
    return level_of(reduction_in(line))


def at_level(reduction: Reduction, half: HalfType | None) -> tuple[HalfType, int, int | None]:
    """Return the half type, the level and the chunk length that stand for a reduction.

    Parameters
    ----------
    reduction : Reduction
        At a level: in fp32, in the half format, or in this within chunks and in fp32 across; or by the accumulator of
        another machine.
    half : HalfType, optional
        Whose formats are taken where the reduction names none; that of the reduction's formats unless given.

    Raises
    ------
    ValueError
        If the reduction names no half format without `half`, contradicts `half`, or is at no level.
    """
    level = level_of(reduction)
    chunk = reduction.chunk if level else DEFAULT_CHUNK
    if half is None:
        out = reduction.out or (reduction.inner if reduction.inner != FP32 else reduction.operand)
        if out is None:
            raise ValueError(f"reduction: got {reduction} without half, must come with it, or have out=")
        operand = reduction.operand or out
        half = half_named(operand, inner=None if operand == out else out, argument="reduction")
    rule = rule_of(str(reduction.rounding), str(reduction.out_rounding), reduction.subnormals)
    if reduction.accumulator is not None:
        rule = rule_by_machine_of(rule, str(reduction))
    made = plan_of(half, level, level, chunk, rule).reduction
    if replace(reduction, operand=reduction.operand or made.operand, out=reduction.out or made.out) != made:
        raise ValueError(f"reduction: got {reduction}, must be at a level; with these formats, level {level} is {made}")
    return half, level, chunk


@constant
def rule_of(rounding: str, out_rounding: str, subnormals: str = "keep") -> str:
    """Return the line of what all products of a precision have: their modes, and what becomes of subnormals."""
    return str(Reduction(rounding=rounding, out_rounding=out_rounding, subnormals=subnormals))


@constant
def rule_by_machine_of(rule: str, other: str) -> str:
    """Return a rule with the accumulator of another one."""
    return str(replace(reduction_in(rule), accumulator=reduction_in(other).accumulator))
