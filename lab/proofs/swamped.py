"""Proofs that a step reports correctly whether its product was lost whole (NUMERICS section 11).

The specification compares numbers: the addends are finite, the product is not 0, and the result has the accumulator's
value. The result is the step's own, which other proofs show to be right. So nothing needs to be rounded here: the proof
shows that the few bits which the step keeps of its addends say the same. As in `lab.proofs.cut`, one proof covers the
second half of a step, for all products that the first half hands on; another shows that both halves are the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from golden.formats import BF16, CBFLOAT16, FP16, FP32, FloatFormat
from golden.rounding import Rounding
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from lab.netlists.netlist import Instance
from lab.netlists.yosys import EVERTED, netlist_of
from lab.proofs import cut
from lab.proofs.cut import Mode
from lab.proofs.halves import FirstHalf, SecondHalf
from lab.proofs.lanes import no_ranks
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.stored import lane_is_step
from lab.proofs.terms import bits, both, either, equal, inverse, is_infinite, is_nan, refute, slice_of

__all__ = ["swamped_proofs"]

_HALF = (CBFLOAT16, FP16, BF16)
#: The formats of a core, and its part of an id: one format and all levels; several; every mode.
_CORES = {
    StepFormats((CBFLOAT16,), (CBFLOAT16, FP32)): "cbfloat16",
    StepFormats(_HALF, (*_HALF, FP32)): "configurable",
    StepFormats((CBFLOAT16,), (CBFLOAT16, FP32), tuple(Rounding)): "modes",
    # One bit of fraction: two codes differ in their exponent fields.
    StepFormats((FloatFormat("1-3-1", 3, 1),), (FloatFormat("1-3-1", 3, 1), FP32)): "1-3-1",
}


def swamped_proofs() -> Iterator[Proof]:
    """Yield the proofs of a few cores, in every choice of formats."""
    for formats, core in _CORES.items():
        if formats.is_nearest_even:
            build = partial(_joined, formats)
            claim, title, fast = f"step/swamped/{core}/joined", f"{core}, joined halves", core == "cbfloat16"
            yield Proof(claim, "step: swamped", title, "step", BITWUZLA, build, timeout=120, fast=fast)
        for operand in formats.operands:
            for accumulator in (operand, FP32):
                mode = Mode(formats, operand, accumulator)
                claim = f"step/swamped/{core}/{operand}_into_{accumulator}"
                for engine in (BITWUZLA, Z3_CADICAL) if core == "cbfloat16" else (BITWUZLA,):
                    fast = core == "cbfloat16" and engine == BITWUZLA
                    title, build = f"{core}: {mode}", partial(_half, mode)
                    yield Proof(claim, "step: swamped", title, "same value", engine, build, timeout=600, fast=fast)

    for accumulator in (CBFLOAT16, FP32):
        parameters = no_ranks((CBFLOAT16,), counters=True)
        mode = Mode(parameters.formats, CBFLOAT16, accumulator)
        build = partial(lane_is_step, parameters, mode)
        claim, title = f"lane/own_form/counters/{mode.operand}_into_{accumulator}", f"{mode}, with counters"
        yield Proof(claim, "lane: own form", title, "step", BITWUZLA, build, timeout=300, fast=True)


def _joined(formats: StepFormats, folder: Path) -> str:
    step = netlist_of(FusedStep(formats, with_swamped=True), folder, EVERTED)
    first = netlist_of(FirstHalf(formats), folder, EVERTED)
    return cut.joined(step, first, netlist_of(SecondHalf(formats, with_swamped=True), folder))


def _half(mode: Mode, folder: Path) -> str:
    """Return a formula with a solution if the second half's answer contradicts the values of its numbers."""
    half = netlist_of(SecondHalf(mode.formats, with_swamped=True), folder).instance()
    text = half.text + half.shown + mode.chosen(half) + cut.contract(half, mode) + "(assert contract)\n"
    text += "".join(f"(assert {condition})\n" for condition in _modes(half, mode))
    wanted = is_lost(half, mode.accumulator)
    return text + refute(equal(equal(half.port("swamped"), "#b1"), wanted))


def _modes(half: Instance, mode: Mode) -> Iterator[str]:
    """Yield the premise that the rounding mode, if there is a choice, is one that was built."""
    if "rounding" in half.inputs:
        yield either(*(equal(half.port("rounding"), bits(each.value, 3)) for each in mode.formats.roundings))


def is_lost(half: Instance, fmt: FloatFormat) -> str:
    """Tell whether a product that is no zero and an accumulator are finite, and the result has the latter's value."""
    before, after = (slice_of(half.port(name), fmt.width - 1, 0) for name in ("acc", "o"))
    is_zero = [equal(slice_of(code, fmt.width - 2, 0), bits(0, fmt.width - 1)) for code in (before, after)]
    return both(
        inverse(either("is_zero_product", "is_special_product")),
        inverse(either(is_infinite(before, fmt), is_nan(before, fmt))),
        either(equal(before, after), both(*is_zero)),
    )
