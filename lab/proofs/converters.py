"""Proofs about converters between any formats: to nearest, saturating, and with every mode chosen at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from golden import reference
from golden.formats import CBFLOAT16, CONVERSIONS, FP32, NARROW_FORMATS, WIDE_FORMATS, FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, MODE_BITS, NO_MODES, Rounding
from hdl.cores.conversion import Convert
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import netlist_of
from lab.proofs import by_interval, by_theory
from lab.proofs.by_theory import SMT_MODES
from lab.proofs.proof import BITWUZLA, CVC5, Z3_CADICAL, Proof
from lab.proofs.terms import bits, equal, refute, slice_of, split_result

__all__ = ["ChosenMode", "converter_proofs", "formula", "say_result"]

NEAREST = Rounding.NEAREST_EVEN
#: The specifications know formats with subnormals; the tests try every code of DLFloat16.
_FORMATS = (*WIDE_FORMATS, *NARROW_FORMATS)
#: All modes, to be chosen at run time.
_ALL = tuple(Rounding)
_THEORY, _INTERVAL = "to_fp", "interval"


@dataclass(frozen=True)
class ChosenMode:
    """A converter, and the mode in which it is looked at; None for a code of no mode."""

    source: FloatFormat
    destination: FloatFormat
    mode: Rounding | None = NEAREST
    modes: tuple[Rounding, ...] = (NEAREST,)
    overflow: str = "special"

    def build(self) -> Convert:
        """Return the core."""
        return Convert(self.source, self.destination, roundings=self.modes, overflow=self.overflow)

    @property
    def low(self) -> int:
        """Where the random number begins among the controls."""
        return MODE_BITS if len(self.modes) > 1 else 0

    def premise(self, unit: Instance) -> str:
        """Fix the code of the mode, if there is a choice."""
        if len(self.modes) == 1:
            return ""
        code = self.mode.value if self.mode else NO_MODES[0]
        given = slice_of(unit.port("controls"), MODE_BITS - 1, 0)
        return f"(assert {equal(given, bits(code, MODE_BITS))})\n"

    def random(self, unit: Instance) -> dict[str, Any]:
        """Return the random number as the specification takes it, in the mode that needs one."""
        if self.mode is not Rounding.STOCHASTIC:
            return {}
        high = self.low + DEFAULT_RANDOM_BITS - 1
        return {"random": slice_of(unit.port("controls"), high, self.low), "random_bits": DEFAULT_RANDOM_BITS}

    def explain(self, ports: Mapping[str, int]) -> str:
        """Say golden's result for a solution."""
        options: dict[str, Any] = {"rounding": self.mode, "overflow": self.overflow}
        if self.mode is Rounding.STOCHASTIC:
            options["random"] = ports["controls"] >> self.low
        wanted = reference.convert(ports["code"], self.source, self.destination, **options)
        return say_result(wanted, ports["o"], self.destination, self.destination.width)


def formula(
    netlist: Netlist, source: FloatFormat, destination: FloatFormat, specification: by_theory.Conversion
) -> str:
    """Return the claim that a netlist with the ports of `Convert` is wrong to nearest."""
    return formula_of(netlist, ChosenMode(source, destination), specification)


def formula_of(netlist: Netlist, chosen: ChosenMode, specification: by_theory.Conversion) -> str:
    """Return the claim that a netlist with the ports of `Convert` is wrong in a mode."""
    unit = netlist.instance()
    text = unit.text + unit.shown + split_result(unit, chosen.destination) + chosen.premise(unit)
    if chosen.mode is None:
        return text + refute(equal(unit.port("o"), bits(0, unit.outputs["o"])))
    given = (unit.port("code"), chosen.source, chosen.destination, "out", "flags", chosen.mode, chosen.overflow)
    return text + specification(*given, **chosen.random(unit)) + refute("correct")


def _build(chosen: ChosenMode, specification: by_theory.Conversion, folder: Path) -> str:
    return formula_of(netlist_of(chosen.build(), folder), chosen, specification)


def converter_proofs() -> Iterator[Proof]:
    """Yield the proofs of the combinational converters."""
    for source, destination in permutations(_FORMATS, 2):
        name = f"converter/{source}_to_{destination}"
        has_narrow = source in NARROW_FORMATS or destination in NARROW_FORMATS
        # Training uses these most; the rest is in the full tier.
        is_usual = has_narrow and not {source, destination}.isdisjoint({FP32, CBFLOAT16})
        if (source, destination) in CONVERSIONS:
            yield from _proofs(name, ChosenMode(source, destination), "", fast=True)
        elif has_narrow:
            yield from _proofs(name, ChosenMode(source, destination), "to nearest", fast=is_usual)
        saturating = ChosenMode(source, destination, overflow="saturate")
        yield from _proofs(f"{name}/saturating", saturating, "saturating", fast=False)
        for mode in (*_ALL, *([None] if NO_MODES else [])):
            chosen = ChosenMode(source, destination, mode, _ALL)
            words = f"{mode} of all" if mode else "code of no mode"
            yield from _proofs(f"{name}/modes/{mode or 'none'}", chosen, words, fast=is_usual and source is FP32)


def _proofs(name: str, chosen: ChosenMode, words: str, *, fast: bool) -> Iterator[Proof]:
    """Yield the proofs of a mode by both specifications; conversions without `words` are proven by every engine."""
    specifications: list[tuple[str, by_theory.Conversion, str]] = [
        (_INTERVAL if chosen.mode else "nothing", by_interval.conversion, BITWUZLA)
    ]
    if chosen.mode in SMT_MODES:
        engines = (CVC5,) if words else (CVC5, Z3_CADICAL)
        specifications += [(_THEORY, by_theory.conversion, engine) for engine in engines]
    for specification, conversion, engine in specifications:
        yield Proof(
            f"{name}/{specification}",
            "converter: any format, any mode" if words else "converter",
            f"{chosen.source} to {chosen.destination}" + (f", {words}" if words else ""),
            specification,
            engine,
            partial(_build, chosen, conversion),
            timeout=120,
            fast=fast and (engine == BITWUZLA or not words),
            explain=chosen.explain if chosen.mode else None,
        )


def say_result(wanted: tuple[int, int], given: int, fmt: FloatFormat, width: int) -> str:
    """Say golden's result, and who is wrong: the unit or the specification."""
    got = given & (1 << fmt.width) - 1, given >> width
    text = (
        f"golden.reference gives {wanted[0]:#x} with flags {int(wanted[1]):#x}, the unit {got[0]:#x} with {got[1]:#x}"
    )
    return text + (": the unit is right, the specification is not" if got == wanted else "")
