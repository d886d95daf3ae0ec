"""The scenarios of a SIMD unit that rounds in other modes, or widens its operands; each lane has its random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from golden import Rounding
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.reductions import Chain, Segment
from sim.stimulus.rounded import RoundedMaker
from sim.stimulus.rows import Row
from sim.stimulus.schedule import interleave
from sim.stimulus.vector import VectorMaker

__all__ = ["RoundedVectorMaker", "rounded_vector_scenarios"]

_STOCHASTIC = Rounding.STOCHASTIC.value
_TURNS = 8


def rounded_vector_scenarios(
    component: Any, port: Port, seed: int, unit: str, effort: float
) -> tuple[list[Scenario], set[str], list[str]]:
    """Return the scenarios, the coverage bins that must not be empty, and the names of the operand formats."""
    maker = RoundedVectorMaker(component, port, seed, unit, effort)
    return maker.scenarios(), maker.required(), maker.format_names()


class RoundedVectorMaker(RoundedMaker, VectorMaker):
    """Makes the scenarios of one unit: a mode for every row, random numbers for every element of it."""

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        return [*super().scenarios(), *self.lanes_apart()]

    def lanes_apart(self) -> list[Scenario]:
        """Let the random numbers of neighbouring lanes round their promotions in different directions, in fp32."""
        name = "lanes_apart"
        self.start(name)
        rows: list[Chain] = []
        alone: list[Chain] = []
        for index, level in self.kinds if _STOCHASTIC in self.modes else ():
            if level != 1 or self.random_bits < 2 or not self._quarter_of_an_ulp(index, 1, "promotion"):
                continue
            up, down = (one for one in self._edges(index, 1) if one.chunk == 1 and one.modes[-1] == _STOCHASTIC)
            for turn in range(_TURNS):
                pair = (up, down) if turn % 2 else (down, up)
                chains: list[Chain] = [[copy(pair[lane % 2])] for lane in range(self.elements(1))]
                made = self._row(chains, in_order=True)
                alone += [[element] for row in made for element in row.elements]
                rows.append([*made])
        if not rows:
            return []
        self.predict(alone)
        scenario = self.to_scenario(name, interleave(rows, self.mac.registers, self.rng, "rotation", self.paired))
        scenario.is_bulk = True
        return [scenario]

    def completed(self, row: Row) -> Row:
        """Return a row whose elements have its modes, and separate random numbers."""
        for element in row.elements:
            element.modes = list(row.modes)
            self.brought(element)
        return row

    def _others(self, segment: Segment, count: int) -> list[Segment]:
        others = super()._others(segment, count)
        for other in others:
            other.random, other.random_promotion = [], []
        return others

    def reductions(self, chains: list[Chain]) -> Iterator[Segment]:
        """Yield the reductions of all lanes."""
        for row in super().reductions(chains):
            assert isinstance(row, Row)
            yield from row.elements

    def brought_with(self, segment: Segment, name: str, k: int) -> int:
        """Return a beat's field by name: one value for all lanes, or a number for each; unused ones are random."""
        if name == "modes":
            return super().brought_with(segment, name, k)
        assert isinstance(segment, Row)
        numbers = self.rng.integers(0, 1 << self.random_bits, self.mac.lanes).tolist()
        for lane, element in enumerate(segment.elements):
            numbers[lane] = getattr(element, name)[k]
        return sum(number << self.random_bits * lane for lane, number in enumerate(numbers))
