"""The netlist of the fused step in every rounding mode: a tiny format on all operands, cbfloat16 on biased ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import golden
from golden import CBFLOAT16, FP32, FloatFormat, Rounding
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from lab.exhaustive.check import Check, Comparison, compare_operands
from lab.exhaustive.steps import all_operands, biased_operands
from tools.sliced import Sliced

__all__ = ["sampled_rounded_checks", "tiny_rounded_checks"]

_EVERY = tuple(Rounding)
_TINY, _FEW = FloatFormat("e3m2", 3, 2), 3
#: Vectors of a mode and an accumulator's format.
SAMPLE = 10**6


@dataclass
class _Step:
    """The netlist of a fused step that is built for every mode, in one of them."""

    formats: StepFormats
    operand: FloatFormat
    accumulator: FloatFormat
    mode: Rounding
    operands: Callable[[int, int], Sequence[NDArray]]

    def build(self) -> None:
        tied = {"rounding": self.mode.value}
        if len(self.formats.accumulators) > 1:
            tied["accumulator_format"] = self.formats.accumulators.index(self.accumulator)
        self.is_random = self.mode is Rounding.STOCHASTIC
        if not self.is_random:
            tied["random"] = 0
        self.netlist = Sliced(FusedStep(self.formats), **tied)

    def compare(self, start: int, stop: int) -> Comparison:
        a, b, acc = self.operands(start, stop)
        given: dict[str, Any] = {"a": a, "b": b, "acc": acc}
        options: dict[str, Any] = {"rounding": self.mode}
        told: list[Any] = [a, b, acc]
        if self.is_random:
            random = np.random.default_rng(start).integers(0, 1 << self.formats.random_bits, len(a), np.uint32)
            given["random"] = random
            options |= {"random": random, "random_bits": self.formats.random_bits}
            told.append(random)
        got = self.netlist(**given)
        codes, flags = golden.multiply_accumulate(
            a, b, acc, operand=self.operand, accumulator=self.accumulator, return_flags=True, **options
        )
        found = compare_operands("bits", told, got["o.bits"], codes)
        found.add(compare_operands("flags", told, got["o.flags"], flags))
        return found

    def check(self, total: int) -> Check:
        """Return the check over so many operands."""
        name = f"step_{self.operand}_into_{self.accumulator}_{self.mode}"
        return Check(name, total, "golden.multiply_accumulate", self.compare, prepare=self.build)


def tiny_rounded_checks(fmt: FloatFormat = _TINY) -> list[Check]:
    """Return one check for each mode of a tiny format: all (a, b, acc), with a random number each."""
    formats, operands = StepFormats((fmt,), (fmt,), _EVERY, _FEW), all_operands(fmt, fmt)
    return [_Step(formats, fmt, fmt, mode, operands).check(1 << 3 * fmt.width) for mode in _EVERY]


def sampled_rounded_checks(sample: int = SAMPLE) -> list[Check]:
    """Return one check for each mode of cbfloat16 into itself and into float32: operands of `drawn_operands`."""
    formats = StepFormats((CBFLOAT16,), (CBFLOAT16, FP32), _EVERY)
    return [
        _Step(formats, CBFLOAT16, accumulator, mode, biased_operands(CBFLOAT16, accumulator)).check(sample)
        for mode in _EVERY
        for accumulator in formats.accumulators
    ]
