"""The netlist of the fused step: every operand of tiny formats, many millions of biased ones of the formats in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import golden
from golden import FP16, FP32, FloatFormat
from golden.formats import HALF_FORMATS
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from lab.exhaustive.check import Check, Comparison, compare_operands
from lab.exhaustive.operands import drawn_operands
from lab.exhaustive.softfloat import fused_steps
from tools.sliced import Sliced

__all__ = ["MODES", "TINY", "all_operands", "biased_operands", "sampled_step_checks", "tiny_step_checks"]

_E3M2, _E3M3 = FloatFormat("e3m2", 3, 2), FloatFormat("e3m3", 3, 3)

#: Operands' and accumulator's format: their own, and one that is wider than a product, as float32 is.
TINY = (
    (_E3M2, _E3M2),
    (_E3M2, FloatFormat("e4m7", 4, 7)),
    (_E3M3, _E3M3),
    (_E3M3, FloatFormat("e4m9", 4, 9)),
)

#: The core of the generated units, whose formats are chosen at run time, and its modes.
_SHARED = StepFormats(HALF_FORMATS, (*HALF_FORMATS, FP32))
MODES = tuple((fmt, accumulator) for fmt in _SHARED.operands for accumulator in (fmt, FP32))

#: Vectors of a mode.
SAMPLE = 10**8

#: Vectors of each piece that SoftFloat judges, too.
SOFTFLOAT_SAMPLE = 256


@dataclass
class _Step:
    """The netlist of a fused step in one mode, and where its operands come from."""

    operand: FloatFormat
    accumulator: FloatFormat
    formats: StepFormats
    operands: Callable[[int, int], Sequence[NDArray]]

    def build(self) -> None:
        modes = {
            "format": (self.formats.operands, self.operand),
            "accumulator_format": (self.formats.accumulators, self.accumulator),
        }
        tied = {port: formats.index(fmt) for port, (formats, fmt) in modes.items() if len(formats) > 1}
        self.netlist = Sliced(FusedStep(self.formats), **tied)

    def judged_by_softfloat(self) -> bool:
        """Whether SoftFloat has this step."""
        return self.operand == self.accumulator == FP16

    def compare(self, start: int, stop: int) -> Comparison:
        a, b, acc = self.operands(start, stop)
        got = self.netlist(a=a, b=b, acc=acc)
        codes, flags = golden.multiply_accumulate(
            a, b, acc, operand=self.operand, accumulator=self.accumulator, return_flags=True
        )
        found = compare_operands("bits", (a, b, acc), got["o.bits"], codes)
        found.add(compare_operands("flags", (a, b, acc), got["o.flags"], flags))
        if self.judged_by_softfloat():
            found.wrong += self._differences_from_softfloat((a, b, acc), got, found.examples)
        return found

    def _differences_from_softfloat(
        self, operands: Sequence[NDArray], got: Mapping[str, NDArray], examples: list[str]
    ) -> int:
        """Compare the first vectors of a piece: called from Python, SoftFloat takes microseconds for each."""
        few = [each[:SOFTFLOAT_SAMPLE] for each in operands]
        codes, flags = fused_steps(few)
        found = compare_operands("bits by SoftFloat", few, got["o.bits"][:SOFTFLOAT_SAMPLE], codes)
        found.add(compare_operands("flags by SoftFloat", few, got["o.flags"][:SOFTFLOAT_SAMPLE], flags))
        examples += found.examples
        return found.wrong


def tiny_step_checks(formats: Sequence[tuple[FloatFormat, FloatFormat]] = TINY) -> list[Check]:
    """Return one check for each operand and accumulator format: all (a, b, acc)."""
    checks = []
    for operand, accumulator in formats:
        step = _Step(operand, accumulator, StepFormats((operand,), (accumulator,)), all_operands(operand, accumulator))
        total = 1 << (2 * operand.width + accumulator.width)
        checks.append(_check(step, total))
    return checks


def sampled_step_checks(modes: Sequence[tuple[FloatFormat, FloatFormat]] = MODES, sample: int = SAMPLE) -> list[Check]:
    """Return one check for each mode of the core that is built for three formats: operands of `drawn_operands`."""
    return [_check(_Step(*mode, _SHARED, biased_operands(*mode)), sample) for mode in modes]


def _check(step: _Step, total: int) -> Check:
    name = f"step_{step.operand}_into_{step.accumulator}"
    against = "golden.multiply_accumulate"
    if step.judged_by_softfloat():
        against += f", SoftFloat on {SOFTFLOAT_SAMPLE} of every {Check.piece}"
    return Check(name, total, against, step.compare, prepare=step.build)


def all_operands(operand: FloatFormat, accumulator: FloatFormat) -> Callable[[int, int], Sequence[NDArray]]:
    """Return what gives the triples (a, b, acc) of a range of all."""

    def operands(start: int, stop: int) -> Sequence[NDArray]:
        index = np.arange(start, stop, dtype=np.uint32)
        factors = index >> np.uint32(accumulator.width)
        a, b = factors >> np.uint32(operand.width), factors & np.uint32((1 << operand.width) - 1)
        acc = index & np.uint32((1 << accumulator.width) - 1)
        return a.astype(np.uint16), b.astype(np.uint16), acc.astype(np.uint16)

    return operands


def biased_operands(operand: FloatFormat, accumulator: FloatFormat) -> Callable[[int, int], Sequence[NDArray]]:
    """Return what gives the triples of `drawn_operands` of a range of a sample."""
    # The place in the sample is the seed, so that a difference comes again.
    return lambda start, stop: drawn_operands(operand, accumulator, stop - start, start)
