"""The netlist of the fused step: all operands of tiny formats, biased ones of the formats in use, in every mode."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import softfloatpy
from numpy.typing import NDArray
from softfloatpy import Float16, RoundingMode, TininessMode

import golden
from golden import CBFLOAT16, FP16, FP32, FloatFormat, Rounding
from golden.formats import HALF_FORMATS
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from lab.exhaustive.check import Check, Comparison, compare_operands
from lab.exhaustive.operands import Operands, all_operands, biased_operands
from tools.sliced import Sliced

__all__ = [
    "MODES",
    "TINY",
    "fused_steps",
    "sampled_rounded_checks",
    "sampled_step_checks",
    "tiny_rounded_checks",
    "tiny_step_checks",
]

_E3M2, _E3M3 = FloatFormat("e3m2", 3, 2), FloatFormat("e3m3", 3, 3)

#: Formats of operands and accumulator: the same format, and one wider than a product, as float32 is.
TINY = (
    (_E3M2, _E3M2),
    (_E3M2, FloatFormat("e4m7", 4, 7)),
    (_E3M3, _E3M3),
    (_E3M3, FloatFormat("e4m9", 4, 9)),
)

#: The core of the generated units, whose formats are chosen at run time, and its pairs of formats.
_SHARED = StepFormats(HALF_FORMATS, (*HALF_FORMATS, FP32))
MODES = tuple((fmt, accumulator) for fmt in _SHARED.operands for accumulator in (fmt, FP32))

#: Vectors of a pair of formats to nearest even, and of a pair in each of all modes.
SAMPLE, ROUNDED_SAMPLE = 10**8, 10**6

#: Vectors of each piece that SoftFloat judges, too: called from Python, it takes microseconds for each.
SOFTFLOAT_SAMPLE = 256
#: SoftFloat's modes and flags belong to the process.
_LOCK = threading.Lock()


@dataclass
class _Step:
    """The netlist of a fused step, tied to two formats and a mode, with the source of its operands."""

    operand: FloatFormat
    accumulator: FloatFormat
    formats: StepFormats
    operands: Operands
    mode: Rounding = Rounding.NEAREST_EVEN

    def build(self) -> None:
        chosen = {
            "format": (self.formats.operands, self.operand),
            "accumulator_format": (self.formats.accumulators, self.accumulator),
        }
        tied = {port: formats.index(fmt) for port, (formats, fmt) in chosen.items() if len(formats) > 1}
        if len(self.formats.roundings) > 1:
            tied["rounding"] = self.mode.value
            if not self._is_random:
                tied["random"] = 0
        self.netlist = Sliced(FusedStep(self.formats), **tied)

    @property
    def _is_random(self) -> bool:
        return self.mode is Rounding.STOCHASTIC

    @property
    def _is_judged_by_softfloat(self) -> bool:
        return self.operand == self.accumulator == FP16 and self.mode is Rounding.NEAREST_EVEN

    def compare(self, start: int, stop: int) -> Comparison:
        a, b, acc = self.operands(start, stop)
        given: dict[str, Any] = {"a": a, "b": b, "acc": acc}
        options: dict[str, Any] = {"rounding": self.mode}
        if self._is_random:
            given["random"] = np.random.default_rng(start).integers(0, 1 << self.formats.random_bits, len(a), np.uint32)
            options |= {"random": given["random"], "random_bits": self.formats.random_bits}
        got = self.netlist(**given)
        codes, flags = golden.multiply_accumulate(
            a, b, acc, operand=self.operand, accumulator=self.accumulator, return_flags=True, **options
        )
        shown = list(given.values())
        found = compare_operands("bits", shown, got["o.bits"], codes)
        found.add(compare_operands("flags", shown, got["o.flags"], flags))
        if self._is_judged_by_softfloat:
            found.wrong += self._differences_from_softfloat((a, b, acc), got, found.examples)
        return found

    def _differences_from_softfloat(
        self, operands: Sequence[NDArray], got: Mapping[str, NDArray], examples: list[str]
    ) -> int:
        few = [each[:SOFTFLOAT_SAMPLE] for each in operands]
        codes, flags = fused_steps(few)
        found = compare_operands("bits by SoftFloat", few, got["o.bits"][:SOFTFLOAT_SAMPLE], codes)
        found.add(compare_operands("flags by SoftFloat", few, got["o.flags"][:SOFTFLOAT_SAMPLE], flags))
        examples += found.examples
        return found.wrong

    def check(self, total: int) -> Check:
        """Return the check of the step over `total` operands."""
        name = f"step_{self.operand}_into_{self.accumulator}"
        name += f"_{self.mode}" if len(self.formats.roundings) > 1 else ""
        against = "golden.multiply_accumulate"
        if self._is_judged_by_softfloat:
            against += f", SoftFloat on {SOFTFLOAT_SAMPLE} of every {Check.piece}"
        return Check(name, total, against, self.compare, prepare=self.build)


def tiny_step_checks(formats: Sequence[tuple[FloatFormat, FloatFormat]] = TINY) -> list[Check]:
    """Return one check for each operand and accumulator format: all (a, b, acc)."""
    return [
        _Step(fmt, accumulator, StepFormats((fmt,), (accumulator,)), all_operands(fmt, accumulator)).check(
            1 << (2 * fmt.width + accumulator.width)
        )
        for fmt, accumulator in formats
    ]


def sampled_step_checks(modes: Sequence[tuple[FloatFormat, FloatFormat]] = MODES, sample: int = SAMPLE) -> list[Check]:
    """Return one check for each pair of formats of the core for three formats: operands of `drawn_operands`."""
    return [_Step(*pair, _SHARED, biased_operands(*pair)).check(sample) for pair in modes]


def tiny_rounded_checks(fmt: FloatFormat = _E3M2) -> list[Check]:
    """Return one check for each mode of a tiny format: all (a, b, acc), with a random number each."""
    formats, operands = StepFormats((fmt,), (fmt,), tuple(Rounding), random_bits=3), all_operands(fmt, fmt)
    return [_Step(fmt, fmt, formats, operands, mode).check(1 << 3 * fmt.width) for mode in Rounding]


def sampled_rounded_checks(sample: int = ROUNDED_SAMPLE) -> list[Check]:
    """Return one check for each mode of cbfloat16 into itself and into float32: operands of `drawn_operands`."""
    formats = StepFormats((CBFLOAT16,), (CBFLOAT16, FP32), tuple(Rounding))
    return [
        _Step(CBFLOAT16, accumulator, formats, biased_operands(CBFLOAT16, accumulator), mode).check(sample)
        for mode in Rounding
        for accumulator in formats.accumulators
    ]


def _number(code: int) -> Float16:
    return Float16.from_bytes(code.to_bytes(2, "big"))


def fused_steps(operands: Sequence[NDArray[np.uint16]]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return SoftFloat's codes and flags of ``a * b + acc`` on float16 codes; every NaN becomes the contract's."""
    codes, flags = [], []
    with _LOCK:
        softfloatpy.set_rounding_mode(RoundingMode.NEAR_EVEN)
        softfloatpy.set_tininess_mode(TininessMode.AFTER_ROUNDING)
        for a, b, acc in zip(*(each.tolist() for each in operands), strict=True):
            softfloatpy.set_exception_flags(0)
            made = softfloatpy.f16_mul_add(_number(a), _number(b), _number(acc))
            codes.append(int.from_bytes(made.to_bytes(), "big"))
            flags.append(softfloatpy.get_exception_flags())
    results = np.array(codes, np.uint16)
    # SoftFloat keeps payloads and signs of NaNs.
    return np.where(FP16.is_nan(results), np.uint16(FP16.nan), results), np.array(flags, np.uint8)
