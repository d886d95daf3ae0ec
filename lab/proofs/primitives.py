"""Prove that helpers of `hdl` compute the same from primitives of FPGAs, by their models, as in the generic form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.catalogue import UNITS
from hdl.cores.carries import add_or_subtract, subtract_from_chosen
from hdl.cores.copies import copied
from hdl.cores.multiplier import Multiplier
from lab.netlists.yosys import COMBINATIONAL, SEQUENTIAL, netlist_of
from lab.proofs.pipelines import QUIET, following
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import both, equal, refute, slice_of

__all__ = ["carry_proofs", "copy_proofs", "primitive_proofs"]

_MODELS = {"ecp5": "mult18x18d.v", "nexus": "mult18x18.v"}
_RANKS = {
    (False, False): ("none",),
    (True, False): ("before",),
    (False, True): ("behind",),
    (True, True): ("before", "behind"),
}


def primitive_proofs() -> Iterator[Proof]:
    """Yield the proofs that the generic multiplier multiplies, and the ones of FPGAs' primitives, by their models."""
    for width in (8, 10, 11):
        for ranks in _RANKS:
            for engine in (BITWUZLA, Z3_CADICAL):
                yield Proof(
                    f"multiplier/width_{width}/ranks_{'_and_'.join(_RANKS[ranks])}",
                    "multiplier: MULT18X18D and MULT18X18",
                    f"{width} bits, {sum(ranks)} rank{'s' * (sum(ranks) != 1)} ({', '.join(_RANKS[ranks])})",
                    "bvmul",
                    engine,
                    partial(_primitive, width, ranks),
                    timeout=300,
                    fast=engine == BITWUZLA,
                )


def _primitive(width: int, ranks: tuple[bool, bool], folder: Path) -> str:
    """Return a formula with a solution if a multiplier, from any state, gives a wrong product after its ranks."""
    modelled = {kind: (Path(__file__).with_name(name),) for kind, name in _MODELS.items()}
    kinds: dict[str, tuple[Path, ...]] = {"generic": (), **modelled}
    text, products = "", []
    shared = f"(declare-const a (_ BitVec {width}))\n(declare-const b (_ BitVec {width}))\n"
    for kind, models in kinds.items():
        component = Multiplier(width, input_rank=ranks[0], output_rank=ranks[1], kind=kind)
        unit = netlist_of(component, folder, SEQUENTIAL, models)
        given = {name: term for name, term in (QUIET | {"a": "a", "b": "b"}).items() if name in unit.inputs}
        first = unit.instance(kind, given=given)
        cycles = [first, *following(unit, sum(ranks), kind, first, [{}] * sum(ranks))]
        text += "".join(cycle.text for cycle in cycles)
        products.append(cycles[-1].port("o"))
    product = f"(bvmul {' '.join(f'((_ zero_extend {width}) {name})' for name in 'ab')})"
    return shared + text + refute(both(*(equal(each, product) for each in products)))


class _Copies(wiring.Component):
    """A register in the generic form and as the primitive of an ECP5, without reset and with it."""

    def __init__(self) -> None:
        super().__init__({"value": In(1), "o": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        forms = [(kind, resets) for resets in (False, True) for kind in ("generic", "ecp5")]
        m.d.comb += self.o.eq(
            Cat(copied(m, f"{kind}_{resets}", self.value, kind, resets=resets) for kind, resets in forms)
        )
        return m


def copy_proofs() -> Iterator[Proof]:
    """Yield the proofs that a copy of a register, as a primitive, is the generic register."""
    for engine in (BITWUZLA, Z3_CADICAL):
        title, mode, fast = "copies of registers: TRELLIS_FF", "from any state on", engine == BITWUZLA
        yield Proof("copies/ecp5", title, mode, "the register", engine, _copies, timeout=60, fast=fast)


def _copies(folder: Path) -> str:
    """Return a formula with a solution if a form does not hold the last cycle's value, or 0 where a reset clears it."""
    unit = netlist_of(_Copies(), folder, SEQUENTIAL, (Path(__file__).with_name("trellis_ff.v"),))
    given = {"value": "value", "rst": "rst", "clk": "#b0"}
    now = unit.instance("now", given=given)
    later = unit.instance("later", given=given, held=now.registers)
    o = later.port("o")
    cleared = "(ite (= rst #b1) #b0 value)"
    wanted = ("value", "value", cleared, cleared)
    same = both(*(equal(slice_of(o, place, place), bit) for place, bit in enumerate(wanted)))
    text = "".join(f"(declare-const {name} (_ BitVec 1))\n" for name in ("value", "rst"))
    return text + now.text + later.text + refute(same)


class _Carries(wiring.Component):
    """Both additions of `hdl.cores.carries`, in the generic form and as primitives of an ECP5."""

    def __init__(self, width: int) -> None:
        words = ("if_zero", "if_one", "subtrahend", "augend", "addend")
        super().__init__(
            {
                **{name: In(width) for name in words},
                **{name: In(1) for name in ("choice", "subtract")},
                "whole": In(2),
                **{f"difference_{kind}": Out(width) for kind in ("generic", "ecp5")},
                **{f"total_{kind}": Out(width + 1) for kind in ("generic", "ecp5")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for kind in ("generic", "ecp5"):
            difference = subtract_from_chosen(
                m, f"difference_{kind}", self.choice, (self.if_zero, self.if_one), self.subtrahend, kind
            )
            total = add_or_subtract(
                m,
                f"total_{kind}",
                self.augend,
                self.addend,
                whole=self.whole,
                subtract=self.subtract,
                add=~self.subtract,
                kind=kind,
            )
            m.d.comb += [
                getattr(self, f"difference_{kind}").eq(difference),
                getattr(self, f"total_{kind}").eq(total),
            ]
        return m


def carry_proofs() -> Iterator[Proof]:
    """Yield the proofs that additions add, in the generic form and as primitives, for every width of a unit."""
    units = [unit.build() for unit in UNITS.values() if "multiplier" in unit.kind.parameters.definitions()]
    formats = [unit.parameters.core.formats for unit in units]
    for width in sorted({width for each in formats for width in (each.near_width + 1, each.far_width + 1)}):
        for engine in (BITWUZLA, Z3_CADICAL):
            yield Proof(
                f"carries/width_{width}",
                "additions: CCU2C",
                f"{width} bits",
                "bvadd, bvsub",
                engine,
                partial(_carries, width),
                timeout=120,
                fast=engine == BITWUZLA,
            )


def _carries(width: int, folder: Path) -> str:
    """Return a formula with a solution if a form of an addition gives a wrong sum."""
    unit = netlist_of(_Carries(width), folder, COMBINATIONAL, (Path(__file__).with_name("ccu2c.v"),))
    sum_of = unit.instance("sum", given={name: name for name in unit.inputs if name not in QUIET})
    text = "".join(
        f"(declare-const {name} (_ BitVec {size}))\n" for name, size in unit.inputs.items() if name not in QUIET
    )
    difference = "(bvsub (ite (= choice #b1) if_one if_zero) subtrahend)"
    upper, lower = "(concat augend #b0)", "(concat addend (ite (= whole #b11) #b0 #b1))"
    total = f"(ite (= subtract #b1) (bvsub {upper} {lower}) (bvadd {upper} {lower}))"
    wanted = {"difference": difference, "total": total}
    same = both(
        *(equal(sum_of.port(f"{name}_{kind}"), term) for name, term in wanted.items() for kind in ("generic", "ecp5"))
    )
    return text + sum_of.text + refute(same)
