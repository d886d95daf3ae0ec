"""One reduction on exact numbers: its steps and its result."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from golden.counts import Counts
from golden.exact import Class
from golden.exact_rounding import as_it_counts, code_as_it_counts, decode
from golden.exact_steps import Kind, Step, counted
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.reduction import Reduction

__all__ = ["ExactReduction"]


@dataclass(frozen=True)
class ExactReduction:
    """The record of one reduction: its start and every step.

    Parameters
    ----------
    reduction : Reduction
        With the format of the factors.
    initial : int
        Code in the outer format from which the total started.
    steps : tuple of Step
        Every product and promotion, in the order of the hardware.
    """

    reduction: Reduction
    initial: int
    steps: tuple[Step, ...]

    @property
    def operand(self) -> FloatFormat:
        """The format of the factors."""
        return self.reduction.factors

    @property
    def code(self) -> int:
        """The result: a code in the outer format."""
        if self.steps:
            return self.steps[-1].after
        return code_as_it_counts(self.initial, self.reduction.outer, self.reduction.subnormals)

    @property
    def flags(self) -> Flag:
        """All that the steps raised."""
        flags = Flag(0)
        for step in self.steps:
            flags |= step.flags
        return flags

    @cached_property
    def counts(self) -> Counts:
        """How often what occurred (NUMERICS section 11)."""
        return counted(self.steps)

    @cached_property
    def exact(self) -> Fraction | None:
        """The exact sum of the operands as they count, rounded nowhere; None if an operand is infinite or NaN."""
        outer = self.reduction.outer
        start = as_it_counts(decode(self.initial, outer), outer, self.reduction.subnormals)
        addends = [step.addend for step in self.steps if step.kind is Kind.PRODUCT]
        if start.kind is not Class.FINITE or None in addends:
            return None
        return start.as_fraction() + sum(addend for addend in addends if addend is not None)

    @property
    def error(self) -> Fraction | None:
        """The result less the exact sum; None unless both are finite."""
        result = decode(self.code, self.reduction.outer)
        if self.exact is None or result.kind is not Class.FINITE:
            return None
        return result.as_fraction() - self.exact
