"""Proofs about the fused step: every operand format into itself and into float32, and all of them in one core.

In every rounding mode, the proofs cover whole steps of a small format, and steps of cbfloat16 from the product on. The
first half of a step does not depend on the mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from golden import reference
from golden.formats import BF16, CB16, CBFLOAT16, FP32, HALF_FORMATS, FloatFormat
from golden.rounding import Rounding
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from lab.netlists.yosys import EVERTED, netlist_of
from lab.proofs import by_interval, by_theory, cut
from lab.proofs.by_theory import SMT_MODES
from lab.proofs.converters import say_result
from lab.proofs.cut import Mode
from lab.proofs.halves import FirstHalf, SecondHalf
from lab.proofs.lanes import no_ranks
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.stored import lane_is_step
from lab.proofs.terms import DOUBLE, Sort, refute, split_result

__all__ = ["CONFIGURABLE", "CORES", "MODES", "explain_sum", "rounded_step_proofs", "step_proofs"]

_SECOND_HALF = "step: second half"
#: The core of the multiply-accumulate unit with several formats.
CONFIGURABLE = StepFormats(HALF_FORMATS, (*HALF_FORMATS, FP32))
_OPERANDS = (*HALF_FORMATS, CB16)
#: The formats of a core, and its part of an id: of one level, of all levels, of all levels and several formats.
CORES = {
    **{StepFormats((operand,), (operand,)): f"{operand}_level_2" for operand in _OPERANDS},
    **{StepFormats((operand,), (FP32,)): f"{operand}_level_0" for operand in _OPERANDS},
    **{StepFormats((operand,), (operand, FP32)): str(operand) for operand in _OPERANDS},
    StepFormats(CONFIGURABLE.operands, CONFIGURABLE.operands): "configurable_level_2",
    StepFormats(CONFIGURABLE.operands, (FP32,)): "configurable_level_0",
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
#: For these the whole step is also proven at once: they are so small that the multiplier is no obstacle.
_SMALL = (FloatFormat("1-4-3", 4, 3), FloatFormat("1-5-2", 5, 2), FloatFormat("1-4-3 bias 11", 4, 3, 11))
#: The first of them in every mode, with few random bits; and released widths.
_IN_MODES = StepFormats(_SMALL[:1], _SMALL[:1], tuple(Rounding), 6)
_OWN = StepFormats((CBFLOAT16,), (CBFLOAT16, FP32), tuple(Rounding))
_SPECIFICATIONS = {"fp.fma": Z3_CADICAL, "interval": BITWUZLA}
#: A proof that would take too long is split by the distance of the exponents, at these distances.
_DISTANCES: dict[tuple[FloatFormat, FloatFormat], tuple[int | None, ...]] = {
    (BF16, FP32): (None, -40, -14, -2, 3, 40, None)
}
#: bitwuzla knows no smaller format that holds the products; z3 gets the smallest, as wide as products and midpoints.
_CARRIERS = {BITWUZLA: DOUBLE, Z3_CADICAL: Sort(10, 27)}


def step_proofs() -> Iterator[Proof]:
    """Yield the proofs of the combinational step: of its halves, that they are the step, and of the whole."""
    for formats, core in CORES.items():
        for engine in _CARRIERS:
            build = partial(_joined, formats)
            claim, title = f"step/joined/{core}", _title(core)
            yield Proof(claim, "step: joined halves", title, "step", engine, build, timeout=120, fast=True)
    for mode in MODES:
        part, title = f"{CORES[mode.formats]}/{_part(mode)}", f"{_title(CORES[mode.formats])}: {mode}"
        for engine, carrier in _CARRIERS.items():
            build = partial(_first_half, mode, carrier)
            claim = f"step/first_half/{part}"
            yield Proof(claim, "step: first half", title, "exact product", engine, build, timeout=120, fast=True)
        if mode.formats == no_ranks(mode.formats.operands).formats:
            for engine in _CARRIERS:
                build = partial(lane_is_step, no_ranks(mode.formats.operands), mode)
                claim, fast = f"lane/own_form/{part}", engine == BITWUZLA
                yield Proof(claim, "lane: own form", title, "step", engine, build, timeout=300, fast=fast)
        yield from _second_half_proofs(mode, f"step/second_half/{part}", title)
    for operand, accumulator in itertools.product(_SMALL, repeat=2):
        mode = Mode(StepFormats((operand,), (accumulator,)), operand, accumulator)
        for named, engine in _SPECIFICATIONS.items():
            build, explain = partial(_whole, mode, named), partial(_explain, mode)
            claim, fast = f"step/whole/{_part(mode)}/{named}", operand == accumulator
            yield Proof(claim, "step: whole", str(mode), named, engine, build, 600, fast=fast, explain=explain)


def rounded_step_proofs() -> Iterator[Proof]:
    """Yield the proofs in every mode."""
    for rounding in Rounding:
        (small,) = _IN_MODES.operands
        mode = Mode(_IN_MODES, small, small, rounding)
        for named, engine in reversed(_SPECIFICATIONS.items()):
            if engine == Z3_CADICAL and rounding not in SMT_MODES:
                continue
            claim, title = f"step/modes/whole/{small}/{rounding}/{named}", f"{small}, {rounding} of all"
            build, explain, fast = partial(_whole, mode, named), partial(_explain, mode), engine == BITWUZLA
            unit = "step: whole, any mode"
            yield Proof(claim, unit, title, named, engine, build, 600, fast=fast, explain=explain)
        for accumulator in _OWN.accumulators:
            mode = Mode(_OWN, CBFLOAT16, accumulator, rounding)
            claim, title = f"{_part(mode)}/{rounding}", f"{mode}, {rounding} of all"
            build = partial(lane_is_step, no_ranks(_OWN.operands, roundings=_OWN.roundings), mode)
            yield Proof(f"lane/own_form/modes/{claim}", "lane: own form", title, "step", BITWUZLA, build, timeout=300)
            build = partial(_second_half, mode, DOUBLE, (None, None))
            unit = "step: second half, any mode"
            yield Proof(f"step/modes/second_half/{claim}", unit, title, "interval", BITWUZLA, build, timeout=900)


def _part(mode: Mode) -> str:
    """Return a mode as a part of an id."""
    return f"{mode.operand}_into_{mode.accumulator}".replace(" ", "_")


def _title(core: str) -> str:
    return core.replace("_level_", ", level ")


def _second_half_proofs(mode: Mode, claim: str, title: str) -> Iterator[Proof]:
    explain = partial(explain_sum, mode)
    if mode.formats != mode.model.formats:
        for engine in _CARRIERS:
            build = partial(_same_second_half, mode)
            other = f"that of {mode.operand}"
            yield Proof(claim, _SECOND_HALF, title, other, engine, build, 120, fast=True, explain=explain)
        return
    cuts = _DISTANCES.get((mode.operand, mode.accumulator), (None, None))
    for distances in itertools.pairwise(cuts):
        first, end = ("" if limit is None else str(limit) for limit in distances)
        case = "" if cuts == (None, None) else f"/distances_{first}..{end}"
        named = title + case.replace("/distances_", ", distances ")
        for engine, carrier in _CARRIERS.items():
            build = partial(_second_half, mode, carrier, distances)
            # Half a minute each: one format of four is in the fast tier.
            fast = engine == Z3_CADICAL and mode.operand == CBFLOAT16
            yield Proof(claim + case, _SECOND_HALF, named, "interval", engine, build, 900, fast, explain)


def _joined(formats: StepFormats, folder: Path) -> str:
    step, first = (netlist_of(core(formats), folder, EVERTED) for core in (FusedStep, FirstHalf))
    return cut.joined(step, first, netlist_of(SecondHalf(formats), folder))


def _first_half(mode: Mode, carrier: Sort, folder: Path) -> str:
    return cut.first_half(netlist_of(FirstHalf(mode.formats), folder).instance(), mode, carrier)


def _same_second_half(mode: Mode, folder: Path) -> str:
    unit, model = (netlist_of(SecondHalf(formats), folder) for formats in (mode.formats, mode.model.formats))
    return cut.same_second_half(unit.instance(), model, mode)


def _second_half(mode: Mode, carrier: Sort, distances: cut.Distances, folder: Path) -> str:
    return cut.second_half(netlist_of(SecondHalf(mode.formats), folder).instance(), mode, carrier, distances)


def _whole(mode: Mode, specification: str, folder: Path) -> str:
    unit = netlist_of(FusedStep(mode.formats), folder).instance()
    text = unit.text + unit.shown + mode.chosen(unit) + split_result(unit, mode.accumulator)
    a, b, acc = (unit.port(name) for name in ("a", "b", "acc"))
    given = (a, b, acc, mode.operand, mode.accumulator, "out", "flags")
    if specification == "fp.fma":
        return text + by_theory.fused_step(*given, SMT_MODES[mode.rounding]) + refute("correct")
    return text + by_interval.fused_step(*given, mode.rounding, **mode.given(unit.port("random"))) + refute("correct")


def _explain(mode: Mode, ports: Mapping[str, int]) -> str:
    """Say golden's result for a solution of the whole step."""
    a, b, acc = (ports[name] for name in ("a", "b", "acc"))
    options: dict[str, Any] = {"operand": mode.operand, "accumulator": mode.accumulator, "rounding": mode.rounding}
    wanted = reference.multiply_accumulate(a, b, acc, **options, **mode.given(ports.get("random")))
    return say_result(wanted, ports["o"], mode.accumulator, mode.formats.accumulator_width)


def explain_sum(mode: Mode, ports: Mapping[str, int]) -> str:
    """Say golden's result for a product, as the first half hands it on, and an accumulator."""
    formats, operand, accumulator = mode.formats, mode.operand, mode.accumulator
    z = reference.decode(ports["acc"] & (1 << accumulator.width) - 1, accumulator)
    if ports["is_nan"] or ports["is_infinite"] or z.kind is not reference.Class.FINITE:
        return "of NaNs and infinities the flags of the product say it all"
    size = formats.product_exponent_width
    exponent = ports["exponent"] - (ports["exponent"] >> size - 1 << size)
    place = exponent - 2 * operand.bias - 2 * (formats.operand_precision - 1)
    product = reference.Value(reference.Class.FINITE, ports["sign"], ports["significand"], place)
    total = product.as_fraction() + z.as_fraction()
    sign = int(total < 0) if total else product.sign & z.sign
    wanted = reference.round_value(reference.Value(reference.Class.FINITE, sign, abs(total), 0), accumulator)
    return say_result(wanted, ports["o"], accumulator, formats.accumulator_width)
