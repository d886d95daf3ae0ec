"""Does a fault change anything? Proof by induction that a faulty unit and the right one agree, cycle by cycle.

Both units start in the same state and get the same inputs, which may be any. There are conjectures about every bit of
state: it is equal in both units, or it is equal whenever some bit of the right unit is set, or is clear. (A datum, for
example, is equal whenever its valid bit is set.) First the proof drops the conjectures that a simulated run
contradicts, then those that do not follow, one cycle later, from all others. The rest holds for ever. A register of the
right unit that never leaves its power-up value counts as that constant. If ready and valid of the output are equal, and
the output is equal while valid, no observer can distinguish the units.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.faults.aig import FALSE, TRUE, Aig, Question
from lab.faults.gates import Gates
from lab.faults.machine import Wires
from tools.sliced.gates import ONE

__all__ = ["Conjectures", "Guard", "Pair"]

#: A register, by its index, and the value that makes the guard true.
Guard = tuple[int, bool]


@dataclass
class Conjectures:
    """The conjectures that a simulated run leaves open, for one fault.

    Parameters
    ----------
    same : array of bool
        For each register: it was equal in every cycle.
    guarded : array of bool
        For each guard and register: the register was equal whenever the guard was true.
    """

    same: NDArray[np.bool_]
    guarded: NDArray[np.bool_]


class Pair:
    """A unit beside itself with a fault.

    Parameters
    ----------
    gates : Gates
    wires : Wires
    guards : sequence of Guard
    invariants : collection of (Guard, Guard)
        Known facts about the right unit: one of the two guards is always true.
    conflicts : int
        How hard the solver tries to answer one question.
    seconds : float
        Time limit for one fault.
    """

    def __init__(
        self,
        gates: Gates,
        wires: Wires,
        guards: Sequence[Guard],
        invariants: Collection[tuple[Guard, Guard]] = (),
        conflicts: int = 20_000,
        seconds: float = 20.0,
    ) -> None:
        self._gates, self._wires, self._guards = gates, wires, guards
        self._conflicts, self._seconds = conflicts, seconds
        self._invariants = list(invariants)
        self._graph = Aig()
        self._rows = gates.gates.tolist()
        self._first = gates.nets - len(self._rows)
        self._q, self._d = gates.registers[:, 0].tolist(), gates.registers[:, 1].tolist()
        self._right = [FALSE] * gates.nets
        self._right[ONE] = TRUE
        inputs = {net for port in gates.ports.values() for net in port if ONE < net < self._first} | set(self._q)
        for net in sorted(inputs - set(gates.selects.values())):
            self._right[net] = self._graph.free()
        self._graph.evaluate(self._right, self._rows)
        self._find_constants()

    def _find_constants(self) -> None:
        """Replace every register of the right unit that never leaves its power-up value, as gates alone show.

        At first every register counts as constant; those that would get another value are dropped, until none does.
        """
        free = {q: self._right[q] for q in self._q}
        constants = dict(zip(self._q, (TRUE if one else FALSE for one in self._gates.registers[:, 2]), strict=True))
        next_of = dict(zip(self._q, self._d, strict=True))
        left = list(self._q)
        while left:
            for q, value in constants.items():
                self._right[q] = value
            self._graph.evaluate(self._right, self._rows)
            left = [q for q, value in constants.items() if self._right[next_of[q]] != value]
            for q in left:
                self._right[q] = free[q]
                del constants[q]

    def missing(self, number: int, conjectures: Conjectures) -> str:
        """Return an empty string if no observer can see fault `number`, or else the claim that is not proven."""
        if number not in self._gates.selects:
            return ""
        same, guarded = conjectures.same.copy(), conjectures.guarded.copy()
        self._until = time.process_time() + self._seconds
        while True:
            faulty = self._faulty(number, same)
            with Question(self._graph, self._conflicts) as question:
                for clause in self._assumed(faulty, same, guarded):
                    question.require(clause)
                settled = self._settle(question, faulty, same, guarded)
                if settled == "again":
                    continue
                return settled or self._outputs(question, faulty)

    def _settle(
        self, question: Question, faulty: list[int], same: NDArray[np.bool_], guarded: NDArray[np.bool_]
    ) -> str:
        """Drop the conjectures that do not follow."""
        claims = self._claims(faulty, same, guarded)
        dropped = False
        while True:
            fails = question.possible([claim for _, _, claim in claims])
            if fails is None or time.process_time() > self._until:
                return "not decided"
            if not fails:
                return "again" if dropped else ""
            for guard, register in [claims[at][:2] for at in np.flatnonzero(fails)]:
                if guard is None:
                    same[register] = False
                else:
                    guarded[guard, register] = False
            dropped = True
            claims = [claim for claim, failed in zip(claims, fails, strict=True) if not failed]

    def _claims(
        self, faulty: list[int], same: NDArray[np.bool_], guarded: NDArray[np.bool_]
    ) -> list[tuple[int | None, int, int]]:
        """Return guard, register and the edge that must stay false, for every conjecture about the next cycle."""
        claims: list[tuple[int | None, int, int]] = []
        for at, net in enumerate(self._d):
            differs = self._graph.differ(self._right[net], faulty[net])
            if differs == FALSE:
                continue
            if same[at]:
                claims.append((None, at, differs))
                continue
            for guard in np.flatnonzero(guarded[:, at]).tolist():
                register, value = self._guards[guard]
                on = self._right[self._d[register]] ^ (not value)
                claims.append((guard, at, self._graph.both(on, differs)))
        return [claim for claim in claims if claim[2] != FALSE]

    def _assumed(self, faulty: list[int], same: NDArray[np.bool_], guarded: NDArray[np.bool_]) -> list[list[int]]:
        clauses = [[self._on(one), self._on(other)] for one, other in self._invariants]
        for at in np.flatnonzero(~same).tolist():
            differs = self._graph.differ(self._right[self._q[at]], faulty[self._q[at]])
            clauses += [
                [self._on(self._guards[guard]) ^ 1, differs ^ 1] for guard in np.flatnonzero(guarded[:, at]).tolist()
            ]
        return clauses

    def _on(self, guard: Guard) -> int:
        return self._right[self._q[guard[0]]] ^ (not guard[1])

    def _outputs(self, question: Question, faulty: list[int]) -> str:
        wires, right, graph = self._wires, self._right, self._graph
        for name, nets in (("ready", [wires.ready]), ("valid", [wires.answered]), ("an answer", wires.answer)):
            differs = [graph.differ(right[net], faulty[net]) for net in nets]
            if name == "an answer":
                differs = [graph.both(right[wires.answered], each) for each in differs]
            found = question.possible([each for each in differs if each != FALSE])
            if found is None:
                return "not decided"
            if found:
                return f"{name} may differ"
        return ""

    def _faulty(self, number: int, same: NDArray[np.bool_]) -> list[int]:
        faulty = list(self._right)
        select = self._gates.selects[number]
        faulty[select] = TRUE
        changed = {select}
        for at in np.flatnonzero(~same).tolist():
            faulty[self._q[at]] = self._graph.free()
            changed.add(self._q[at])
        self._graph.evaluate(faulty, self._rows, changed)
        return faulty
