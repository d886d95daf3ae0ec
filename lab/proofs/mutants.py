"""Could the proofs fail? Small changes of the netlists, made by `lab.faults`, each of which a proof must notice.

A solver looks for inputs on which the changed netlist differs from the original. If there are none, the change is
proven to change nothing. Otherwise these inputs go into the formula of the proof, with the changed netlist instead of
the original. The formula must have a solution. It then has one without these inputs, too: the proof would fail.

The comparison covers only results that matter. For the first half of a step, these are the signals that the second
half reads for a product of that class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from golden.formats import BF16, CBFLOAT16, FP16, FP32, FloatFormat
from hdl.cores.conversion import Convert
from hdl.cores.step_formats import StepFormats
from lab.netlists.candidates import candidates, choose
from lab.netlists.design import Design, design_of, json_of
from lab.netlists.edit import with_faults
from lab.netlists.fault import Fault
from lab.netlists.netlist import Netlist
from lab.netlists.yosys import COMBINATIONAL, EVERTED, netlist_of, write_netlist
from lab.proofs import by_theory, cut
from lab.proofs.converters import formula
from lab.proofs.cut import Mode
from lab.proofs.halves import FirstHalf, SecondHalf
from lab.proofs.proof import BITWUZLA, CVC5, Answer, Proof, Verdict, prove
from lab.proofs.terms import DOUBLE, bits, both, either, equal, refute

__all__ = ["CORES", "Core", "CoreMutant", "mutants"]

_SEED = 1


@dataclass(frozen=True)
class Core:
    """A change of a netlist.

    Parameters
    ----------
    name, title : str
        For ids, and for people.
    build : function
        Gives the component.
    formula : function
        Takes a netlist with its ports and returns a formula with a solution if that netlist is wrong.
    difference : function
        Takes the original and a changed netlist and returns a formula with a solution if they differ where it matters.
    engine : str
        Solves the formula.
    count, fast : int
        Number of changes, and how many of them belong to the fast tier.
    script : str
        Makes the netlist.
    """

    name: str
    title: str
    build: Callable[[], Any]
    formula: Callable[[Netlist], str]
    difference: Callable[[Netlist, Netlist], str]
    engine: str
    count: int
    fast: int
    script: str = COMBINATIONAL


def _converter(source: FloatFormat, destination: FloatFormat, count: int, fast: int) -> Core:
    return Core(
        f"converter/{source}_to_{destination}",
        f"converter {source} to {destination}",
        lambda: Convert(source, destination),
        lambda netlist: formula(netlist, source, destination, by_theory.conversion),
        lambda original, mutated: _pair(original, mutated, {}, "") + refute(_same(original.outputs)),
        CVC5,
        count,
        fast,
    )


_MODE = Mode(StepFormats((CBFLOAT16,), (CBFLOAT16,)), CBFLOAT16, CBFLOAT16)


def _same(names: Iterable[str]) -> str:
    return both(*(equal(f"|top.{name}|", f"|mutant.{name}|") for name in names))


def _pair(original: Netlist, mutated: Netlist, given: Mapping[str, str], premise: str) -> str:
    """Return both netlists; they share their inputs, except for those in `given`, which the second one gets."""
    one = original.instance("top")
    inputs = {**{name: one.port(name) for name in original.inputs}, **given}
    return one.text + premise + mutated.instance("mutant", given=inputs).text


def _second_half_differs(original: Netlist, mutated: Netlist) -> str:
    premise = cut.contract(original.instance(), _MODE) + "(assert contract)\n"
    return _pair(original, mutated, {}, premise) + refute(_same(["o"]))


def _first_half_is_wrong(netlist: Netlist) -> str:
    unit = netlist.instance()
    factors = (f"((_ zero_extend {_MODE.formats.operand_precision}) |top.multiplier.{name}|)" for name in ("a", "b"))
    product = f"(bvmul {' '.join(factors)})"
    return cut.first_half(unit, _MODE, DOUBLE) + f"(assert {equal('|top.multiplier.o|', product)})\n"


def _first_half_differs(original: Netlist, mutated: Netlist) -> str:
    """Compare the signals that the second half reads: all of a number, else the class.

    The multiplier is left out; its products are the same if its factors are, and may be anything otherwise.
    """
    width = _MODE.formats.product_width
    text = original.instance("top").text + cut.contract(original.instance(), _MODE)
    factors = [f"|top.multiplier.{name}|" for name in ("a", "b")]
    text += cut.product_facts(factors, "|top.multiplier.o|", _MODE.formats.operand_precision)
    # Products of changed factors come from the instance itself, so it is written twice: first for its factors.
    inputs = {name: f"|top.{name}|" for name in original.inputs}
    text += mutated.instance("factors", given=inputs).text
    same_factors = both(*(equal(f"|top.multiplier.{name}|", f"|factors.multiplier.{name}|") for name in ("a", "b")))
    text += f"(declare-const another_product (_ BitVec {width}))\n"
    product = f"(ite {same_factors} |top.multiplier.o| another_product)"
    text += mutated.instance("mutant", given=inputs | {"multiplier.o": product}).text
    classes = _same(["sign", "is_infinite", "is_nan", "invalid"])
    number = _same(["significand", "exponent"])
    return text + refute(both(classes, either("is_special_product", number)))


CORES = (
    _converter(FP32, CBFLOAT16, 42, 6),
    _converter(BF16, FP16, 22, 2),
    _converter(CBFLOAT16, FP32, 26, 2),
    Core(
        "step/first_half",
        f"first half {_MODE}",
        lambda: FirstHalf(_MODE.formats),
        _first_half_is_wrong,
        _first_half_differs,
        BITWUZLA,
        42,
        6,
        EVERTED,
    ),
    Core(
        "step/second_half",
        f"second half {_MODE}",
        lambda: SecondHalf(_MODE.formats),
        lambda netlist: cut.second_half(netlist.instance(), _MODE, DOUBLE),
        _second_half_differs,
        BITWUZLA,
        84,
        10,
    ),
)


@dataclass(frozen=True)
class CoreMutant:
    """A change of a core.

    Parameters
    ----------
    core : Core
    number : int
        Which of the core's changes.
    """

    core: Core
    number: int
    timeout: int = 300

    @property
    def id(self) -> str:
        """As of a proof."""
        return f"mutant/{self.core.name}/{self.number}"

    @property
    def title(self) -> str:
        """As of a proof."""
        return f"mutant {self.core.title}, {self.number}"

    @property
    def fast(self) -> bool:
        """Whether it belongs to the fast tier."""
        return self.number < self.core.fast

    def run(self, folder: Path) -> Answer:
        """Find an input on which the change shows, or prove that there is none."""
        return replace(self._run(folder), id=self.id)

    def _run(self, folder: Path) -> Answer:
        description, mutated = changed(self.core, self.number, folder / "netlists")
        original = netlist_of(self.core.build(), folder / "netlists", self.core.script)
        result = prove(self._proof(BITWUZLA, lambda _: self.core.difference(original, mutated)), folder)
        if result.verdict is Verdict.PROVEN:
            return result.but(Verdict.EQUIVALENT, description)
        if result.verdict is not Verdict.REFUTED:
            return result
        # Some of these netlists leave the multiplier out; the formula of the proof has it.
        given = [name for name in original.inputs if not name.startswith("multiplier.")]
        inputs = {name: result.ports[name] for name in given}
        told = prove(
            self._proof(self.core.engine, lambda _: self.core.formula(mutated) + _fixed(mutated, inputs)), folder
        )
        seconds = result.seconds + told.seconds
        if told.verdict is Verdict.REFUTED:
            return told.but(Verdict.CAUGHT, f"{description}: {told.remark}", seconds)
        if told.verdict is Verdict.PROVEN:
            return told.but(Verdict.SURVIVED, f"{description}: {result.remark}", seconds)
        return told

    def _proof(self, engine: str, build: Callable[[Path], str]) -> Proof:
        mode = f"{self.core.title}, {self.number}"
        return Proof(self.id, "mutants", mode, "as its proof", engine, build, self.timeout)


def mutants() -> Iterator[CoreMutant]:
    """Yield the changes of all cores."""
    for core in CORES:
        yield from (CoreMutant(core, number) for number in range(core.count))


def _fixed(netlist: Netlist, inputs: Mapping[str, int]) -> str:
    unit = netlist.instance()
    return "".join(f"(assert {equal(unit.port(name), bits(inputs[name], netlist.inputs[name]))})\n" for name in inputs)


@cache
def _faults(core: Core) -> tuple[Design, list[Fault]]:
    """Return the words of a core, and the changes to them."""
    design = design_of(core.build())
    # Faults in a multiplier that stays outside change nothing.
    found = [fault for fault in candidates(design) if core.script != EVERTED or fault.module != "top.multiplier"]
    return design, choose(found, core.count, _SEED)


def changed(core: Core, number: int, folder: Path) -> tuple[str, Netlist]:
    """Return the description of one of a core's changes, and the changed netlist."""
    design, faults = _faults(core)
    text = json_of(with_faults(design, [faults[number]], selected=False))
    return faults[number].name, write_netlist(text, folder, core.script, reading="read_json")
