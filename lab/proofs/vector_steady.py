"""Proofs about the vector unit's control for any number of beats: no beat is lost, and no two sums mix.

The lanes are left out: they may give anything. By induction over cycles, as in `lab.proofs.along_model`, with a reset
in any cycle and a port ``chunk`` that changes at will:

- every beat is issued once, as it was taken, and no beat is lost;
- a product starts and ends chunks as a count of the products of its row says, for any row;
- products of a row, and promotions to a row, keep their distance; at level 0 no chunk and no promotion is on its way;
- the queue of promotions never overflows, and announces its rows correctly ahead of time; the second promotion of a
  chunk, to the odd row, directly follows the first one;
- the queue of results never overflows, and offers a result whenever it has one.

Other proofs keep these conditions among their own and add the rest: `lab.proofs.along_vector.values` proves values and
the order of results, `lab.proofs.along_vector.waiting` how long a beat waits.

The premise is the unit's rule for its user: a beat continues only values of its level, in its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import C, Cat, Const, Module, Mux, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.mac.decode import decoded_control
from hdl.mac.inner import OPERAND
from hdl.vector.ports import vector_beat_layout, vector_result_layout
from lab.proofs.along_model.chunk_states import ChunkStates
from lab.proofs.along_model.induction import MOST, induction
from lab.proofs.along_model.record import Condition
from lab.proofs.left_out import OpenVectorMac, pass_on
from lab.proofs.opened_vector import OpenedVector
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.vector_beats import BeatsAndChunks
from lab.proofs.vector_places import Places

__all__ = [
    "SIZES",
    "More",
    "SteadyVector",
    "size_parameters",
    "size_slug",
    "size_title",
    "steady_component",
    "steady_proofs",
]


class SteadyVector(wiring.Component):
    """A vector unit without its lanes, and the conditions on it.

    Ports
    -----
    i, o, chunk
        As of `VectorMac`.
    pair : in
        The pair of rows whose chunks the model counts; it must keep its value.
    legal, conditions, claims : out
        As of `lab.proofs.along_model.induction.ControlWithModel`.
    """

    def __init__(
        self, ports: Mapping[str, Any] | None = None, unit_type: type[OpenVectorMac] = OpenVectorMac, **given: Any
    ) -> None:
        self.unit = unit = unit_type(**given)
        parameters = unit.parameters
        self.names: dict[str, list[str]] = {}
        super().__init__(
            {
                **(ports or {}),
                "pair": In(parameters.register_width - 1),
                "i": In(stream.Signature(vector_beat_layout(parameters))),
                "o": Out(stream.Signature(vector_result_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
                "legal": Out(1),
                "conditions": Out(MOST),
                "claims": Out(MOST),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        opened = OpenedVector(self.unit)
        m.submodules.unit = self.unit
        m.d.comb += pass_on(self, self.unit)
        model = BeatsAndChunks(m, self, opened)
        m.d.comb += [row.addr.eq(place) for place, row in enumerate(opened.states.rows)]
        chunks = ChunkStates(opened, model)
        conditions = [
            *_copies(opened, self.unit.parameters),
            *_held(self, opened, model),
            *(chunks.on_their_way() if self.unit.parameters.chunk_delay else ()),
            *chunks.in_memory(),
            *_products(opened, self.unit.parameters),
            *_promotions(m, opened, self.unit.parameters),
            *_settled(m, opened, self.unit.parameters),
        ]
        places = Places(m, opened, self.unit.parameters, self.o.valid)
        conditions += places.conditions
        claims = [*_issue(self, opened, model), *places.claims]
        more = self.more(m, opened, model)
        conditions += more.conditions
        claims += more.claims
        for name, found in (("conditions", conditions), ("claims", claims)):
            self.names[name] = [each for each, _ in found]
            values = Cat(value for _, value in found)
            if len(values) != len(found):
                raise ValueError(f"{name}: got {len(values)} bits for {len(found)}, must be one for each")
            m.d.comb += getattr(self, name).eq(Cat(values, Const(-1, MOST - len(values))))
        m.d.comb += self.legal.eq(model.is_legal & more.is_legal)
        return m

    def more(self, m: Module, opened: OpenedVector, model: BeatsAndChunks) -> More:
        """Return further conditions: none here; proofs that look more closely add some."""
        return More()


@dataclass(frozen=True)
class More:
    """The other conditions that must hold.

    Parameters
    ----------
    conditions, claims : list of (str, Value)
    is_legal : Value
        A further premise.
    """

    conditions: list[Condition] = field(default_factory=list)
    claims: list[Condition] = field(default_factory=list)
    is_legal: Value = field(default_factory=lambda: C(1, 1))


def _copies(opened: OpenedVector, parameters: Any) -> Iterator[Condition]:
    """Yield that every group knows the operations of the control."""
    for number, group in enumerate(opened.groups):
        for rank, copy in group.copies.items():
            wanted = Cat(Cat(opened.operations[rank][name]) for name, _ in copy.shape())
            yield f"copy {number} {rank}", copy.as_value() == wanted
        if parameters.reads_early and parameters.operand_delay:
            reader, writer = opened.operations[parameters.reading_position], opened.operations[-2]
            same = (reader.register == writer.register) & (reader.partial == writer.partial) & writer.writes
            yield f"passes {number}", group.passes == same & ~reader.fresh


def _held(top: SteadyVector, opened: OpenedVector, model: BeatsAndChunks) -> Iterator[Condition]:
    """The beat that waits, and how long it must wait for others of its row."""
    parameters = top.unit.parameters
    recent = range(1, parameters.accumulate_latency)
    beat, held = model.beat, opened.issue.held
    if parameters.has_input_rank:
        yield "held valid", opened.beat_valid == model.beat_valid
        sound = model.is_sound
        wanted = {
            "is_chain": beat.level == 0,
            "wide_total": beat.level != 2,
            "gives_result": beat.last | ~sound,
            "is_sound": sound,
            "error": model.error,
        }
        for name in decoded_control(vector_beat_layout(parameters)):
            its = wanted.get(name, beat[name] if name in ("format", "register", "first", "last") else None)
            yield f"held {name}", ~model.beat_valid | (Cat(held[name]) == its)
        hazards = [_is_product(opened.operations[place]) & _same(opened, place, beat.register) for place in recent]
        for cycle in range(len(hazards)):
            waits = Cat([C(0, 1), *(row[cycle : cycle + 1] for row in opened.rows_of_beats)]).any()
            wanted_now = Cat(hazards[: len(hazards) - cycle]).any()
            yield f"beat waits {cycle}", ~model.beat_valid | (waits == wanted_now)
    delay = parameters.chunk_delay
    if not delay:
        return
    operation, record = opened.operations[delay], model.records[delay]
    fields = record.fields
    counted = (operation.fresh == fields.starts) & (operation.promote == fields.ends)
    counted &= operation.fresh_total == fields.is_first
    yield "chunk told", ~record.counts | counted
    for place in range(1, delay + 1):
        operation, fields = opened.operations[place], model.records[place].fields
        same = (operation.register == fields.register) & (operation.last == fields.last)
        yield f"chunk counts {place}", (_is_chunk(operation) == fields.counts) & (~fields.counts | same)


def _is_product(operation: Any) -> Value:
    return operation.writes & operation.is_product


def _is_chunk(operation: Any) -> Value:
    return operation.writes & operation.is_product & operation.partial


def _is_promotion(operation: Any) -> Value:
    return operation.writes & ~operation.is_product


def _meet(one: Any, other: Any) -> Value:
    """Tell whether two promotions write to the same row; one to fp32 writes to both of its pair, one by one."""
    same_pair = one.register[1:] == other.register[1:]
    return Mux(one.wide | other.wide, same_pair, one.register == other.register)


def _is_first_part(operation: Any) -> Value:
    return _is_promotion(operation) & operation.wide & ~operation.is_second


def _same(opened: OpenedVector, place: int, row: Value) -> Value:
    return opened.operations[place].register == row


def _products(opened: OpenedVector, parameters: Any) -> Iterator[Condition]:
    """Products of a row are far enough apart; only a product of a chunk causes a promotion."""
    operations, latency = opened.operations, parameters.accumulate_latency
    for one in range(1, len(operations)):
        operation = operations[one]
        yield (
            f"promotion {one}",
            ~(operation.promote & ~_is_chunk(operation))
            & ~(operation.partial & ~operation.is_product)
            & ~(operation.is_product & ~operation.writes),
        )
        for other in range(one + 1, min(one + latency, len(operations))):
            both = _is_product(operations[one]) & _is_product(operations[other])
            yield f"distance {one} {other}", ~(both & _same(opened, one, operations[other].register))


def _promotions(m: Module, opened: OpenedVector, parameters: Any) -> Iterator[Condition]:
    """The queue of promotions, its rows announced ahead of time, and the promotions that leave it."""
    p, operations, latency = opened.promotions, opened.operations, parameters.accumulate_latency
    queue, rows, places = opened.queue, opened.row_queue, parameters.promotions
    width = len(queue.writing.addr)
    head = queue.reading.addr
    yield "level", (opened.level <= places) & (queue.writing.addr == (head + opened.level)[:width])
    yield "levels", opened.row_level + opened.row_valid == opened.level
    yield "row head", rows.reading.addr == (head + opened.row_valid)[:width]
    yield "row tail", rows.writing.addr == queue.writing.addr
    for place, (entry, row) in enumerate(zip(queue.rows, rows.rows, strict=True)):
        m.d.comb += [entry.addr.eq(place), row.addr.eq(place)]
        is_used = (C(place, width) - head)[:width] < opened.level
        whole, told = data.View(p.entry, entry.data), data.View(opened.row.shape(), row.data)
        yield f"row {place}", ~is_used | ((whole.register == told.register) & (whole.wide == told.wide))
        is_head = opened.row_valid & (head == place)
        yield f"row out {place}", ~is_head | ((whole.register == opened.row.register) & (whole.wide == opened.row.wide))
    held = opened.held
    newest = operations[1]
    behind = _is_first_part(newest) & (newest.register[1:] == held.register[1:]) & (newest.last == held.last)
    for place, before in enumerate(p.issued_before, 1):
        operation = operations[place]
        same = (before.register == operation.register) & (before.wide == operation.wide)
        wanted = before.is_there == _is_promotion(operation)
        yield f"issued {place} before", wanted & (~before.is_there | same)
    yield "ends", ~opened.held_valid | (p.ends == (~held.wide | opened.is_second))
    yield "second", ~opened.is_second | (opened.held_valid & held.wide & behind)
    for place in range(1, len(operations) - 1):
        part, ahead = operations[place], operations[place + 1]
        behind = (
            _is_first_part(ahead)
            & (ahead.register[1:] == part.register[1:])
            & (ahead.last == part.last)
            & part.wide
            & part.register[0]
        )
        yield f"part {place}", ~(_is_promotion(part) & part.is_second) | behind
    in_flight = Cat(_is_chunk(operation) for operation in operations[1:])
    count = sum(in_flight, C(0, 1))
    yield "pending", opened.pending == count + opened.level + opened.held_valid
    yield "places", opened.pending <= places
    if parameters.has_input_rank:
        is_free = opened.beat_valid & ~opened.issue.is_blocked
        yield "place left", ~is_free | (opened.pending_before <= places - 2)
    yield "places before", (opened.pending_before >= 0) & (opened.pending_before <= places)
    hazards = [
        _is_promotion(operations[place]) & _meet(held, operations[place])
        & (C(1, 1) if place > 1 else ~opened.is_second)
        for place in range(1, latency)
    ]  # fmt: skip
    for cycle in range(len(hazards)):
        waits = Cat([C(0, 1), *(row[cycle : cycle + 1] for row in opened.rows_of_promotions)]).any()
        wanted = Cat(hazards[: len(hazards) - cycle]).any()
        yield f"promotion waits {cycle}", ~opened.held_valid | (waits == wanted)
    for number, group in enumerate(p.waiting_operands):
        yield f"promotion arrives {number}", group.writes_there == queue.writing.en
        yield f"tail {number}", group.produce_there == queue.writing.addr
    yield "promotion told", p.issues == opened.issuing
    yield "promotion issues", opened.issuing == opened.held_valid & ~Cat([C(0, 1), *hazards]).any()
    for one in range(1, len(operations)):
        for other in range(one + 1, min(one + latency, len(operations))):
            a, b = operations[one], operations[other]
            is_one = a.is_second & ~b.is_second & a.wide if other == one + 1 else C(0, 1)
            both = _is_promotion(a) & _is_promotion(b) & _meet(a, b)
            yield f"promotions {one} {other}", ~both | is_one


def _settled(m: Module, opened: OpenedVector, parameters: Any) -> Iterator[Condition]:
    """A product of level 0 finds no chunk and no promotion on its way."""
    operations, latency = opened.operations, parameters.accumulate_latency
    idle = (opened.level == 0) & ~opened.held_valid
    yield "settled", opened.unsettled | (opened.pending == 0)
    yield "left", opened.left < latency
    for place in range(1, min(latency, len(operations))):
        is_told = opened.unsettled & (opened.left >= latency - place)
        yield f"left {place}", ~_is_promotion(operations[place]) | is_told
    for place in range(1, len(operations)):
        chain = _is_product(operations[place]) & ~operations[place].partial
        older = operations[place + 1 :]
        near = operations[place + 1 : place + latency]
        ahead = Cat([C(0, 1), *map(_is_chunk, older), *map(_is_promotion, near)]).any()
        yield f"chain {place}", ~chain | (idle & ~ahead)
    if parameters.has_input_rank:
        near = Cat([C(0, 1), *map(_is_promotion, operations[1:latency])]).any()
        is_free = opened.beat_valid & opened.issue.held.is_chain & ~opened.issue.is_blocked
        yield "others gone", ~is_free | ((opened.pending == 0) & ~near)


def _issue(top: SteadyVector, opened: OpenedVector, model: BeatsAndChunks) -> Iterator[Condition]:
    """A beat is neither lost nor made, and an operation starts as its beat says."""
    operation, beat = opened.operations[0], model.beat
    ready = top.i.ready
    yield "issue", ~model.is_issued | model.beat_valid
    yield "no beat lost", ~(ready & model.beat_valid) | model.is_issued
    yield "no beat twice", ~model.is_issued | ready
    level_0 = beat.level == 0
    its = (
        (operation.register == beat.register)
        & (operation.format == beat.format)
        & (operation.last == beat.last)
        & (operation.wide == level_0)
        & (operation.partial == ~level_0)
        & (operation.wide_total == (beat.level != 2))
    )
    yield "operation", ~(operation.writes & operation.is_product) | (its & model.is_sound)
    yield "refusal", ~model.is_issued | (Cat(operation.error) == Mux(model.is_sound, 0, model.error))
    promotes = opened.promotions.finished.promote
    yield "place for a promotion", ~promotes | (opened.level < top.unit.parameters.promotions)


_TINY = (FloatFormat("1-2-1", 2, 1),)
_SEVERAL = (*_TINY, FloatFormat("1-3-1", 3, 1), FloatFormat("1-2-2", 2, 2))
#: Lanes, ranks, formats; the others are as of released units.
SIZES = ((2, 3, _TINY), (4, 11, _TINY), (4, 13, _SEVERAL))


def steady_component(
    lanes: int, stages: int, operands: tuple[FloatFormat, ...], unit_type: type[OpenVectorMac] = OpenVectorMac
) -> SteadyVector:
    """Return a unit of some size."""
    return SteadyVector(unit_type=unit_type, **size_parameters(lanes, stages, operands))


def size_parameters(lanes: int, stages: int, operands: tuple[FloatFormat, ...]) -> dict[str, Any]:
    """Return the parameters of a size."""
    given = {"lanes": lanes, "stages": stages, "operands": operands, "inner": OPERAND}
    return given | {"registers": 16, "chunk_bits": 16}


def steady_proofs() -> Iterator[Proof]:
    """Yield the proofs of units of three depths, two of them released."""
    for size in SIZES:
        for engine in (BITWUZLA, Z3_CADICAL):
            build, fast = partial(_build, *size), engine == BITWUZLA and size == SIZES[0]
            yield Proof(
                f"vector/order/{size_slug(*size)}",
                "vector: order and places",
                size_title(*size),
                "induction",
                engine,
                build,
                timeout=900,
                fast=fast,
            )


def size_slug(lanes: int, stages: int, operands: tuple[FloatFormat, ...]) -> str:
    """Return the part of an id that distinguishes this size from the others."""
    return f"lanes_{lanes}/stages_{stages}"


def size_title(lanes: int, stages: int, operands: tuple[FloatFormat, ...]) -> str:
    """Return a size in words."""
    return f"{lanes} lanes, {stages} stages, 16 rows{', several formats' if len(operands) > 1 else ''}, any beats"


def _build(lanes: int, stages: int, operands: tuple[FloatFormat, ...], folder: Path) -> str:
    return induction(steady_component(lanes, stages, operands), folder)
