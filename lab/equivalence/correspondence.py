"""Proof that two units give the same outputs in every cycle, by registers with equal values in both.

Registers that never differ in a simulated run form classes, within one unit or across both, and are assumed equal.
Induction decides: if the registers of every class are equal in one cycle, they must be equal in the next one.
A class for which this fails is split, and all classes are checked again. The remaining classes are proven, because all
registers of a class start with the same value. Where the units have the same structure, the next values are the same
gates and there is nothing to decide; a SAT solver decides the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lab.equivalence.simulation import Machine, Seen, random_words, simulate
from lab.equivalence.unit import Unit
from lab.faults.aig import FALSE, TRUE, Aig, Question
from tools.sliced.gates import ONE

__all__ = ["difference"]

#: How hard the solver tries to answer one question.
_CONFLICTS = 2_000_000


def difference(one: Unit, other: Unit) -> str:
    """Return an empty string if two units are proven equivalent, or else the difference or doubt."""
    for kind, those, these in (("input", one.inputs, other.inputs), ("output", one.outputs, other.outputs)):
        if only := sorted(those.keys() ^ these.keys()):
            return f"{kind} {only[0]} is in one of them only"
    seen = simulate(one, other)
    return seen.difference or _Correspondence(one, other, seen).difference()


class _Correspondence:
    """The classes of registers."""

    def __init__(self, one: Unit, other: Unit, seen: Seen) -> None:
        self._units = (one, other)
        self._machines = [Machine(unit) for unit in self._units]
        self._rng = np.random.default_rng(11)
        kinds = [
            (trace, start)
            for unit, traces in zip(self._units, seen.traces, strict=True)
            for trace, (_, _, start) in zip(traces, unit.gates.registers.tolist(), strict=True)
        ]
        # Registers of the first class are always 0, of the second always 1.
        numbers = {(seen.constants[0], 0): 0, (seen.constants[1], 1): 1}
        self._classes = [numbers.setdefault(kind, len(numbers)) for kind in kinds]
        self._count = len(numbers)

    def difference(self) -> str:
        """Split classes until the rest is proven, then compare the outputs."""
        while True:
            while self._split_by_chance():
                pass
            graph = Aig()
            leaves = [FALSE, TRUE, *(graph.free() for _ in range(self._count - 2))]
            inputs = {name: graph.free() for name in self._units[0].inputs}
            following: list[int] = []
            outputs: list[dict[str, int]] = []
            for unit in self._units:
                classes = self._classes[len(following) :]
                edges = _edges(graph, unit, inputs, [leaves[number] for number in classes[: len(unit.gates.registers)]])
                following += [edges[net] for net in unit.gates.registers[:, 1]]
                outputs.append({name: edges[net] for name, net in unit.outputs.items()})
            with Question(graph, _CONFLICTS) as question:
                splits = self._split(graph, question, following)
                if splits is None:
                    return "not decided: the solver gave up"
                if not splits:
                    return self._outputs(graph, question, *outputs)

    def _split_by_chance(self) -> bool:
        """Split classes whose registers differ after a random state in which all registers of a class are equal."""
        held = random_words(self._rng, count=self._count)
        held[0], held[1] = 0, ~np.uint64(0)
        given = {name: random_words(self._rng)[0] for name in self._units[0].inputs}
        classes = np.array(self._classes)
        split = len(self._units[0].gates.registers)
        following = np.concatenate(
            [
                machine.following(given, held[its])
                for machine, its in zip(self._machines, np.split(classes, [split]), strict=True)
            ]
        )
        numbers = {(0, held[0].tobytes()): 0, (1, held[1].tobytes()): 1}
        self._classes = [
            numbers.setdefault((number, words.tobytes()), len(numbers))
            for number, words in zip(self._classes, following, strict=True)
        ]
        before, self._count = self._count, len(numbers)
        return self._count > before

    def _split(self, graph: Aig, question: Question, following: Sequence[int]) -> int | None:
        """Split the classes whose registers may become different; return their number, None if the solver gave up."""
        splits = 0
        while True:
            claims = list(self._claims(graph, following))
            found = question.possible([differs for _, _, differs in claims])
            if found is None:
                return None
            if not found:
                return splits
            moved = {(number, edge) for (number, edge, _), fails in zip(claims, found, strict=True) if fails}
            fresh: dict[int, int] = {}
            for register, edge in enumerate(following):
                number = self._classes[register]
                if (number, edge) in moved:
                    if number not in fresh:
                        fresh[number], self._count = self._count, self._count + 1
                    self._classes[register] = fresh[number]
            splits += len(fresh)

    def _claims(self, graph: Aig, following: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Yield class, next value and the edge that must stay false, for each next value that is another gate."""
        first: dict[int, int] = {0: FALSE, 1: TRUE}
        known: set[tuple[int, int]] = set()
        for number, edge in zip(self._classes, following, strict=True):
            wanted = first.setdefault(number, edge)
            if edge != wanted and (number, edge) not in known:
                known.add((number, edge))
                yield number, edge, graph.differ(wanted, edge)

    def _outputs(self, graph: Aig, question: Question, ones: dict[str, int], others: dict[str, int]) -> str:
        differs = {name: graph.differ(ones[name], others[name]) for name in ones}
        differs = {name: edge for name, edge in differs.items() if edge != FALSE}
        found = question.possible(list(differs.values()))
        if found is None:
            return "not decided: the solver gave up"
        names = [name for name, fails in zip(differs, found, strict=False) if fails]
        return f"{names[0]} may differ (in a state that is not known to be out of reach)" if names else ""


def _edges(graph: Aig, unit: Unit, inputs: dict[str, int], registers: Sequence[int]) -> list[int]:
    """Return the edge of every net."""
    gates = unit.gates
    edges = [FALSE] * gates.nets
    edges[ONE] = TRUE
    for name, net in unit.inputs.items():
        edges[net] = inputs[name]
    for net, edge in zip(gates.registers[:, 0], registers, strict=True):
        edges[net] = edge
    graph.evaluate(edges, gates.gates.tolist())
    return edges
