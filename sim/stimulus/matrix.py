"""The scenarios of an array of lanes: as for the SIMD unit, with one factor for each row and for each column."""

from __future__ import annotations

import itertools
from collections import Counter
from copy import copy
from dataclasses import fields
from typing import Any

import numpy as np

from golden import FP32, FloatFormat, encode
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.mac import MacMaker
from sim.stimulus.mac_coverage import required_edges
from sim.stimulus.order import Beats
from sim.stimulus.reductions import NO_ERROR, UNSUPPORTED, Chain, Segment
from sim.stimulus.rows import Loads, Row
from sim.stimulus.schedule import POLICIES, Table, beats_ahead, details_of
from sim.stimulus.vector import VectorMaker

__all__ = ["MatrixMaker"]

#: Reductions of every tile that end one right after the other.
_TURNS = 6
#: Cycles from taking a chunk out of the lanes to the issue of the next one in its place.
_UNTIL_FREE = 3
#: The kinds of initial values.
_KINDS = ("+0", "-0", "subnormal", "normal", "infinity", "nan", "signalling")


def _kind(code: int, fmt: FloatFormat) -> str:
    """Return the kind of an initial value, one of `_KINDS`."""
    magnitude = code & ~fmt.sign_mask
    if not magnitude:
        return "-0" if code else "+0"
    if magnitude >= fmt.inf:
        return "infinity" if magnitude == fmt.inf else "nan" if magnitude >= fmt.nan else "signalling"
    return "normal" if magnitude >= fmt.min_normal else "subnormal"


class MatrixMaker(VectorMaker):
    """Makes the scenarios of one unit.

    A tile repeats a scalar chain on its diagonal; the lanes beside the diagonal multiply the chain's factors by the
    factors of other rows and columns. In the scenario `neighbours` all rows and columns have the factors of the chain.
    """

    paired: tuple[int, ...] = ()

    def __init__(self, mac: Any, port: Port, seed: int, unit: str, effort: float) -> None:
        super().__init__(mac, port, seed, unit, effort)
        #: Special initial values so far, by format and level.
        self._drawn: Counter[tuple[int, int]] = Counter()

    def elements(self, level: int) -> int:
        """Return the number of elements in a tile."""
        return int(self.mac.rows) * int(self.mac.columns)

    def required(self) -> set[str]:
        """Return the bins that must not be empty."""
        required = MacMaker.required(self)
        for index, level in self.kinds:
            head = f"{self.operands[index]}/level_{level}"
            required |= required_edges(self.operands[index], level, self.chunks)
            required |= {f"{head}/element_{element}" for element in range(self.elements(level))}
        levels = self.mac.levels
        required |= {f"same_row/{before}_then_{after}" for before in levels for after in levels}
        if self.mac.initial:
            required |= {
                f"{self.operands[index]}/level_{level}/initial/{kind}" for index, level in self.kinds for kind in _KINDS
            }
        return required | {f"all_tiles_end/level_{level}" for level in levels}

    def row(self, chains: list[Chain], *, in_order: bool = False) -> list[Row]:
        """Return a tile with these chains, which are alike, on its diagonal, as far as there is room."""
        rows, columns = int(self.mac.rows), int(self.mac.columns)
        tile = []
        # The same lanes for all segments of a chain.
        down, across = self.rng.permutation(rows).tolist(), self.rng.permutation(columns).tolist()
        whole = len(chains) == rows * columns  # of equal chains
        for at, segment in enumerate(chains[0]):
            if segment.is_load:
                shared = {one.name: getattr(segment, one.name) for one in fields(Segment)}
                tile.append(self.completed(Loads(**shared, elements=self._initial_elements(segment))))
                continue
            others = self._others(segment, max(rows, columns))
            a, b = [other.a for other in others[:rows]], [other.b for other in others[:columns]]
            if whole:
                a, b = [segment.a] * rows, [segment.b] * columns
            else:
                for one, left, right in zip(chains, down, across, strict=False):
                    a[left], b[right] = one[at].a, one[at].b
            elements = []
            for left in a:
                for right in b:
                    element = copy(segment)
                    element.a, element.b, element.is_known = left, right, False
                    elements.append(element)
            shared = {one.name: getattr(segment, one.name) for one in fields(Segment)}
            tile.append(self.completed(Row(**shared, elements=elements)))
        return tile

    def _packed(self, chains: list[Chain]) -> list[list[Row]]:
        """Return tiles with a different chain in each lane of the diagonal, if there are enough similar ones."""
        rows = []
        count = min(int(self.mac.rows), int(self.mac.columns))
        for queue in self.alike(chains).values():
            while queue:
                rows.append(self.row([queue.popleft() for _ in range(min(count, len(queue)))]))
        self.rng.shuffle(rows)
        return rows

    def to_scenario(self, name: str, beats: Beats) -> Scenario:
        """Return the scenario that drives these products and expects the rows of their tiles."""
        table = Table(beats)
        is_first, is_final = table.edges()
        rows, columns = int(self.mac.rows), int(self.mac.columns)
        payload = {
            "a": self._words(table, "a", rows, columns),
            "b": self._words(table, "b", columns, 1),
            "format": table.of_segments("format"),
            "level": table.of_segments("level"),
            "register": table.of_segments("register"),
            "first": table.of_segments("first") & is_first,
            "last": table.of_segments("last") & is_final,
        }
        if "loads" in self.port.request.widths:
            payload |= self._loaded(table, payload)
        ends: list[int] = []
        answers: list[dict[str, int]] = []
        cases: list[int] = []
        answered: list[Segment] = []
        is_product = ~np.array([isinstance(tile, Loads) for tile in table.segments], bool)[table.which]
        for place in np.flatnonzero((payload["last"] & is_product) | (table.of_segments("error") != NO_ERROR)).tolist():
            tile, _ = beats[place]
            assert isinstance(tile, Row)
            for row, beat in enumerate(self._rows_of(tile)):
                answers.append(beat)
                cases.append(len(answered) + row * columns)
                ends.append(place)
            for element in tile.elements:
                element.register = tile.register
            answered += tile.elements
        return Scenario(
            name=name,
            payloads=self.port.request.pack(**payload, **self.further_columns(beats)),
            answers=self.port.answer.pack(
                **{key: np.array([one[key] for one in answers], object) for key in self.port.answer.widths}
            ),
            case=np.array(cases),
            chunks=table.of_segments("chunk"),
            pauses=table.pauses(),
            ends=np.array(ends),
            details=details_of(answered),
        )

    def _loaded(self, table: Table, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of initial values, and random values for the fields that their beats ignore."""
        columns = int(self.mac.columns)
        width = self.port.request.widths["initial"] // columns
        loads = np.array([isinstance(tile, Loads) for tile in table.segments], bool)[table.which]
        # Beats of products carry random initial values.
        words = self.rng.integers(0, 1 << width, (len(loads), columns)).tolist()
        for place in np.flatnonzero(loads).tolist():
            tile, row = table.segments[table.which[place]], int(table.place[place])
            assert isinstance(tile, Loads)
            words[place] = [element.result for element in tile.elements[row * columns :][:columns]]
        return {
            "initial": np.array([sum(code << width * at for at, code in enumerate(row)) for row in words], object),
            "loads": loads,
            "row": np.where(loads, table.place, self.rng.integers(0, self.mac.rows, len(loads))),
            **{key: np.where(loads, self.rng.integers(0, 2, len(loads)), payload[key]) for key in ("first", "last")},
        }

    def loads(self, index: int, level: int, **given: Any) -> Segment:
        """Return a segment that `row` turns into the beats of initial values."""
        segment = self.segment(index, level, int(self.mac.rows), **given)
        segment.is_load = True
        return segment

    def _initial_elements(self, segment: Segment) -> list[Segment]:
        """Return elements whose results are initial values: a third special, in turn, and a third of any kind."""
        outer = FP32 if segment.level != 2 else self.inner or self.operands[segment.format]
        count, key = self.elements(segment.level), (segment.format, segment.level)
        positive = (0, 1, outer.min_normal - 1, outer.min_normal, outer.max_finite, outer.inf, outer.inf | 1, outer.nan)
        special = np.array([code | sign for code in positive for sign in (0, outer.sign_mask)])
        drawn = self._drawn[key]
        third = (np.arange(count) + drawn) % 3
        turns = (drawn + np.cumsum(third == 0)) % len(special)
        self._drawn[key] += int((third == 0).sum())
        usual = encode(self.rng.normal(size=count), outer)
        anything = self.rng.integers(0, 1 << outer.width, count)
        codes = np.where(third == 0, special[turns], np.where(third == 1, anything, usual))
        elements = []
        for code in codes.tolist():
            element = copy(segment)
            element.result, element.flags, element.is_known = code, 0, True
            elements.append(element)
            self.bins[f"{self.operands[segment.format]}/level_{segment.level}/initial/{_kind(code, outer)}"] += 1
        return elements

    def _words(self, table: Table, side: str, count: int, step: int) -> Any:
        """Return the factors of all rows, or of all columns, as words, from every `step`-th element of a tile."""
        width = self.port.request.widths[side] // count
        codes = np.zeros((len(table.which), count), np.int64)
        beats_of = np.split(np.argsort(table.which, kind="stable"), np.cumsum(np.bincount(table.which))[:-1])
        for tile, at in zip(table.segments, beats_of, strict=True):
            assert isinstance(tile, Row)
            fmt = self.operands[tile.format] if tile.format < len(self.operands) else self.operands[0]
            neutral = [fmt.sign_mask] if side == "a" else [fmt.one]
            products = [getattr(tile.elements[number * step], side) or neutral for number in range(count)]
            codes[at] = np.array(products)[:, table.place[at]].T
        words = [sum(code << width * place for place, code in enumerate(every)) for every in codes.tolist()]
        return np.array(words, object)

    def _rows_of(self, tile: Row) -> list[dict[str, int]]:
        """Return the fields of the answers of a tile: one answer for each row, or a single refusal."""
        columns, rows = int(self.mac.columns), int(self.mac.rows)
        width = self.port.answer.widths["result"] // columns
        common = {"error": tile.error, "register": tile.register}
        if tile.error != NO_ERROR:
            return [common | {"result": 0, "flags": 0, "row": 0, "last_row": 1}]
        answers = []
        for row in range(rows):
            elements = tile.elements[row * columns :][:columns]
            result = sum(element.result << width * at for at, element in enumerate(elements))
            flags = sum(element.flags << 5 * at for at, element in enumerate(elements))
            answers.append(common | {"result": result, "flags": flags, "row": row, "last_row": int(row == rows - 1)})
        return answers

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        made = [*MacMaker.scenarios(self), self.all_tiles_end()]
        if self.mac.parameters.has_chunks:
            made.append(self.make("chunks_of_one", self.chunks_of_one))
        if self.mac.initial:
            made += [self.make(f"initial_{policy}", self.initial_values, policy) for policy in POLICIES]
        return made

    def initial_values(self) -> list[Chain]:
        """Start tiles from initial values, also a tile whose reduction is abandoned, and one that has just ended."""
        chains: list[Chain] = []
        for (index, level), chunk in itertools.product(self.kinds, (1, min(3, self.default_chunk), 0)):
            for _ in range(max(2, int(40 * self.effort))):
                chain: Chain = []
                for length in self.rng.choice([1, 1, 2, 3, 4, 7], 3).tolist():
                    if self.rng.random() < 0.3:
                        chain.append(self.segment(index, level, 2, chunk=chunk, last=False))
                    chain.append(self.loads(index, level, chunk=chunk, last=False))
                    chain.append(self.segment(index, level, length, chunk=chunk, first=False))
                chains.append(chain)
        return chains

    def chunks_of_one(self) -> list[Chain]:
        """End a chunk with every product, in all tiles in turn, so that a tile is met again while its sums queue."""
        return [
            [self.segment(index, level, 8, chunk=1)] for index, level in self.kinds for _ in range(self.mac.registers)
        ]

    def all_tiles_end(self) -> Scenario:
        """End all tiles in neighbouring cycles, several times, with refusals between them, while rows may not leave."""
        rows, tiles = int(self.mac.rows), int(self.mac.registers)

        def chains() -> list[Chain]:
            made: list[Chain] = []
            for index, level in self.kinds:
                for _ in range(2 * tiles):
                    made += [[self.segment(index, level, 1)], self._refusal()]
            for index, level in self.kinds * _TURNS:
                length = int(self.rng.integers(1, 5))
                made += [[self.segment(index, level, length)] for _ in range(tiles)]
                made.append(self._refusal())
                self.bins[f"all_tiles_end/level_{level}"] += 1
            return made

        scenario = self.make("all_tiles_end", chains)
        # At first one row leaves at a time: then a refusal may leave one place too few for the tile behind it.
        row_by_row = np.tile(np.arange(2 * rows + 8) == 0, len(self.kinds) * (rows + 1) * 2 * tiles)
        lengths = self.rng.integers(20, 120, 32)
        scenario.takes = np.concatenate([row_by_row, np.repeat(np.arange(32) % 2 == 0, lengths)])
        return scenario

    def _refusal(self) -> Chain:
        return [self.segment(0, self._refused_level(), 1, error=UNSUPPORTED)]

    def full_queue(self) -> Scenario:
        """Take nothing until every tile waits."""
        return MacMaker.full_queue(self)

    def throughput(self) -> list[Scenario]:
        """Leave out answers in every cycle: the rows of a tile take more."""
        return [one for one in MacMaker.throughput(self) if not one.name.startswith("throughput_of_answers")]

    def cycles(self, level: int, ends_chunk: list[bool]) -> int:
        """Return the cycles that products take in rotation: each promotion has its cycle, in the lanes or elsewhere."""
        if self.mac.parameters.core.shares_promotions:
            return self._cycles_of_shared_promotions(ends_chunk)
        cycle, promotions, issued = 0, set(), []
        for ends in ends_chunk:
            while cycle in promotions:
                cycle += 1
            issued.append(cycle)
            if ends:
                promotions.add(cycle + self.mac.parameters.returning_position)
            cycle += 1
        ahead = beats_ahead(self.mac)
        return issued[-1 - ahead] + 1 + ahead

    def _cycles_of_shared_promotions(self, ends_chunk: list[bool]) -> int:
        """Return the cycles of products that wait, if they end a chunk, until the one before has left the lanes."""
        core, tiles = self.mac.parameters.core, self.mac.accumulate_latency
        cycle, taken, issued = 0, 0, []
        free = [0] * tiles
        for place, ends in enumerate(ends_chunk):
            tile = place % tiles
            if ends:
                cycle = max(cycle, free[tile])
                # All ranks and the queue; the partial sums of the chunk before take a cycle each.
                taken = max(cycle + len(core.operation_ranks) + 2, taken + core.rows * core.sharing_columns)
                free[tile] = taken + _UNTIL_FREE
            issued.append(cycle)
            cycle += 1
        ahead = beats_ahead(self.mac)
        return issued[-1 - ahead] + 1 + ahead
