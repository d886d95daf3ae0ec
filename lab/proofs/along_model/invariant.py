"""The invariant: conditions that hold in every cycle between the unit and the records of its model.

Each condition is one output bit, so that a report can name the ones that fail. None of them depends on the inputs of
the current cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Module, Mux, Value

from hdl.cores.words import named
from hdl.mac.decode import decoded_control
from hdl.mac.ports import product_beat_layout, rounding_fields
from lab.proofs.along_model.agreement import agrees, plain
from lab.proofs.along_model.chunk_states import ChunkStates
from lab.proofs.along_model.contents import Contents, meets
from lab.proofs.along_model.distances import distances, levels, others
from lab.proofs.along_model.ghost import Ghost
from lab.proofs.along_model.opened import OpenedUnit
from lab.proofs.along_model.record import Condition, chosen

__all__ = ["Invariant"]


class Invariant:
    """The conditions.

    Parameters
    ----------
    m : Module
    unit : OpenedUnit
    operations : list of View
        As issued and behind each rank.
    ghost : Ghost
    """

    def __init__(self, m: Module, unit: OpenedUnit, operations: list[Any], ghost: Ghost) -> None:
        self._m, self._unit, self._operations, self._ghost = m, unit, operations, ghost
        self._parameters = parameters = ghost.parameters
        self._behind = list(enumerate(ghost.records))[1:]
        self._latency = parameters.accumulate_latency
        for memory in (*unit.banks.values(), unit.states):
            m.d.comb += [row.addr.eq(place) for place, row in enumerate(memory.rows)]
        chunks = ChunkStates(unit, ghost)
        self.conditions: list[Condition] = [
            *self._records(),
            *(self._held() if parameters.has_input_rank else ()),
            *others(unit, ghost),
            *distances(ghost),
            *levels(ghost),
            *(chunks.on_their_way() if parameters.chunk_delay else ()),
            *chunks.in_memory(),
            *self._contents(is_class=False),
            *self._contents(is_class=True),
        ]
        #: The conditions on the offered beat, where an accumulator is read in the cycle of its issue.
        self.claims: list[Condition] = []
        for at, name, condition in (*self._steps(), *self._reading()):
            (self.conditions if at else self.claims).append((name, condition))

    # -- operations in flight

    def _records(self) -> Iterator[Condition]:
        parameters = self._parameters
        for place, record in self._behind:
            yield (
                f"operation {place}",
                agrees(
                    self._operations[place],
                    self._unit.flags[place],
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
        """The beat that waits behind its rank, and how long it waits."""
        unit, ghost, parameters = self._unit, self._ghost, self._parameters
        beat, held = ghost.beat, unit.issue.held
        yield "held valid", unit.issue.held_valid == ghost.beat_valid
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
            **{name: beat[name] for name in rounding_fields(parameters)},
        }
        control = decoded_control(product_beat_layout(parameters))
        for name in dict.fromkeys(("a", "b", *control, *rounding_fields(parameters))):
            there = unit.operands.held[name][0] if name in ("a", "b") else held[name]
            yield f"held {name}", ~ghost.beat_valid | (Cat(there) == wanted[name])
        hazards = [
            record.is_sound_product & (record.fields.register == beat.register)
            for record in ghost.records[1 : self._latency]
        ]
        for cycle in range(len(hazards)):
            waits = Cat(row[cycle : cycle + 1] for row in unit.rows).any()
            wanted_bit = ghost.beat_valid & Cat(hazards[: len(hazards) - cycle]).any()
            yield f"waits {cycle}", waits == wanted_bit

    # -- values

    def _contents(self, *, is_class: bool) -> Iterator[Condition]:
        """Each operation will read what those ahead of it will have written, and so does the model."""
        ghost, parameters = self._ghost, self._parameters
        contents = self._now(is_class=is_class)
        reads = parameters.position("align") if is_class else parameters.reading_position
        kind = "class" if is_class else "number"
        for place in range(ghost.depth, 0, -1):
            record = ghost.records[place]
            if place <= reads:
                yield f"{kind} for {place}", contents.holds_accumulator(record)
            contents = contents.with_operation(record)
        for place in range(ghost.depth, 0, -1):
            record = ghost.records[place]
            fields = record.fields
            total, its = fields.total_before.as_value(), fields.register
            is_there = Mux(fields.wide_total, contents.holds_pair(total), contents.holds_total(its, total))
            is_asked = record.is_pending & record.is_followed & ~fields.is_first
            yield f"{kind} for promotion {place}", ~is_asked | is_there
            contents = contents.with_promotion_of(record)
        levels = [model.level for model in ghost.registers]
        for register, model in enumerate(ghost.registers):
            index = C(register, 1)
            partial, total = model.partial.as_value(), model.total.as_value()
            yield f"{kind} partial {register}", ~model.open | contents.holds_partial(index, partial)
            has_total = (levels[register] == 2) & model.later
            yield f"{kind} total {register}", ~has_total | contents.holds_total(index, total)
        even, odd = levels
        has_total = (even == 0) | (even == 1) & ghost.registers[0].later
        yield f"{kind} pair", ~((even == odd) & has_total) | contents.holds_pair(ghost.total.as_value())

    def _now(self, *, is_class: bool) -> Contents:
        """Return the content of the register file."""
        m, parameters, banks = self._m, self._parameters, self._unit.banks
        suffix = "_class" if is_class else ""
        pair, pairs = self._ghost.pair, parameters.registers // 2

        def rows(start: int) -> list[Value]:
            return [
                named(m, "row", chosen([Cat(row.data) for row in banks[name + suffix].rows[start:][:pairs]], pair))
                for name in ("even", "odd")
            ]

        low_bits = 0 if is_class else parameters.formats.low_fraction_bits
        return Contents(m, rows(0), rows(pairs), low_bits, is_class=is_class)

    def _steps(self) -> Iterator[tuple[int, str, Value]]:
        """The lane is told formats, modes and random numbers of each operation."""
        parameters = self._parameters
        for place, step in enumerate(self._unit.lane.steps):
            record = self._ghost.records[place]
            fields = record.fields
            wide_format = len(parameters.operands)
            wanted = {"format": fields.format, "accumulator_format": Mux(record.wide, wide_format, fields.format)}
            wanted |= {name: fields[name] for name, _ in parameters.formats.controls}
            same = Cat(step[name] == value for name, value in wanted.items()).all()
            yield place, f"step {place}", ~fields.writes | same

    def _reading(self) -> Iterator[tuple[int, str, Value]]:
        """The lane gets the operands of the records."""
        lane, records, parameters = self._unit.lane, self._ghost.records, self._parameters
        low_bits = parameters.formats.low_fraction_bits
        place = parameters.position("read")
        if parameters.reads_early:
            reader, writer = self._operations[place - 1], self._operations[-1]
            same = (reader.register == writer.register) & (reader.partial == writer.partial) & writer.writes
            yield place, "passed by", ~reader.writes | (self._unit.passed_by == same)
            reader = self._operations[parameters.reading_position]
            for name, own in self._unit.reading.items():
                yield parameters.reading_position, f"reading {name}", ~reader.writes | (own == reader[name])
        reader = records[place]
        is_asked = reader.fields.writes & reader.is_followed
        yield place, "number read", ~is_asked | meets(reader, lane.stored.as_value(), low_bits)
        place = parameters.position("align")
        reader = records[place]
        wanted = reader.fields.before
        stored = Cat(lane.stored_class)
        is_asked = reader.fields.writes & reader.is_followed
        yield place, "class read", ~is_asked | (stored == Cat(wanted.its_class, wanted.flags))
