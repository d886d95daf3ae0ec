"""Proofs about units that flush subnormals: units that keep them, with two rules of NUMERICS section 12.

The units that keep subnormals are proven against specifications of numbers. Flushing changes two things, which the
rules state in terms of codes:

- a subnormal operand is the zero of its sign;
- a tiny result is the zero of its sign, underflowed and inexact. A result is tiny if the unit that keeps subnormals
  says so (which also judges by an unbounded exponent), or if that unit's result is exact and a subnormal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from golden.flags import Flag
from golden.formats import BF16, CBFLOAT16, CONVERSIONS, FP16, FP32, NARROW_FORMATS, WIDE_FORMATS, FloatFormat
from golden.rounding import Rounding
from hdl.cores.conversion import Convert
from hdl.cores.fused_step import FusedStep
from hdl.cores.result import FLAG_BITS
from hdl.cores.step_formats import StepFormats
from lab.netlists.yosys import EVERTED, netlist_of
from lab.proofs.cut import Mode, product_facts
from lab.proofs.lanes import lane_pipeline, no_ranks
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.stored import lane_is_step
from lab.proofs.terms import bits, both, define, either, equal, inverse, is_nan, refute, sign_bit, slice_of

__all__ = ["flushed_proofs"]

_ALL = tuple(Rounding)
_NEAREST = (Rounding.NEAREST_EVEN,)
_TINY = int(Flag.UNDERFLOW | Flag.INEXACT)
#: Stages of the lanes that are compared with one without ranks: one, all, and some in between.
_DEPTHS = (1, 4, 8, 13)


def flushed_proofs() -> Iterator[Proof]:
    """Yield the proofs of the converters, of the steps, and of the lanes that flush subnormals."""
    for source, destination in permutations((*WIDE_FORMATS, *NARROW_FORMATS), 2):
        for modes, named in ((_NEAREST, "to nearest"), (_ALL, "every mode")):
            name = f"flushed/converter/{source}_to_{destination}/{named.replace(' ', '_')}"
            title = f"{source} to {destination}, {named}"
            build = partial(_converter, source, destination, modes)
            fast = (source, destination) in CONVERSIONS and CBFLOAT16 in (source, destination)
            yield Proof(name, "flushed: converter", title, "the one that keeps", BITWUZLA, build, 120, fast=fast)
    for operand in (CBFLOAT16, FP16, BF16):
        for accumulator, modes in ((operand, _NEAREST), (FP32, _NEAREST), (operand, _ALL)):
            mode = Mode(StepFormats((operand,), (operand, FP32), modes), operand, accumulator)
            named = "to nearest" if modes == _NEAREST else "every mode"
            for engine in (BITWUZLA, Z3_CADICAL) if modes == _NEAREST else (BITWUZLA,):
                name = f"flushed/step/{operand}_into_{accumulator}/{named.replace(' ', '_')}"
                build = partial(_step, mode)
                fast = operand == CBFLOAT16 and engine == BITWUZLA and modes == _NEAREST
                yield Proof(
                    name, "flushed: step", f"{mode}, {named}", "the one that keeps", engine, build, 600, fast=fast
                )
    alone = no_ranks((CBFLOAT16,), subnormals="flush")
    for accumulator in alone.accumulators:
        mode = Mode(alone.formats, CBFLOAT16, accumulator)
        name, build = f"flushed/lane/own_form/{CBFLOAT16}_into_{accumulator}", partial(lane_is_step, alone, mode)
        yield Proof(name, "flushed: lane", f"own form, {mode}", "step", BITWUZLA, build, 300, fast=True)
    for stages in _DEPTHS:
        build = partial(lane_pipeline, (CBFLOAT16,), stages, subnormals="flush")
        title = f"{CBFLOAT16}, {stages} stage{'s' * (stages > 1)}"
        name = f"flushed/lane/stages_{stages}"
        yield Proof(
            name, "flushed: lane", title, "lane without ranks", BITWUZLA, build, 300, fast=stages == _DEPTHS[-1]
        )


def _is_subnormal(code: str, fmt: FloatFormat) -> str:
    field = slice_of(code, fmt.width - 2, fmt.fraction_bits)
    fraction = slice_of(code, fmt.fraction_bits - 1, 0)
    return both(
        equal(field, bits(0, fmt.exponent_bits)),
        inverse(equal(fraction, bits(0, fmt.fraction_bits))),
        inverse(is_nan(code, fmt)),
    )


def _zero(negative: str, fmt: FloatFormat) -> str:
    """Return the zero of a sign; a format may have only one zero."""
    if not fmt.has_negative_zero:
        return bits(0, fmt.width)
    return f"(ite {negative} {bits(fmt.sign_mask, fmt.width)} {bits(0, fmt.width)})"


def _flushed_result(code: str, flags: str, negative: str, fmt: FloatFormat) -> str:
    """Define ``wanted`` and ``wanted_flags``, from a result and flags that keep subnormals."""
    place = Flag.UNDERFLOW.bit_length() - 1
    raised = equal(slice_of(flags, place, place), "#b1")
    text = define("is_tiny", "Bool", either(raised, _is_subnormal(code, fmt)))
    text += define("wanted", f"(_ BitVec {fmt.width})", f"(ite is_tiny {_zero(negative, fmt)} {code})")
    return text + define("wanted_flags", f"(_ BitVec {FLAG_BITS})", f"(ite is_tiny {bits(_TINY, FLAG_BITS)} {flags})")


def _converter(source: FloatFormat, destination: FloatFormat, modes: tuple[Rounding, ...], folder: Path) -> str:
    """Return a formula with a solution if a converter that flushes breaks one of the two rules."""
    given: dict[str, Any] = {"roundings": modes}
    unit = netlist_of(Convert(source, destination, **given, flushes=True), folder).instance("unit")
    shared = {name: unit.port(name) for name in unit.inputs}
    kept = netlist_of(Convert(source, destination, **given), folder).instance("kept", given=shared)
    code, width = unit.port("code"), destination.width
    out, flags = slice_of(kept.port("o"), width - 1, 0), slice_of(kept.port("o"), width + FLAG_BITS - 1, width)
    negative = sign_bit(code, source)
    text = unit.text + unit.shown + kept.text + _flushed_result(out, flags, negative, destination)
    nothing = f"(concat {bits(0, FLAG_BITS)} {_zero(negative, destination)})"
    wanted = f"(ite {_is_subnormal(code, source)} {nothing} (concat wanted_flags wanted))"
    if len(modes) > 1:  # of a code of no mode, everything is 0
        chosen = slice_of(unit.port("controls"), 2, 0)
        is_known = either(*(equal(chosen, bits(mode.value, 3)) for mode in modes))
        wanted = f"(ite {is_known} {wanted} {bits(0, width + FLAG_BITS)})"
    return text + refute(equal(unit.port("o"), wanted))


def _step(mode: Mode, folder: Path) -> str:
    """Return a formula with a solution if a step that flushes breaks one of the two rules.

    One product replaces the multipliers of both steps, which are left out: their factors are equal, or both steps have
    a factor of zero.
    """
    formats, fmt = mode.formats, mode.accumulator
    unit = netlist_of(FusedStep(replace(formats, flushes=True)), folder, EVERTED).instance("unit")
    text = unit.text + unit.shown + mode.chosen(unit)
    given = {name: unit.port(name) for name in unit.inputs}
    if len(formats.roundings) > 1:  # units refuse other codes
        known = (equal(unit.port("rounding"), bits(each.value, 3)) for each in formats.roundings)
        text += f"(assert {either(*known)})\n"
    for name, its_format in (("a", mode.operand), ("b", mode.operand), ("acc", fmt)):
        code = slice_of(given[name], its_format.width - 1, 0)
        counted = f"(ite {_is_subnormal(code, its_format)} {_zero(sign_bit(code, its_format), its_format)} {code})"
        text += define(f"counted_{name}", f"(_ BitVec {its_format.width})", counted)
        if spare := unit.inputs[name] - its_format.width:
            given[name] = f"(concat {bits(0, spare)} counted_{name})"
        else:
            given[name] = f"counted_{name}"
    kept = netlist_of(FusedStep(formats), folder, EVERTED).instance("kept", given=given)
    own, others = ([each.port(f"multiplier.{name}") for name in ("a", "b")] for each in (unit, kept))
    text += kept.text + product_facts(own, unit.port("multiplier.o"), formats.operand_precision)
    zero = bits(0, formats.operand_precision)
    alike = both(*(equal(one, other) for one, other in zip(own, others, strict=True)))
    have_zeros = both(*(either(*(equal(factor, zero) for factor in each)) for each in (own, others)))
    high = unit.outputs["o"] - 1
    out, flags = slice_of(kept.port("o"), fmt.width - 1, 0), slice_of(kept.port("o"), high, high - FLAG_BITS + 1)
    text += _flushed_result(out, flags, sign_bit(out, fmt), fmt)
    claims = [
        either(alike, have_zeros),
        equal(slice_of(unit.port("o"), fmt.width - 1, 0), "wanted"),
        equal(slice_of(unit.port("o"), high, high - FLAG_BITS + 1), "wanted_flags"),
    ]
    return text + refute(both(*claims))
