"""Proofs about the fused step in every rounding mode: of small formats whole, of cbfloat16 from its product on.

The first half of a step, up to the product, knows no mode. `lab.proofs.steps` says that it is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from golden import reference
from golden.formats import CBFLOAT16, FP32, FloatFormat
from golden.rounding import Rounding
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from lab.netlists.netlist import Instance
from lab.netlists.yosys import netlist_of
from lab.proofs import by_interval_in_modes, by_theory, cut
from lab.proofs.by_theory import SMT_MODES
from lab.proofs.converters import say_result
from lab.proofs.cut import Mode
from lab.proofs.halves import SecondHalf
from lab.proofs.lanes import no_ranks
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.stored import lane_is_step
from lab.proofs.terms import DOUBLE, Sort, bits, equal, refute, split_result

__all__ = ["RoundedStep", "rounded_step_proofs"]

_EVERY = tuple(Rounding)
#: Proven whole, multiplier included, with few random bits.
_SMALL, _FEW = FloatFormat("1-4-3", 4, 3), 6
#: Released widths.
_OWN = StepFormats((CBFLOAT16,), (CBFLOAT16, FP32), _EVERY)
_THEORY, _INTERVAL = "fp.fma", "interval"


@dataclass(frozen=True)
class RoundedStep(Mode):
    """A choice of the formats of a step, and of its rounding mode.

    Parameters
    ----------
    rounding : Rounding
    """

    rounding: Rounding = Rounding.NEAREST_EVEN

    def chosen(self, netlist: Instance) -> str:
        """Assert formats and mode."""
        code = bits(self.rounding.value, netlist.inputs["rounding"])
        return super().chosen(netlist) + f"(assert {equal(netlist.port('rounding'), code)})\n"

    def random(self, unit: Instance) -> dict[str, Any]:
        """Return the random number as the specification takes it, in the mode that needs one: any there is."""
        if self.rounding is not Rounding.STOCHASTIC:
            return {}
        return {"random": unit.port("random"), "random_bits": self.formats.random_bits}

    def explain(self, ports: Mapping[str, int]) -> str:
        """Say golden's result for a solution of the whole step."""
        options: dict[str, Any] = {"rounding": self.rounding}
        if self.rounding is Rounding.STOCHASTIC:
            options |= {"random": ports["random"], "random_bits": self.formats.random_bits}
        codes = (ports[name] for name in ("a", "b", "acc"))
        wanted = reference.multiply_accumulate(*codes, operand=self.operand, accumulator=self.accumulator, **options)
        return say_result(wanted, ports["o"], self.accumulator, self.formats.accumulator_width)


def rounded_step_proofs() -> Iterator[Proof]:
    """Yield the proofs: every mode of a small format whole, of cbfloat16 into itself and into float32 behind a cut."""
    small = StepFormats((_SMALL,), (_SMALL,), _EVERY, _FEW)
    for rounding in _EVERY:
        step = RoundedStep(small, _SMALL, _SMALL, rounding)
        specifications = [(_INTERVAL, BITWUZLA)] + ([(_THEORY, Z3_CADICAL)] if rounding in SMT_MODES else [])
        for specification, engine in specifications:
            claim, title = f"step/modes/whole/{_SMALL}/{rounding}/{specification}", f"{_SMALL}, {rounding} of all"
            build = partial(_whole, step, specification)
            fast = engine == BITWUZLA
            yield Proof(
                claim, "step: whole, any mode", title, specification, engine, build, 600, fast=fast,
                explain=step.explain,
            )  # fmt: skip
        for accumulator in _OWN.accumulators:
            yield _own_form(RoundedStep(_OWN, CBFLOAT16, accumulator, rounding))
            own = RoundedStep(_OWN, CBFLOAT16, accumulator, rounding)
            claim = f"step/modes/second_half/{own}/{rounding}".replace(" ", "_")
            build, title = partial(_second_half, own, DOUBLE), f"{own}, {rounding} of all"
            yield Proof(claim, "step: second half, any mode", title, _INTERVAL, BITWUZLA, build, timeout=900)


def _own_form(step: RoundedStep) -> Proof:
    claim, title = f"lane/own_form/modes/{step}/{step.rounding}".replace(" ", "_"), f"{step}, {step.rounding} of all"
    build = partial(lane_is_step, no_ranks(_OWN.operands, roundings=_EVERY), step)
    return Proof(claim, "lane: own form", title, "step", BITWUZLA, build, timeout=300)


def _whole(step: RoundedStep, specification: str, folder: Path) -> str:
    unit = netlist_of(FusedStep(step.formats), folder).instance()
    text = unit.text + unit.shown + step.chosen(unit) + split_result(unit, step.accumulator)
    a, b, acc = (unit.port(name) for name in ("a", "b", "acc"))
    given = (a, b, acc, step.operand, step.accumulator, "out", "flags")
    if specification == _THEORY:
        return text + by_theory.fused_step(*given, SMT_MODES[step.rounding]) + refute("correct")
    return text + by_interval_in_modes.fused_step(*given, step.rounding, **step.random(unit)) + refute("correct")


def _second_half(step: RoundedStep, carrier: Sort, folder: Path) -> str:
    unit = netlist_of(SecondHalf(step.formats), folder).instance()

    def specification(acc: str, accumulator: FloatFormat, out: str, flags: str, carrier: Sort) -> str:
        options = step.random(unit)
        return by_interval_in_modes.addition(acc, accumulator, out, flags, step.rounding, carrier=carrier, **options)

    return cut.second_half(unit, step, carrier, specification=specification)
