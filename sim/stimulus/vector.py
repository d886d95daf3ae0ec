"""The scenarios of a SIMD multiply-accumulate unit: as for the scalar one, with different products in every lane."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from copy import copy
from dataclasses import fields
from typing import Any

import numpy as np

from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.mac import MacMaker
from sim.stimulus.mac_coverage import required_edges
from sim.stimulus.neighbours import NEIGHBOURS, neighbours_of_promotions
from sim.stimulus.order import Beats
from sim.stimulus.piled import piled_promotions, required_piled_promotions
from sim.stimulus.reductions import NO_ERROR, UNSUPPORTED, Chain, Segment
from sim.stimulus.rows import Row, answers_of, words_of
from sim.stimulus.schedule import Table, beats_ahead, details_of

__all__ = ["VectorMaker"]

#: Issue cycles of a promotion, by level.
_PROMOTION = (0, 2, 1)
#: A chunk length that divides neither the others nor the lanes.
_FURTHER_CHUNK = 5


class VectorMaker(MacMaker):
    """Makes the scenarios of one unit.

    A row repeats a scalar chain in all lanes, one of which has that chain's operands. The chains of steps are many and
    alike, so every lane has a different one; scenarios of `neighbours` have the same chains in all lanes.
    """

    paired: tuple[int, ...] = (1,)

    def __init__(self, mac: Any, port: Port, seed: int, unit: str, effort: float) -> None:
        super().__init__(mac, port, seed, unit, effort)
        if mac.chunk_bits >= _FURTHER_CHUNK.bit_length():
            self.chunks = (_FURTHER_CHUNK, *self.chunks)
            # Short ones bring more promotions, and this unit takes long to simulate.
            self.rotation_chunk = _FURTHER_CHUNK

    def required(self) -> set[str]:
        """Return the bins that must not be empty."""
        required = super().required() | required_piled_promotions(self)
        for index, level in self.kinds:
            head = f"{self.operands[index]}/level_{level}"
            required |= required_edges(self.operands[index], level, self.chunks)
            required |= {f"{head}/element_{element}" for element in range(self.elements(level))}
        levels = self.mac.levels
        return required | {f"same_row/{before}_then_{after}" for before in levels for after in levels}

    def complete(self, name: str, chains: list[Chain]) -> None:
        """Make rows of the chains, and fill in the expected answers."""
        rows = (
            self._packed(chains)
            if name.startswith("steps") or name == "long_chunks"
            else [self.row(self._in_all_lanes(chain) if name.startswith(NEIGHBOURS) else [chain]) for chain in chains]
        )
        chains[:] = rows  # type: ignore[assignment]
        every = [
            [row.elements[at] for row in chain]
            for chain in rows
            for at in range(len(chain[0].elements))
            # Every segment starts afresh in a chain that changes its level.
            if len({len(row.elements) for row in chain}) == 1
        ]
        for chain in rows:
            if len({len(row.elements) for row in chain}) > 1:
                every += [[element] for row in chain for element in row.elements]
        self.predict(every)
        for chain in rows:
            for before, row in zip([None, *chain], chain, strict=False):
                if before is not None and before.odd == row.odd:
                    self.bins[f"same_row/{before.level}_then_{row.level}"] += 1
                if row.error == NO_ERROR:
                    for at in range(len(row.elements)):
                        self.bins[f"{self.operands[row.format]}/level_{row.level}/element_{at}"] += 1

    def elements(self, level: int) -> int:
        """Return the number of elements in a row at a level."""
        return int(self.mac.lanes) // (1 if level else 2)

    def _in_all_lanes(self, chain: Chain) -> list[Chain]:
        return [[copy(segment) for segment in chain] for _ in range(self.elements(chain[0].level))]

    def _packed(self, chains: list[Chain]) -> list[list[Row]]:
        """Return rows with a different chain in each lane, if there are enough similar ones."""
        rows = []
        for key, queue in self.alike(chains).items():
            count = self.elements(key[0][1])
            while queue:
                rows.append(self.row([queue.popleft() for _ in range(min(count, len(queue)))]))
        self.rng.shuffle(rows)
        return rows

    def alike(self, chains: list[Chain]) -> dict[Any, deque[Chain]]:
        """Return chains in groups that a row can hold: equal in all but their operands."""
        groups: dict[Any, deque[Chain]] = {}
        for chain in chains:
            key = tuple(
                (segment.format, segment.level, len(segment.a), segment.chunk, *segment.modes) for segment in chain
            )
            groups.setdefault(key, deque()).append(chain)
        return groups

    def row(self, chains: list[Chain], *, in_order: bool = False) -> list[Row]:
        """Return a row with these chains, which are alike, in some elements, and with random products in the others.

        The chains take random elements, or the first ones in order.
        """
        row = []
        counts = [self.elements(segment.level) for segment in chains[0]]
        # The elements for the chains: those that every level of the chain has.
        places = range(min(counts)) if in_order else self.rng.permutation(min(counts))[: len(chains)].tolist()
        for at, (segment, count) in enumerate(zip(chains[0], counts, strict=True)):
            elements = self._others(segment, count)
            for place, chain in zip(places, chains, strict=False):
                elements[place] = chain[at]
            shared = {one.name: getattr(segment, one.name) for one in fields(Segment)}
            row.append(self.completed(Row(**shared, elements=elements)))
        return row

    def parts(self, segment: Segment) -> Iterable[Segment]:
        """Return the reductions of all lanes."""
        assert isinstance(segment, Row)
        return segment.elements

    def completed(self, row: Row) -> Row:
        """Return a row whose elements have its modes, and separate random numbers, if the unit has any."""
        for element in row.elements:
            element.modes = list(row.modes)
            self.brought(element)
        return row

    def brought_with(self, segment: Segment, name: str, k: int) -> int:
        """Return a beat's field by name: one value for all lanes, or a number for each; unused ones are random."""
        if name == "modes":
            return super().brought_with(segment, name, k)
        numbers = self.rng.integers(0, 1 << self.random_bits, self.mac.lanes).tolist()
        for lane, element in enumerate(self.parts(segment)):
            numbers[lane] = getattr(element, name)[k]
        return sum(number << self.random_bits * lane for lane, number in enumerate(numbers))

    def _others(self, segment: Segment, count: int) -> list[Segment]:
        """Return `count` segments that differ from this one only in their operands: random, of any kind in a fourth."""
        index = segment.format if segment.format < len(self.operands) else 0
        others = []
        for _ in range(count):
            other = copy(segment)
            other.a, other.b = self.factors(index, len(segment.a))
            other.is_known = False
            other.random, other.random_promotion = [], []
            others.append(other)
        return others

    def to_scenario(self, name: str, beats: Beats) -> Scenario:
        """Return the scenario that drives these products and expects the answers of their rows."""
        table = Table(beats)
        is_first, is_final = table.edges()
        lanes = int(self.mac.lanes)
        operands = words_of(table, lanes, self.port.request.widths["a"] // lanes, self.operands, self.rng)
        columns = {
            "a": operands[0],
            "b": operands[1],
            "format": table.of_segments("format"),
            "level": table.of_segments("level"),
            "register": table.of_segments("register"),
            "first": table.of_segments("first") & is_first,
            "last": table.of_segments("last") & is_final,
        }
        ends: list[int] = []
        answers: list[dict[str, int]] = []
        cases: list[int] = []
        answered: list[Segment] = []
        for place in np.flatnonzero(columns["last"] | (table.of_segments("error") != NO_ERROR)).tolist():
            row, _ = beats[place]
            assert isinstance(row, Row)
            beats_out = answers_of(row)
            answers += beats_out
            cases += [len(answered)] * len(beats_out)
            ends += [place] * len(beats_out)
            for element in row.elements:
                element.register = row.register
            answered += row.elements
        return Scenario(
            name=name,
            payloads=self.port.request.pack(**columns, **self.further_columns(beats)),
            answers=self.port.answer.pack(
                **{key: np.array([one[key] for one in answers], object) for key in self.port.answer.widths}
            ),
            case=np.array(cases),
            chunks=table.of_segments("chunk"),
            pauses=table.pauses(),
            ends=np.array(ends),
            details=details_of(answered),
        )

    def chunk_edges(self) -> list[Chain]:
        """Return chains level by level: level 0 would wait for each promotion of the others, which streams test."""
        return sorted(super().chunk_edges(), key=lambda chain: chain[0].level)

    def hazards(self) -> list[Chain]:
        """Add each level after each other one on the same row, and both orders of the odd row and its pair."""
        chains = super().hazards()
        for before, after in itertools.product(self.mac.levels, self.mac.levels):
            index = int(self.rng.integers(len(self.operands)))
            chain = [self.segment(index, level, int(self.rng.integers(1, 4))) for level in (before, after)]
            chains.append(chain)
            if (before in self.paired) != (after in self.paired):
                crossing = [self.segment(index, segment.level, len(segment.a)) for segment in chain]
                for segment in crossing:
                    segment.odd = segment.level not in self.paired
                chains.append(crossing)
        self.rng.shuffle(chains)
        return chains

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        made = super().scenarios()
        if 1 in self.mac.levels:
            made += [self.make("promotions", self.promotions), piled_promotions(self), neighbours_of_promotions(self)]
            made.append(self.last_place())
        return made

    def last_place(self) -> Scenario:
        """Leave one place of the queue free, or two, when the next answer needs two, and take nothing meanwhile."""
        places = int(self.mac.parameters.results)

        def chains() -> list[Chain]:
            refused = self._refused_level()
            return [
                chain
                for refusals in range(4)
                for chain in (
                    *([self.segment(0, refused, 1, error=UNSUPPORTED)] for _ in range(refusals)),
                    *([self.segment(0, 1, 1)] for _ in range(places)),
                )
            ]

        scenario = self.make("last_place", chains, policy="rotation")
        # Longer than it takes to fill the queue, then as long as it takes to empty it.
        scenario.takes = np.tile(np.repeat([False, True], [4 * places, 4 * places]), 4)
        return scenario

    def promotions(self) -> list[Chain]:
        """Let promotions of level 1 pile up, and then two on one row follow each other in the queue at once."""
        chains: list[Chain] = []
        for index, level in self.kinds * 3:
            chains += [[self.segment(index, 1, 1, chunk=1)] for _ in range(self._places(1) - 1)]
            chains.append([self.segment(index, level, 3, chunk=1)])
        return chains

    def full_queue(self) -> Scenario:
        """Take nothing until answers of level 1 fill the queue, with one odd place left or none."""
        scenario = super().full_queue()
        lengths = np.stack([self.rng.integers(30, 70, 32), self.rng.integers(200, 300, 32)], 1).ravel()
        scenario.takes = np.repeat(np.arange(64) % 2 == 0, lengths)
        return scenario

    def cycles(self, level: int, ends_chunk: list[bool]) -> int:
        """Return the cycles from the first accepted beat to the last, both counted, if only promotions cause waits.

        Promotions go first, in the order of their chunks, each after the queue and the rank behind it.
        """
        ready: deque[int] = deque()
        cycle, issued = 0, []
        for ends in ends_chunk:
            while ready and ready[0] <= cycle:
                ready.popleft()
                cycle += _PROMOTION[level]
            issued.append(cycle)
            if ends:
                ready.append(cycle + self.mac.promotion_latency)
            cycle += 1
        ahead = beats_ahead(self.mac)
        return issued[-1 - ahead] + 1 + ahead

    def throughput(self) -> list[Scenario]:
        """Add scenarios with answers as fast as promotions allow; answers of level 1 have two parts."""
        scenarios = super().throughput()
        for level in self.mac.levels:
            if level == 0 or self.mac.accumulate_latency > self._places(level):
                continue

            def single(level: int = level) -> list[Chain]:
                return [[self.segment(0, level, 1)] for _ in range(100)]

            scenario = self.make(f"throughput_of_answers_level_{level}", single)
            scenario.cycles = self.cycles(level, [True] * 100)
            scenarios.append(scenario)
        return scenarios
