"""Two units side by side on random inputs: which registers never differ, and whether an output does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.equivalence.unit import Unit
from tools.sliced.gates import circuit, planes

__all__ = ["Machine", "Seen", "random_words", "simulate"]

#: Cycles, and 64-bit words of independent runs.
_CYCLES, _WORDS = 96, 8
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ONES = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Seen:
    """The outcome of a simulated run.

    Parameters
    ----------
    traces : tuple of list of int
        For each unit, a number for each register: equal numbers if two registers were equal in every cycle.
    constants : tuple of int
        The numbers of a register that was always 0, and always 1.
    difference : str
        The first output that differed, and its cycle; empty if none did.
    """

    traces: tuple[list[int], list[int]]
    constants: tuple[int, int]
    difference: str


def simulate(one: Unit, other: Unit) -> Seen:
    """Run two units with the same inputs, all random; a reset is rare."""
    rng = np.random.default_rng(2026)
    machines = (Machine(one), Machine(other))
    always = np.array([[0] * _WORDS, [_ONES] * _WORDS], np.uint64)
    weights = rng.integers(1, 2**63, (_CYCLES, _WORDS), dtype=np.uint64) | np.uint64(1)
    constants = np.zeros(2, np.uint64)
    difference = ""
    for cycle in range(_CYCLES):
        given = {name: _given(rng, name) for name in one.inputs}
        for machine in machines:
            machine.step(given, weights[cycle])
        constants = constants * _FACTOR + (always * weights[cycle]).sum(axis=1)
        for name in one.outputs:
            if not difference and (machines[0].output(name) != machines[1].output(name)).any():
                difference = f"{name} differs in cycle {cycle} of a random run"
    traces = tuple(machine.traces.tolist() for machine in machines)
    return Seen((traces[0], traces[1]), (int(constants[0]), int(constants[1])), difference)


def random_words(rng: np.random.Generator, count: int = 1) -> NDArray[np.uint64]:
    """Return `count` rows of words."""
    return rng.integers(0, 2**64, (count, _WORDS), dtype=np.uint64)


def _given(rng: np.random.Generator, name: str) -> NDArray[np.uint64]:
    """Return the values of an input in a cycle."""
    if name in ("rst", "aresetn"):
        rare: NDArray[np.uint64] = np.bitwise_and.reduce(random_words(rng, 5))
        return rare if name == "rst" else ~rare
    return random_words(rng)[0]


class Machine:
    """A unit that runs on many inputs at once: one for each bit of a plane."""

    def __init__(self, unit: Unit) -> None:
        self._unit, gates = unit, unit.gates
        self._circuit, self._values = circuit(gates.nets, gates.gates), planes(gates.nets)
        self._register, self._following, start = gates.registers.T
        self._next = np.where(start[:, None], _ONES, np.uint64(0)).repeat(_WORDS, axis=1)
        self.traces = np.zeros(len(start), np.uint64)

    def step(self, given: dict[str, NDArray[np.uint64]], weights: NDArray[np.uint64]) -> None:
        """Take one cycle."""
        self.traces = self.traces * _FACTOR + (self._next * weights).sum(axis=1)
        self.following(given, self._next)

    def following(self, given: dict[str, NDArray[np.uint64]], held: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the values of the registers after a cycle, from the values in that cycle."""
        self._values[self._register] = held
        for name, net in self._unit.inputs.items():
            self._values[net] = given[name]
        self._circuit.evaluate(self._values)
        self._next = self._values[self._following]
        return self._next

    def output(self, name: str) -> NDArray[np.uint64]:
        """Return the values of an output in this cycle."""
        return self._values[self._unit.outputs[name]]
