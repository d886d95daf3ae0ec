"""What is proven of the fused step: every operand format into itself and into float32, and all of them in one core."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from golden.formats import BF16, CB16, CBFLOAT16, FP16, FP32
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from sim.formal import cut
from sim.formal.cut import Mode
from sim.formal.halves import FirstHalf, SecondHalf
from sim.formal.lanes import no_ranks
from sim.formal.proof import BITWUZLA, Z3_CADICAL, Proof
from sim.formal.stored import lane_is_step
from sim.formal.terms import DOUBLE, Sort
from sim.formal.yosys import EVERTED, netlist_of

__all__ = ["CONFIGURABLE", "CORES", "MODES", "step_proofs"]

#: What the multiply-accumulate unit with several formats is built around.
CONFIGURABLE = StepFormats((CBFLOAT16, FP16, BF16), (CBFLOAT16, FP16, BF16, FP32))
_OPERANDS = (CBFLOAT16, FP16, BF16, CB16)
#: The formats of a core, and what it is called: of one level, of all levels, of all levels and several formats.
CORES = {
    **{StepFormats((operand,), (operand,)): f"{operand}, level 2" for operand in _OPERANDS},
    **{StepFormats((operand,), (FP32,)): f"{operand}, level 0" for operand in _OPERANDS},
    **{StepFormats((operand,), (operand, FP32)): str(operand) for operand in _OPERANDS},
    CONFIGURABLE: "configurable",
}
#: Every mode of every core.
MODES = [
    Mode(formats, operand, accumulator)
    for formats in CORES
    for operand in formats.operands
    for accumulator in (operand, FP32)
    if accumulator in formats.accumulators
]
#: bitwuzla knows no smaller format that holds the products; z3 gets the smallest, as wide as products and midpoints.
_CARRIERS = {BITWUZLA: DOUBLE, Z3_CADICAL: Sort(10, 27)}


def step_proofs() -> Iterator[Proof]:
    """Yield the proofs of the combinational step: of its halves, that they are the step, and of the whole."""
    for formats, core in CORES.items():
        for engine in _CARRIERS:
            build = partial(_joined, formats)
            yield Proof("step: joined halves", core, "step", engine, build, timeout=120, fast=True)
    for mode in MODES:
        name = f"{CORES[mode.formats]}: {mode}"
        for engine, carrier in _CARRIERS.items():
            build = partial(_first_half, mode, carrier)
            yield Proof("step: first half", name, "exact product", engine, build, timeout=120, fast=True)
        if len(mode.formats.accumulators) > 1:
            for engine in _CARRIERS:
                build = partial(lane_is_step, no_ranks(mode.formats.operands), mode)
                yield Proof("lane: own form", name, "step", engine, build, timeout=300, fast=engine == BITWUZLA)
        for engine, carrier in _CARRIERS.items():
            build = partial(_second_half, mode, carrier)
            # Those of units with all levels of a single format; the others are the same step in other widths.
            fast = engine == BITWUZLA and len(mode.formats.operands) == 1 and len(mode.formats.accumulators) == 2
            yield Proof("step: second half", name, "interval", engine, build, timeout=900, fast=fast)


def _joined(formats: StepFormats, folder: Path) -> str:
    step, first = (netlist_of(core(formats), folder, EVERTED) for core in (FusedStep, FirstHalf))
    return cut.joined(step, first, netlist_of(SecondHalf(formats), folder))


def _first_half(mode: Mode, carrier: Sort, folder: Path) -> str:
    return cut.first_half(netlist_of(FirstHalf(mode.formats), folder).instance(), mode, carrier)


def _second_half(mode: Mode, carrier: Sort, folder: Path) -> str:
    return cut.second_half(netlist_of(SecondHalf(mode.formats), folder).instance(), mode, carrier)
