"""Proofs about the control of an array of lanes for any number of beats: no beat is lost, and no two results meet.

The lanes are left out: they may give anything. By induction over cycles, as in `lab.proofs.along_model`, with a reset
in any cycle and a port ``chunk`` that changes at will:

- every beat is issued once, as it was taken; none is issued beside a promotion;
- products of a tile, and promotions to a tile, keep their distance; at level 0, and when initial values are loaded, no
  chunk and no promotion is on its way;
- each tile has at most one result on its way, from the issue of its last product until it enters the chains. So every
  lane has a place for it, and the queue of tiles never overflows;
- the queue of rows never overflows, and offers a row whenever it has one;
- the rows of a tile arrive one after the other, in order; a refusal has one.

At level 1 without level 0 and initial values, shared units promote partial sums on their way out. Then a tile has at
most one chunk on its way; the partial sums of a chunk arrive in order, lane by lane; and none arrives at a promotion
unit while the total that it needs has yet to be written there.

It says nothing about values: `lab.proofs.matrix_values` and the regression check them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import C, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.catalogue import UNITS
from hdl.cores.operand import split_code
from hdl.cores.words import named, record
from hdl.mac.inner import OPERAND
from hdl.matrix.matrix_mac import MatrixMac
from hdl.matrix.outgoing import WAY
from hdl.matrix.ports import matrix_beat_layout, matrix_result_layout
from lab.proofs.along_model.induction import MOST, induction
from lab.proofs.along_model.opened import SeenMemory
from lab.proofs.along_model.record import Condition
from lab.proofs.control import TINY
from lab.proofs.left_out import OpenMatrixMac, pass_on
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof

__all__ = ["SteadyMatrix", "matrix_proofs"]

#: Rows, columns, levels, and whether beats may load initial values. The first is the released size.
_SIZES = (
    (2, 2, (0, 1, 2), False),
    (3, 1, (0,), False),
    (1, 5, (2,), False),
    (2, 2, (1, 2), False),
    (7, 5, (1,), False),
    (2, 2, (0, 1, 2), True),
    (1, 1, (2,), True),
)
#: The smallest format that has a signalling NaN, which units with initial values need.
_WITH_SIGNALLING = FloatFormat("1-2-2", 2, 2)
_RELEASED = "matrix_mac"
#: A total is read 1 cycle after its order, and may be read 13 cycles after it: see `hdl.matrix.promotion.Promotion`.
_TOTAL_DELAY = 12


class SteadyMatrix(wiring.Component):
    """An array without its lanes, and the conditions on it.

    Ports
    -----
    i, o, chunk
        As of `MatrixMac`.
    legal, conditions, claims : out
        As of `lab.proofs.along_model.induction.ControlWithModel`.
    """

    def __init__(self, unit_type: type[MatrixMac] = OpenMatrixMac, **given: Any) -> None:
        self.unit = unit = unit_type(**given)
        parameters = unit.parameters
        self.names: dict[str, list[str]] = {}
        super().__init__(
            {
                "i": In(stream.Signature(matrix_beat_layout(parameters))),
                "o": Out(stream.Signature(matrix_result_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
                "legal": Out(1),
                "conditions": Out(MOST),
                "claims": Out(MOST),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = self.unit
        m.submodules.unit = unit
        m.d.comb += pass_on(self, unit)
        seen = _Seen(unit)
        beat = _Beat(m, self)
        conditions = [*beat.conditions(seen), *_flight(seen), *_waits(seen), *_levels(seen)]
        conditions += [*_tiles(m, seen), *_rows(m, seen), *_columns(seen)]
        claims = [*beat.claims(seen, self.i.ready), *_queues(seen, self.o.valid)]
        for name, found in (("conditions", conditions), ("claims", claims)):
            self.names[name] = [each for each, _ in found]
            values = Cat(value for _, value in found)
            if len(values) != len(found):
                raise ValueError(f"{name}: got {len(values)} bits for {len(found)}, must be one for each")
            m.d.comb += getattr(self, name).eq(Cat(values, Const(-1, MOST - len(values))))
        m.d.comb += self.legal.eq(1)
        return m


class _Seen:
    """The signals of an array: the operation behind each rank, and its kind."""

    def __init__(self, unit: MatrixMac) -> None:
        self.parameters, self.control, self.drain = unit.parameters, unit.control, unit.drain
        self.at: list[Any] = list(unit.control.flight.at)
        self.places = range(1, len(self.at))
        self.returns, self.shares = self.parameters.returning_position, self.parameters.shares_promotions

    @property
    def goes(self) -> Value:
        """Whether the held beat is issued in this cycle."""
        return self.control.held_valid & self.control.load

    def is_product(self, place: int) -> Value:
        return self.at[place].writes & self.at[place].is_product

    def is_chunk(self, place: int) -> Value:
        return self.is_product(place) & self.at[place].partial

    def is_chain(self, place: int) -> Value:
        return self.is_product(place) & ~self.at[place].partial

    def is_promotion(self, place: int) -> Value:
        return self.at[place].writes & ~self.at[place].is_product

    def is_refused(self, place: int) -> Value:
        return Cat(self.at[place].error).any()

    def will_give(self, place: int) -> Value:
        """Return whether an operation, or the promotion that it has yet to cause, gives a result."""
        operation = self.at[place]
        gives = operation.last & (self.is_chain(place) | self.is_promotion(place))
        if place <= self.returns:
            gives |= operation.last & self.is_chunk(place)
        return self.is_refused(place) | (self.ends_chunk(place) if self.shares else gives)

    def ends_chunk(self, place: int) -> Value:
        """Return whether a product ends a chunk; behind the first rank that is being found out."""
        if place >= self.parameters.chunk_delay:
            return self.is_chunk(place) & self.at[place].promote
        now = self.control.chunks.counting
        ends = Mux(now["first"] | ~now["held"].open, now["is_one"], now["held"].is_last & ~now["is_unlimited"])
        return self.is_chunk(place) & (now["last"] | ends)

    def is_marked(self, place: int) -> Value:
        """Return whether an operation has marked its tile: a chunk only when its end is known."""
        late = self.shares and place <= self.parameters.chunk_delay + 1
        return self.is_refused(place) if late else self.will_give(place)

    def same(self, one: int, other: int) -> Value:
        return self.at[one].register == self.at[other].register


class _Beat:
    """The beat that was taken last, beside the unit's own record of it."""

    def __init__(self, m: Module, top: SteadyMatrix) -> None:
        self.parameters, self.layout = top.unit.parameters, top.i.payload.shape()
        self.beat, self.is_there = Signal(self.layout, name="taken_beat"), Signal(name="beat_is_there")
        with m.If(top.i.ready):
            m.d.sync += [self.beat.eq(top.i.payload), self.is_there.eq(top.i.valid)]
        self.before, self.was_there = Signal(self.layout, name="beat_before"), Signal(name="beat_was_there")
        m.d.sync += [self.before.eq(self.beat), self.was_there.eq(self.is_there)]
        self.loads = self.beat.loads if self.parameters.initial else C(0, 1)
        self._split = partial(split_code, m, self.parameters.operands)

    def loads_as(self, operation: Any) -> Value:
        """Return whether the held beat, or an operation, loads a row exactly as the beat does."""
        if not self.parameters.initial:
            return C(1, 1)
        same_row = operation.row == self.beat.row if self.parameters.rows > 1 else C(1, 1)
        return (operation.loads == self.loads) & same_row

    def conditions(self, seen: _Seen) -> Iterator[Condition]:
        held, beat = seen.control.held, self.beat
        is_sound = Cat(beat.level == level for level in self.parameters.levels).any()
        yield "held", seen.control.held_valid == self.is_there
        told = (
            (held.register == beat.register) & (held.first == (beat.first | self.loads))
            & (held.last == (beat.last & ~self.loads))
            & (~is_sound | (held.is_chain == ((beat.level == 0) | self.loads)) & (held.wide_total == (beat.level != 2)))
            & (held.is_sound == is_sound) & (Cat(held.error).any() == ~is_sound)
            & (held.gives_result == ((beat.last & ~self.loads) | ~is_sound)) & self.loads_as(held)
        )  # fmt: skip
        yield "held as taken", ~self.is_there | told
        yield from self._operands(seen.control)

    def _operands(self, control: Any) -> Iterator[Condition]:
        """The operands follow their beat by a cycle, unless it loads others."""
        loads_before = self.before.loads if self.parameters.initial else C(0, 1)
        for (name, places), stays in zip(control.groups, control.stays, strict=True):
            for place in places if name != "initial" else ():
                layout = control.taken[name][place].shape()
                taken, arrived = (Value.cast(each[place]) for each in (control.taken[name], getattr(control, name)))
                held, issued = (
                    record(layout, vars(self._split(beat.format, beat[name][place])))
                    for beat in (self.beat, self.before)
                )
                yield f"{name} {place} held", ~self.is_there | self.loads | (Mux(stays, arrived, taken) == held)
                yield f"{name} {place} issued", ~self.was_there | loads_before | (arrived == issued)

    def claims(self, seen: _Seen, is_ready: Value) -> Iterator[Condition]:
        beat, issued, is_there = self.beat, seen.at[0], self.is_there
        is_sound = Cat(beat.level == level for level in self.parameters.levels).any()
        is_product = seen.is_product(0) | seen.is_refused(0)
        yield "no beat lost", ~(is_ready & is_there) | is_product
        yield "no beat twice", ~is_product | (is_ready & is_there)
        right = (issued.register == beat.register) & (issued.last == (beat.last & ~self.loads))
        right &= (seen.is_refused(0) == ~is_sound) & (issued.writes == is_sound) & self.loads_as(issued)
        if self.parameters.has_chunks:
            right &= ~is_sound | (issued.partial == ((beat.level != 0) & ~self.loads))
        yield "issued as taken", ~is_product | right
        yield "starts afresh", ~(seen.is_chain(0) & is_there) | (issued.fresh == (beat.first | self.loads))


def _flight(seen: _Seen) -> Iterator[Condition]:
    """Operations keep their distance, and are either of a kind or refused."""
    latency, returns = seen.parameters.accumulate_latency, seen.returns
    for place in seen.places:
        operation = seen.at[place]
        yield f"refused {place}", ~seen.is_refused(place) | ~operation.writes
        yield f"product {place}", ~operation.is_product | operation.writes
        yield f"partial {place}", ~operation.partial | operation.is_product
        if seen.shares:
            yield f"no promotion {place}", ~seen.is_promotion(place)
        if not seen.parameters.has_chunks:
            yield f"neither chunk nor promotion {place}", ~operation.partial & ~seen.is_promotion(place)
        # From this place on it is known which product ends a chunk.
        if place >= seen.parameters.chunk_delay:
            yield f"promote {place}", ~operation.promote | seen.is_chunk(place)
            yield f"last promotes {place}", ~(seen.is_chunk(place) & operation.last) | operation.promote
        else:
            yield f"promote {place}", ~operation.promote
        for other in seen.places:
            same = seen.same(place, other)
            if place < other < place + latency:
                yield f"products {place} {other}", ~(seen.is_product(place) & seen.is_product(other) & same)
                yield f"promotions {place} {other}", ~(seen.is_promotion(place) & seen.is_promotion(other) & same)
            # A promotion is as far behind as the product that it comes from.
            if 0 < abs(other + returns - place) < latency:
                yield f"product {place}, promotion {other}", ~(seen.is_product(place) & seen.is_promotion(other) & same)
    if seen.parameters.has_chunks:
        counting, facts = seen.control.chunks.counting, seen.control.chunks.facts
        yield "last of a chunk", ~seen.is_chunk(1) | (counting["last"] == seen.at[1].last)
        yield "end of a chunk", ~(seen.is_chunk(2) & seen.at[2].last) | facts.ends
        if seen.shares:
            yield from _counting(seen)
        else:
            promotes = seen.at[returns].promote
            yield "promotion announced", ~(promotes & seen.goes)


def _counting(seen: _Seen) -> Iterator[Condition]:
    """The chunks count the products in flight; a write that a reset has left over finds no tile on its way."""
    control, counting, writing = seen.control, seen.control.chunks.counting, seen.control.chunks.writing
    yield "counted", counting["counts"] == seen.is_chunk(1)
    yield "counted tile", ~seen.is_chunk(1) | (counting["register"] == seen.at[1].register)
    its = seen.is_chunk(2) & (writing.addr == seen.at[2].register)
    yield "written", writing.en | ~seen.is_chunk(2)
    flies = Cat(Cat(seen.at[place].writes, seen.at[place].error).any() for place in seen.places).any()
    yield "left over", ~writing.en | its | ~(control.held_valid | control.pending.any() | flies)


def _waits(seen: _Seen) -> Iterator[Condition]:
    """The held beat waits for the products of its tile in flight."""
    control, held, latency = seen.control, seen.control.held, seen.parameters.accumulate_latency
    yield "takes when empty", control.held_valid | control.load
    for tile, recent in enumerate(control.recent):
        places = range(1, latency - 1)
        there = Cat(seen.is_product(place) & (seen.at[place].register == tile) for place in places)
        ends = control.pending[tile] & control.ending[tile] if seen.shares else C(0, 1)
        yield f"recent {tile}", (recent == there) & (control.closed[tile] == (there.any() | ends))
    # A refused beat as well.
    goes = seen.goes
    for place in range(1, latency):
        yield f"waits for {place}", ~(goes & seen.is_product(place) & (seen.at[place].register == held.register))


def _levels(seen: _Seen) -> Iterator[Condition]:
    """A product of level 0 has waited for chunks and promotions."""
    parameters, control = seen.parameters, seen.control
    if not (parameters.has_chunks and parameters.has_chains):
        return
    others = [seen.is_chunk(place) | seen.is_promotion(place) for place in seen.places]
    for place, other in zip(seen.places, others, strict=True):
        left = C(1, 1) if place < 2 else control.cycles_of_others >= parameters.stages + 2 - place
        yield f"others {place}", ~other | (control.others & left)
        older = [seen.is_chunk(each) for each in seen.places if each > place]
        newer = [seen.is_promotion(each) for each in seen.places if each + seen.returns >= place]
        yield f"chain {place}", ~seen.is_chain(place) | ~Cat(*older, *newer, C(0, 1)).any()
    held = control.held
    goes = seen.goes & held.is_chain & held.is_sound
    yield "others gone", ~(goes & Cat(others).any())


def _tiles(m: Module, seen: _Seen) -> Iterator[Condition]:
    """At most one result of each tile, or one chunk, is on its way, and it is marked."""
    control, drain = seen.control, seen.drain
    queue, memory = drain.tiles, SeenMemory.of_queue(drain.tiles)
    m.d.comb += [row.addr.eq(place) for place, row in enumerate(memory.rows)]
    entries = [data.View(drain.head.shape(), row.data) for row in memory.rows]
    width = len(queue.consume)
    yield "tiles", (queue.has_word == (queue.level != 0)) & (queue.level <= queue.depth)
    yield "order of tiles", queue.produce == (queue.consume + queue.level)[:width]
    waiting = []
    for place, entry in enumerate(entries):
        is_used = named(m, f"is_used_{place}", (C(place, width) - queue.consume)[:width] < queue.level)
        yield f"entry {place}", ~is_used | (entry.is_refused == Cat(entry.error).any())
        waiting.append((is_used, entry.register))
    yield "head", ~drain.head_valid | (drain.head.is_refused == Cat(drain.head.error).any())
    waiting += [(drain.head_valid, drain.head.register), (control.leaving, control.leaving_tile)]
    waits = list(waiting[:-1])
    waiting += [(seen.will_give(place), seen.at[place].register) for place in seen.places]
    marked = [C(1, 1)] * (len(waiting) - len(seen.places)) + [seen.is_marked(place) for place in seen.places]
    for tile in range(seen.parameters.registers):
        its = [named(m, "is_its_result", is_there & (register == tile)) for is_there, register in waiting]
        # None or one: nothing is both behind a place and at it.
        several, found, is_marked = C(0, 1), C(0, 1), C(0, 1)
        for each, marks in zip(its, marked, strict=True):
            several, found, is_marked = several | (found & each), found | each, is_marked | (each & marks)
        yield f"results of {tile}", ~several & (is_marked == control.pending[tile])
    held = control.held
    goes = seen.goes & held.gives_result
    if seen.shares:
        yield from _ages(seen, waits)
        chunks = control.chunks
        states = SeenMemory(chunks.states, chunks.writing, chunks.reading)
        m.d.comb += [row.addr.eq(place) for place, row in enumerate(states.rows)]
        for tile, row in enumerate(states.rows):
            state = data.View(chunks.states.shape, row.data)
            yield f"chunk of {tile} ends", control.ending[tile] == (state.is_last & state.open)
        its_end = Cat(bit & (held.register == tile) for tile, bit in enumerate(control.ending)).any()
        goes = seen.goes & (held.gives_result | (control.length == 1) | its_end)
        behind = drain.on_way[1]
        starts = behind.valid & ~Cat(behind.error).any() & (_number(seen, behind) == 0)
        newest = drain.on_way[0]
        its = control.leaving & (control.leaving_tile == newest.register)
        yield "tile was taken", ~(newest.valid & (_number(seen, newest) == 0)) | its
        yield "tile was free", ~(goes & starts & (held.register == behind.register))
    is_free = ~Cat(bit & (held.register == tile) for tile, bit in enumerate(control.pending)).any()
    yield "tile is free", ~goes | is_free


def _number(seen: _Seen, each: Any) -> Value:
    """Return the number of a partial sum on its way among those of a chain."""
    columns, rows = seen.parameters.sharing_columns, seen.parameters.rows
    return (each.row * columns if rows > 1 else C(0, 1)) + each.column


def _ages(seen: _Seen, waits: list[tuple[Value, Value]]) -> Iterator[Condition]:
    """The next chunk of a tile follows the one before from afar: each is as old as its first partial sum."""
    way, last = seen.drain.on_way, len(seen.at) + 3
    ages = [place + 1 + _number(seen, each) for place, each in enumerate(way)]
    are_there = [each.valid & ~Cat(each.error).any() for each in way]
    for place, (each, cycles, is_there) in enumerate(zip(way, ages, are_there, strict=True)):
        younger = [
            ~(seen.will_give(at) & (seen.at[at].register == each.register)) | (cycles >= at + 3) for at in seen.places
        ]
        younger += [~(waits_there & (register == each.register)) | (cycles >= last) for waits_there, register in waits]
        yield f"chunk before {place}", ~is_there | Cat(younger).all()
        for before in range(place + 1, len(way)):
            same = is_there & are_there[before] & (way[before].register == each.register)
            yield f"chunks {place} {before}", ~same | (ages[before] == cycles) | (ages[before] >= cycles + last)


def _sums(m: Module, seen: _Seen) -> Iterator[Condition]:
    """Every row on its way has a place; the partial sums of a chunk follow one another."""
    drain, parameters = seen.drain, seen.parameters
    columns, lines, way = parameters.sharing_columns, drain.lines, drain.on_way
    newest, length = way[0], parameters.rows * parameters.sharing_columns
    coming = Mux(newest.gives & (drain.left != 0), (drain.left + columns - 1) // columns, 0)
    used = drain.spare + drain.removed + lines.level + coming
    for each in way:
        used = named(m, "used_places", used + (each.valid & each.gives & each.is_end))
    yield "rows", lines.has_word == (lines.level != 0)
    yield "places", (used == parameters.places) & (drain.spare <= parameters.places)
    yield "sums left", drain.left < length
    yield "chains are free", drain.is_free == (drain.left == 0)
    for number, order in enumerate([drain.order, *drain.orders]):
        at = way[WAY - 1 if number else WAY - 2]
        place = (at.register * (1 << (length - 1).bit_length())) + _number(seen, at)
        yield f"order {number} writes", order.writes == (at.valid & ~Cat(at.error).any())
        yield f"order {number} has a place", ~order.writes | (order.place == place)
    goes_on = newest.valid & ~newest.last_row & (_number(seen, newest) == length - 1 - drain.left)
    yield "chunk goes on", (drain.left == 0) | goes_on
    yield "chunk ends", ~newest.valid | (newest.last_row == (drain.left == 0))
    for place, each in enumerate(way):
        refused, number = Cat(each.error).any(), _number(seen, each)
        is_one = each.gives & each.is_end & each.last_row & (number == 0)
        yield f"refusal has one row {place}", ~(each.valid & refused) | is_one
        its = (each.is_end == (each.column == columns - 1)) & (each.last_row == (number == length - 1))
        its &= (each.column < columns) & (number < length)
        yield f"sum {place}", ~each.valid | refused | its
        if place:
            behind = way[place - 1]
            follows = behind.valid & (behind.register == each.register) & (behind.gives == each.gives)
            follows &= ~Cat(behind.error).any() & (_number(seen, behind) == number + 1)
            yield f"sums follow {place}", ~(each.valid & ~each.last_row) | follows
            starts = ~behind.valid | (_number(seen, behind) == 0)
            yield f"chunks follow {place}", (each.valid & ~each.last_row) | starts


def _totals(seen: _Seen) -> Iterator[Condition]:
    """No total is read before it was written. A row is queued when it is complete."""
    way = seen.drain.on_way
    for place, each in enumerate(way):
        for before in range(place + 1, min(place + _TOTAL_DELAY, len(way))):
            older = way[before]
            same = (older.register == each.register) & (_number(seen, older) == _number(seen, each))
            numbers = ~Cat(each.error, older.error).any()
            yield f"total {place} {before}", ~(each.valid & older.valid & numbers & same)


def _rows(m: Module, seen: _Seen) -> Iterator[Condition]:
    """Every row on its way has a place, and follows the one before it."""
    is_enough = seen.drain.spare >= seen.parameters.rows
    yield "has places", ~seen.drain.has_places | seen.drain.took | is_enough
    yield "has more places", ~seen.drain.has_more | is_enough
    if seen.shares:
        yield from _sums(m, seen)
        return
    drain, parameters = seen.drain, seen.parameters
    rows, lines, way = parameters.rows, drain.lines, drain.on_way
    used = drain.spare + drain.removed + lines.level + drain.left
    for place in way:
        used = named(m, "used_places", used + place.valid)
    yield "rows", lines.has_word == (lines.level != 0)
    yield "places", (used == parameters.places) & (drain.spare <= parameters.places)
    yield "rows left", drain.left < rows
    newest = way[0]
    row = newest.row if rows > 1 else C(0, 1)
    yield "row goes on", (drain.left == 0) | (newest.valid & ~newest.last_row & (row == rows - 1 - drain.left))
    yield "row ends", ~newest.valid | (newest.last_row == (drain.left == 0))
    for place, each in enumerate(way):
        refused = Cat(each.error).any()
        number = each.row if rows > 1 else C(0, 1)
        yield f"refusal has one row {place}", ~(each.valid & refused) | (each.last_row & (number == 0))
        ends = (number == rows - 1) | refused
        yield f"last row {place}", ~each.valid | (each.last_row == ends)
        if place:
            behind = way[place - 1]
            next_number = behind.row if rows > 1 else C(0, 1)
            follows = behind.valid & (behind.register == each.register) & (next_number == number + 1)
            yield f"rows follow {place}", ~(each.valid & ~each.last_row) | (follows & ~Cat(behind.error).any())
            starts = ~behind.valid | (next_number == 0)
            yield f"tiles follow {place}", (each.valid & ~each.last_row) | starts


def _columns(seen: _Seen) -> Iterator[Condition]:
    """The queue of each column is in step with the rows."""
    drain = seen.drain
    lines, way = drain.lines, drain.on_way
    completes = [each.valid & (each.gives & each.is_end if seen.shares else C(1, 1)) for each in way]
    announced = [(-2, *pair) for pair in zip(drain.comes, drain.is_sound, strict=True)]
    if seen.shares:
        announced.append((-3, drain.completes, drain.is_no_refusal))
    for number, (place, comes, is_sound) in enumerate(announced):
        yield f"row announced {number}", comes == completes[place]
        yield f"refusal announced {number}", ~way[place].valid | (is_sound != Cat(way[place].error).any())
    yield "row arrives", lines.w_en == completes[-1]
    for number, column in enumerate(drain.columns):
        following = (column.consume + 1)[: len(lines.consume)]
        first = Mux(column.r_en, following, column.consume)
        yield f"column {number} goes on", column.following == following
        same_places = (column.produce == lines.produce) & (first == lines.consume)
        yield f"column {number} in step", same_places & (column.w_en == lines.w_en)
        yield f"refusal in column {number}", ~way[-1].valid | (column.has_result != Cat(way[-1].error).any())


def _queues(seen: _Seen, offers: Value) -> Iterator[Condition]:
    drain = seen.drain
    yield "place for a tile", ~drain.tiles.w_en | (drain.tiles.level < drain.tiles.depth)
    yield "place for a row", ~drain.lines.w_en | (drain.lines.level < drain.lines.depth)
    yield "offers what it has", offers == (drain.lines.level != 0)
    gives = seen.will_give(len(seen.at) - 1)
    yield "every result becomes a tile", drain.tiles.w_en == gives
    takes = drain.taken.takes
    if seen.shares:
        yield from _totals(seen)
    yield "takes what there is", ~takes | (drain.head_valid & Mux(takes, drain.spare >= seen.parameters.rows, 0))


def matrix_proofs() -> Iterator[Proof]:
    """Yield the proofs of the released size and of others."""
    tiles = UNITS[_RELEASED].build().registers
    for rows, columns, levels, initial in _SIZES:
        slug = f"{rows}x{columns}/levels_{''.join(map(str, levels))}{'/initial' if initial else ''}"
        title = f"{rows} x {columns} lanes, levels {', '.join(map(str, levels))}, {tiles} tiles, any beats"
        title += ", initial values" if initial else ""
        for engine in (BITWUZLA, Z3_CADICAL):
            build = partial(_build, rows, columns, levels, tiles, initial=initial)
            yield Proof(
                f"matrix/control/{slug}", "array: control", title, "induction", engine, build, 900, engine == BITWUZLA
            )


def _build(rows: int, columns: int, levels: tuple[int, ...], tiles: int, folder: Path, **changes: Any) -> str:
    fmt = _WITH_SIGNALLING if changes.get("initial") else TINY
    given: dict[str, Any] = {"operands": (fmt,), "inner": OPERAND, "rows": rows, "columns": columns, "levels": levels}
    return induction(SteadyMatrix(**given | {"registers": tiles, "flags": False} | changes), folder)
