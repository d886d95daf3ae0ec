"""What holds in every cycle between a multiply-accumulate unit and the records of its model.

Each condition is one output bit, so that one which does not hold is told by its name. None of them needs what comes in
from outside in this cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Module, Mux, Value

from hdl.cores.words import choose, named
from hdl.mac.decode import decoded_control
from hdl.mac.lane import operand_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import product_beat_layout
from sim.formal.contents import PLACES, Contents, meets
from sim.formal.ghost import Ghost
from sim.formal.opened import OpenedUnit
from sim.formal.record import Record

__all__ = ["Invariant", "agrees", "plain"]

Condition = tuple[str, Value]


def plain(parameters: MacParameters, index: Value, code: Value) -> Value:
    """Return a code of one of the formats as an operand that enters: the top fraction bits stand at one place."""
    layout = operand_layout(parameters.formats)
    width = layout["fraction"].width
    codes = []
    for fmt in parameters.operands:
        fraction, field = code[: fmt.fraction_bits], code[fmt.fraction_bits : fmt.width - 1]
        parts = {
            "fraction": Cat(C(0, width - fmt.fraction_bits), fraction),
            "field": Cat(field, C(0, layout["field"].width - fmt.exponent_bits)),
            "sign": code[fmt.width - 1],
            "is_normal": field != 0,
        }
        codes.append(Cat(parts.get(name, C(0, 1)) for name, _ in layout))
    return choose(index, codes)


def agrees(operation: Any, record: Record, *, is_settled: bool, has_flags: bool, wide_format: int) -> Value:
    """Tell whether an operation of the unit is that of a record.

    Parameters
    ----------
    operation : View of operation_layout
    record : Record
    is_settled : bool
        Whether it is known already what it does to its chunk.
    has_flags : bool
        Whether the flags of its accumulator have joined it.
    wide_format : int
        Index of fp32 among the formats of accumulators.
    """
    fields = record.fields
    is_chunk = record.counts
    fresh = record.fresh if is_settled else Mux(is_chunk, fields.first, record.fresh)
    pending = record.is_pending if is_settled else C(0, 1)
    same_step = (
        (operation.register == fields.register)
        & (operation.format == fields.format)
        & (operation.accumulator_format == Mux(record.wide, wide_format, fields.format))
        & (operation.wide == record.wide)
        & (operation.is_product == fields.is_product)
        & (operation.partial == is_chunk)
        & (operation.fresh == fresh)
        & (operation.last == fields.last)
        & (operation.flags.as_value() == (record.prior if has_flags else fields.base))
        & (~is_chunk | (operation.wide_total == fields.wide_total))
        & (operation.fresh_total == (is_chunk & fields.is_first if is_settled else 0))
    )
    error = Cat(operation.error)
    return (
        (operation.writes == fields.writes)
        & (operation.promote == pending)
        & (error == Mux(fields.refused, fields.error, 0))
        & (~fields.refused | (operation.register == fields.register))
        & (~fields.writes | same_step)
    )


class Invariant:
    """The conditions.

    Parameters
    ----------
    m : Module
    unit : OpenedUnit
    operations : list of View
        As issued and behind each rank.
    ghost : Ghost
    chunk : Value
    """

    def __init__(self, m: Module, unit: OpenedUnit, operations: list[Any], ghost: Ghost, chunk: Value) -> None:
        self._m, self._unit, self._operations, self._ghost, self._chunk = m, unit, operations, ghost, chunk
        self._parameters = parameters = ghost.parameters
        self._behind = list(enumerate(ghost.records))[1:]
        self._latency = parameters.accumulate_latency
        for memory in (*unit.banks.values(), unit.states):
            m.d.comb += [row.addr.eq(place) for place, row in enumerate(memory.rows)]
        self.conditions: list[Condition] = [
            *self._records(),
            *(self._held() if parameters.has_input_rank else ()),
            *self._others(),
            *self._distances(),
            *(self._chunks_on_their_way() if parameters.chunk_delay else ()),
            *self._chunk_states(),
            *self._contents(is_class=False),
            *self._contents(is_class=True),
        ]
        #: What needs the beat that is offered, where an accumulator is read in the cycle of its issue.
        self.claims: list[Condition] = []
        for place, name, condition in self._reading():
            (self.conditions if place else self.claims).append((name, condition))

    # -- what is in flight

    def _records(self) -> Iterator[Condition]:
        parameters = self._parameters
        for place, record in self._behind:
            yield (
                f"operation {place}",
                agrees(
                    self._operations[place],
                    record,
                    is_settled=place >= parameters.chunk_delay,
                    has_flags=place >= parameters.position("align"),
                    wide_format=len(parameters.operands),
                ),
            )
            fields = record.fields
            sane = (
                ~(fields.writes & fields.refused)
                & (~record.counts | ~fields.last | fields.ends)
                & (~fields.refused | (fields.error != 0))
                & (~fields.writes | ~record.wide | ~fields.register[0])
                & (~record.counts | ~fields.wide_total | ~fields.register[0])
                & (~record.is_chain | fields.wide_total)
                & (~fields.writes | ~record.fresh | (fields.before.as_value() == 0))
                & (~record.is_pending | ~fields.is_first | (fields.total_before.as_value() == 0))
            )
            yield f"record {place}", sane

    def _held(self) -> Iterator[Condition]:
        """The beat that waits behind its rank, and how long."""
        unit, ghost, parameters = self._unit, self._ghost, self._parameters
        beat, held = ghost.beat, unit.issue._held
        yield "held valid", unit.issue._held_valid == ghost.beat_valid
        sound = ghost.is_sound
        wanted = {
            "a": plain(parameters, beat.format, beat.a),
            "b": plain(parameters, beat.format, beat.b),
            "format": beat.format,
            "register": beat.register,
            "first": beat.first,
            "last": beat.last,
            "is_chain": beat.level == 0,
            "wide_total": beat.level != 2,
            "gives_result": beat.last | ~sound,
            "is_sound": sound,
            "error": ghost.error,
        }
        control = decoded_control(product_beat_layout(parameters))
        for name in ("a", "b", *control):
            yield f"held {name}", ~ghost.beat_valid | (Cat(held[name]) == wanted[name])
        hazards = [
            record.is_sound_product & (record.fields.register == beat.register)
            for record in ghost.records[1 : self._latency]
        ]
        for cycle in range(len(hazards)):
            waits = Cat(row[cycle : cycle + 1] for row in unit.rows).any()
            yield f"waits {cycle}", ~ghost.beat_valid | (waits == Cat(hazards[: len(hazards) - cycle]).any())

    def _others(self) -> Iterator[Condition]:
        """How long a product of level 0 waits for operations of other levels."""
        unit, stages, since = self._unit, self._parameters.stages, self._ghost.since_others
        for place, record in self._behind:
            other = record.counts | record.is_promotion
            left = C(1, 1) if place < 2 else unit.cycles_of_others >= stages + 2 - place
            yield f"others {place}", ~other | (unit.others & left)
        newest = self._ghost.records[1]
        yield "others now", (since == 0) | ~(newest.counts | newest.is_promotion)
        left = unit.cycles_of_others
        yield "others before", (left <= stages) & ((since == 0) | (left + since <= stages + 1) | (left == 0))
        yield "others wait", ~unit.others | (since <= stages)

    def _distances(self) -> Iterator[Condition]:
        """Operations of one accumulator keep their distance, also those that come back as promotions."""
        records, latency, depth = self._ghost.records, self._latency, self._ghost.depth
        # Behind the last rank comes the promotion: one row of places.
        row = [(record, C(0, 1)) for _, record in self._behind] + [(record, C(1, 1)) for _, record in self._behind]

        def there(at: int) -> Value:
            return row[at][0].is_sound_product if at < depth else row[at][0].is_promotion

        def totals(at: int) -> Value:
            return row[at][0].is_pending if at < depth else row[at][0].is_promotion

        for one in range(2 * depth):
            for other in range(one + 1, min(one + latency + 1, 2 * depth)):
                a, b = row[one][0].fields, row[other][0].fields
                same = a.register == b.register
                if other < one + latency:
                    yield f"distance {one} {other}", ~(there(one) & there(other) & same)
                # What is just being written is passed by only to the same register.
                overlap = Mux(same, a.wide_total != b.wide_total, a.wide_total | b.wide_total)
                yield f"pair {one} {other}", ~(totals(one) & ~a.is_first & totals(other) & overlap)
        level, its_level = (self._ghost.registers[register].level for register in (1, 0))
        for place in range(1, min(latency, depth) + 1):
            record, newer = records[place], records[1:place]
            fields = record.fields
            follows = [
                Cat(each.is_sound_product & (each.fields.register == register) for each in newer).any()
                if newer
                else C(0, 1)
                for register in (0, 1)
            ]
            narrow = record.is_sound_product & fields.register[0] & (level != 2)
            wide = record.is_sound_product & fields.wide_total & (level == 2)
            other = record.is_sound_product & ~fields.register[0] & (fields.wide_total != (its_level != 2))
            yield f"level of {place}", (~(narrow | other) | follows[0]) & (~wide | follows[1])
        for place, record in self._behind:
            promotions = Cat(each.is_promotion for _, each in self._behind).any()
            older = [each.counts for each in records[place + 1 :]] or [C(0, 1)]
            yield f"chain {place}", ~record.is_chain | ~(promotions | Cat(older).any())

    # -- chunks

    def _holds(self, state: Any, count: Value, is_open: Value, later: Value) -> Value:
        """Tell whether the state of a chunk in the unit is that of so many products."""
        chunk = self._chunk
        left = (count != 0) & (count < chunk) & (state.left == (chunk - count)[: len(chunk)])
        counted = left & (state.is_last == (state.left == 1))
        return (state.open == is_open) & (state.is_later == later) & (~is_open | (chunk == 0) | counted)

    def _before(self, state: Any, fields: Any) -> Value:
        return self._holds(state, fields.count, fields.open, fields.later)

    def _length(self, fields: Any) -> Value:
        return (Mux(fields.starts, 0, fields.count) + 1)[: len(self._chunk)]

    def _chunks_on_their_way(self) -> Iterator[Condition]:
        """What is counted in two cycles."""
        unit, ghost, chunk = self._unit, self._ghost, self._chunk
        first, second = ghost.records[1], ghost.records[2]
        now = unit.counting
        one, two = first.fields, second.fields
        yield "chunk now counts", now["counts"] == first.counts
        constants = (now["length"] == chunk) & (now["is_one"] == (chunk == 1)) & (now["is_unlimited"] == (chunk == 0))
        same = (now["register"] == one.register) & (now["first"] == one.first) & (now["last"] == one.last)
        state = unit.states
        yield "chunk now", ~first.counts | (constants & same & self._before(now["held"], one))
        writing = state.writing
        yield "chunk written counts", writing.en == second.counts
        after = self._holds(writing.data, self._length(two), ~two.ends, two.ends | ~two.is_first)
        yield "chunk written", ~second.counts | ((writing.addr == two.register) & after)
        for place, record in enumerate((first, second), 1):
            fields = record.fields
            ends = fields.last | ((chunk != 0) & (self._length(fields) == chunk))
            right = (
                (fields.starts == (fields.first | ~fields.open))
                & (fields.ends == ends)
                & (fields.is_first == (fields.first | ~fields.later))
                & (~fields.open | (chunk == 0) | ((fields.count != 0) & (fields.count < chunk)))
            )
            yield f"chunk of {place}", ~record.counts | right

    def _chunk_states(self) -> Iterator[Condition]:
        """The memory holds what it held before the products that are just being counted."""
        counted = self._ghost.records[1 : 1 + self._parameters.chunk_delay]
        for register, model in enumerate(self._ghost.registers):
            row = self._unit.states.rows[register].data
            in_memory = self._holds(row, model.count, model.open, model.later)
            newest = C(1, 1)
            for place, record in enumerate(counted, 1):
                fields = record.fields
                here = record.counts & (fields.register == register)
                is_after = (
                    (model.count == self._length(fields))
                    & (model.open == ~fields.ends)
                    & (model.later == (fields.ends | ~fields.is_first))
                )
                yield f"chunk model {register} {place}", ~(newest & here) | is_after
                newest &= ~here
            for record in reversed(counted):
                here = record.counts & (record.fields.register == register)
                in_memory = Mux(here, self._before(row, record.fields), in_memory)
            yield f"chunk state {register}", in_memory

    # -- values

    def _contents(self, *, is_class: bool) -> Iterator[Condition]:
        """What operations will read, and what the model says, is what those ahead of them will have written."""
        m, ghost, parameters = self._m, self._ghost, self._parameters
        suffix = "_class" if is_class else ""
        rows = {}
        for place in PLACES:
            row = self._unit.banks[place.partition("_")[0] + suffix].rows["partial" in place].data
            rows[place] = named(m, place, Cat(row))
        contents = Contents(m, rows, 0 if is_class else parameters.formats.low_fraction_bits, is_class=is_class)
        written = ghost.depth if is_class else ghost.depth - 1
        reads = parameters.position("align") if is_class else parameters.reading_position
        kind = "class" if is_class else "number"
        for place in range(written, 0, -1):
            record = ghost.records[place]
            if place <= reads:
                yield f"{kind} for {place}", contents.holds_accumulator(record)
            contents = contents.with_operation(record)
        last = contents
        for place in range(ghost.depth, 0, -1):
            record = ghost.records[place]
            fields = record.fields
            total = fields.total_before.as_value()
            is_there = Mux(
                fields.wide_total, contents.holds_wide(total), contents.holds_total(fields.register[0], total)
            )
            yield f"{kind} for promotion {place}", ~record.is_pending | fields.is_first | is_there
            contents = contents.with_promotion_of(record)
        levels = [model.level for model in ghost.registers]
        for register, model in enumerate(ghost.registers):
            index = C(register, 1)
            partial, total = model.partial.as_value(), model.total.as_value()
            yield f"{kind} partial {register}", ~model.open | last.holds_partial(index, partial)
            has_total = (levels[register] == 2) & model.later
            yield f"{kind} total {register}", ~has_total | contents.holds_total(index, total)
        same = levels[0] == levels[1]
        has_wide = same & ((levels[0] == 0) | (levels[0] == 1) & ghost.registers[0].later)
        yield f"{kind} wide", ~has_wide | contents.holds_wide(ghost.wide.as_value())

    def _reading(self) -> Iterator[tuple[int, str, Value]]:
        """The lane is given what the records say."""
        lane, records, parameters = self._unit.lane, self._ghost.records, self._parameters
        low_bits = parameters.formats.low_fraction_bits
        place = parameters.position("read")
        reader = records[place]
        yield place, "number read", ~reader.fields.writes | meets(reader, lane.stored.as_value(), low_bits)
        place = parameters.position("align")
        reader = records[place]
        wanted = reader.fields.before
        stored = Cat(lane.stored_class)
        yield place, "class read", ~reader.fields.writes | (stored == Cat(wanted.its_class, wanted.flags))
