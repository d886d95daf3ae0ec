"""The units whose netlists get faults, and the verdict of simulation and induction on each fault."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np

from hdl.catalogue import Unit
from lab.faults.equivalence import Conjectures, Guard, Pair
from lab.faults.gates import Gates, gates_of
from lab.faults.machine import COPIES, Cause, Machine, Wires
from lab.netlists.candidates import candidates, choose
from lab.netlists.design import Design, design_of
from lab.netlists.fault import Fault
from sim.run.simulate import prepare
from sim.scenario import Scenario
from sim.units import UNITS, port_of

__all__ = ["SEEDS", "TARGETS", "Batch", "Fate", "Judged", "Target", "batches", "judge"]

#: Seeds of the stimulus; `make sim` takes another one each time.
SEEDS = (1,)
#: Seed of the choice of faults.
_CHOICE = 1
#: Cycles of each scenario that test the conjectures, and cycles for which the guards are kept.
_TRIED, _KEPT = 300, 1
#: Seconds for one fault by induction.
_SECONDS = 1.5


class Fate(Enum):
    """The fate of a fault."""

    SIMULATION = "make sim"
    PROOF = "a proof"
    NONE = "no fault"
    OPEN = "survived"


@dataclass(frozen=True)
class Target:
    """A unit of the regression.

    Parameters
    ----------
    unit : str
        Its name in `sim.units`.
    count : int
        Faults that it gets.
    files : tuple of str
        Their files, below ``hdl``; ``*`` matches anything.
    """

    unit: str
    count: int
    files: tuple[str, ...] = ("*",)


_WITHOUT_RANK = (
    "mac/control.py",
    "mac/issue.py",
    "mac/promotions.py",
    "mac/hazards.py",
    "mac/multiply_accumulate.py",
    "mac/accumulator.py",
    "mac/chunks.py",
    "mac/lane.py",
)
TARGETS = (
    Target("mac_cbfloat16", COPIES - 1),
    Target("vector_mac", 200),
    Target("mac_stages_9", 200),
    Target("vector_mac_no_flags", 100),
    Target("mac_stages_8", 60, _WITHOUT_RANK),
    Target("mac_stages_3", 50, _WITHOUT_RANK),
    Target("mac_axi_stream", 60, ("axi_stream.py",)),
    Target("float32_to_cbfloat16", 300),
    Target("float32_to_cbfloat16_stages_3", 50, ("converter.py", "pipeline.py", "cores/conversion.py")),
    Target("cbfloat16_to_float32", 150),
    Target("bfloat16_to_float16", 150),
)


@dataclass(frozen=True)
class Batch:
    """The faults that are simulated together.

    Parameters
    ----------
    target : Target
    number : int
        Which of the target's.
    """

    target: Target
    number: int


@dataclass(frozen=True)
class Judged:
    """A fault and its verdict.

    Parameters
    ----------
    unit : str
    fault : Fault
    verdict : Fate
    by : str
        Scenario or proof.
    remark : str
    """

    unit: str
    fault: Fault
    verdict: Fate
    by: str
    remark: str = ""

    def but(self, verdict: Fate, by: str, remark: str = "") -> Judged:
        """Return the same with another verdict."""
        return replace(self, verdict=verdict, by=by, remark=remark)


@dataclass
class _Work:
    """A batch in the making."""

    unit: Unit
    component: Any
    faults: list[Fault]
    gates: Gates
    verdicts: dict[int, tuple[Fate, str, str]] = field(default_factory=dict)

    @property
    def open(self) -> list[int]:
        return [at for at in range(len(self.faults)) if at not in self.verdicts]

    def machine(self, numbers: Sequence[int]) -> Machine:
        port = port_of(self.unit, self.component)
        copies = {number: copy for copy, number in enumerate(numbers, start=1)}
        return Machine(self.gates, port, copies, axi_stream=self.unit.kind.core is not self.unit.kind)


def batches(targets: Sequence[Target] = TARGETS) -> Iterator[Batch]:
    """Yield the batches of targets."""
    for target in targets:
        for number in range(-(-target.count // (COPIES - 1))):
            yield Batch(target, number)


@cache
def _design(unit: str) -> Design:
    return design_of(UNITS[unit].build())


def chosen(target: Target) -> list[Fault]:
    """Return the faults of a target."""
    found = [
        fault
        for fault in candidates(_design(target.unit))
        if any(fnmatchcase(fault.group, pattern) for pattern in target.files)
    ]
    return choose(found, target.count, _CHOICE)


def judge(batch: Batch) -> tuple[list[Judged], int, float]:
    """Return the verdicts on a batch, the cycles simulated and the processor seconds spent.

    Faults that no synchronous circuit can have, because gates would wait for themselves, are left out.
    """
    started = time.process_time()
    unit = UNITS[batch.target.unit]
    first = batch.number * (COPIES - 1)
    faults = chosen(batch.target)[first : first + COPIES - 1]
    gates = gates_of(_design(unit.name), faults)
    work = _Work(unit, unit.build(), faults, gates)
    for number in range(len(faults)):
        if number not in gates.selects and number not in gates.looped:
            work.verdicts[number] = Fate.NONE, "structure", "Yosys removes it"
    cycles = sum(_simulate(work, seed) for seed in SEEDS)
    cycles += _induce(work)
    judged = [
        Judged(unit.name, fault, *work.verdicts.get(number, (Fate.OPEN, "", "")))
        for number, fault in enumerate(faults)
        if number not in gates.looped
    ]
    return judged, cycles, time.process_time() - started


def scenarios_of(unit: Unit, seed: int) -> list[Scenario]:
    """Return the scenarios of `make sim`."""
    return prepare(unit, seed, unit.effort)[0]


def _simulate(work: _Work, seed: int) -> int:
    """Run the unit's scenarios on all faults without a verdict; return the cycles."""
    numbers = [number for number in work.open if number not in work.gates.looped]
    if not numbers:
        return 0
    machine = work.machine(numbers)
    scenarios = scenarios_of(work.unit, seed)
    for scenario in scenarios:
        machine.run(scenario)
        _note(work, machine, numbers, f"{scenario.name}, seed {seed}")
    return machine.cycles


def _note(work: _Work, machine: Machine, numbers: Sequence[int], by: str) -> None:
    for copy, number in enumerate(numbers, start=1):
        if machine.caught[copy] and number not in work.verdicts:
            work.verdicts[number] = Fate.SIMULATION, by, Cause(int(machine.caught[copy])).name.lower()


def _induce(work: _Work) -> int:
    """Look for a proof that a fault changes nothing; return the cycles simulated for it."""
    numbers = [number for number in work.open if number in work.gates.selects]
    if not numbers:
        return 0
    named = [at for at, name in enumerate(work.gates.names) if name and "lane" not in name]
    guards: list[Guard] = [(at, value) for at in named for value in (True, False)]
    machine = work.machine(numbers)
    machine.watch(guards or [(0, True)], _KEPT)
    for scenario in scenarios_of(work.unit, SEEDS[0]):
        machine.run(scenario, cut=_TRIED)
    wires = Wires.of(work.gates.ports, axi_stream=work.unit.kind.core is not work.unit.kind)
    pair = Pair(work.gates, wires, guards or [(0, True)], seconds=_SECONDS)
    for copy, number in enumerate(numbers, start=1):
        same, guarded = machine.seen(copy)
        missing = pair.missing(number, Conjectures(same, guarded))
        if missing:
            registers = int(np.count_nonzero(~same))
            work.verdicts[number] = Fate.OPEN, "", f"{missing}; {registers} registers differ in simulation"
        else:
            work.verdicts[number] = Fate.NONE, "induction", "the same in every cycle"
    return machine.cycles
