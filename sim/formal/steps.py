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
from sim.formal.proof import BITWUZLA, Z3_CADICAL, Proof
from sim.formal.terms import Sort
from sim.formal.yosys import EVERTED, netlist_of

__all__ = ["CONFIGURABLE", "MODES", "step_proofs"]

#: What the multiply-accumulate unit with several formats is built around.
CONFIGURABLE = StepFormats((CBFLOAT16, FP16, BF16), (CBFLOAT16, FP16, BF16, FP32))
_SINGLE = [
    Mode(StepFormats((operand,), (accumulator,)), operand, accumulator)
    for operand in (CBFLOAT16, FP16, BF16, CB16)
    for accumulator in (operand, FP32)
]
_CHOSEN = [
    Mode(CONFIGURABLE, operand, accumulator) for operand in CONFIGURABLE.operands for accumulator in (operand, FP32)
]
#: Every mode of every core that is proven.
MODES = [*_SINGLE, *_CHOSEN]
#: bitwuzla knows no smaller format that holds the products; z3 gets the smallest, as wide as products and midpoints.
_CARRIERS = {BITWUZLA: Sort(11, 53), Z3_CADICAL: Sort(10, 27)}


def step_proofs() -> Iterator[Proof]:
    """Yield the proofs of the combinational step: of its halves, that they are the step, and of the whole."""
    for formats in dict.fromkeys(mode.formats for mode in MODES):
        for engine in (BITWUZLA, Z3_CADICAL):
            named = str(formats.operands[0]) if len(formats.operands) == 1 else "configurable"
            yield Proof(
                "step: joined",
                f"{named}, {len(formats.accumulators)} accumulator format{'s' * (len(formats.accumulators) > 1)}"
                f" with {formats.accumulators[-1]}",
                "same netlist",
                engine,
                partial(_joined, formats),
                timeout=120,
                fast=True,
            )
    for mode in MODES:
        for engine, carrier in _CARRIERS.items():
            name = f"{mode}{' (configurable)' * (mode.formats == CONFIGURABLE)}"
            yield Proof(
                "step: first half",
                name,
                "exact product",
                engine,
                partial(_first_half, mode, carrier),
                timeout=120,
                fast=True,
            )
            yield Proof(
                "step: second half",
                name,
                "interval",
                engine,
                partial(_second_half, mode, carrier),
                timeout=900,
                fast=engine == BITWUZLA and mode.formats != CONFIGURABLE,
            )


def _joined(formats: StepFormats, folder: Path) -> str:
    step, first = (netlist_of(core(formats), folder, EVERTED) for core in (FusedStep, FirstHalf))
    return cut.joined(step, first, netlist_of(SecondHalf(formats), folder))


def _first_half(mode: Mode, carrier: Sort, folder: Path) -> str:
    return cut.first_half(netlist_of(FirstHalf(mode.formats), folder).instance(), mode, carrier)


def _second_half(mode: Mode, carrier: Sort, folder: Path) -> str:
    return cut.second_half(netlist_of(SecondHalf(mode.formats), folder).instance(), mode, carrier)
