"""The wait of a beat in the vector unit: never longer than the number of cycles below.

A *measure* counts the work left before a waiting beat can be issued. Each cycle in which the beat waits brings the
measure down, unless a result is offered then and not taken, and nothing raises it. So the cycles of waiting and the
measure together never exceed the largest initial measure.

The measure has three parts, each larger than all later parts together:

1. while there are chunks in flight or promotions that wait: their cycles, one promotion after the other,
2. while there is anything in flight: how long it takes to leave,
3. the results that wait to be taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

from golden.formats import FloatFormat
from hdl.cores.words import named
from hdl.vector.parameters import VectorParameters
from lab.proofs.along_model.induction import induction
from lab.proofs.along_model.record import Condition
from lab.proofs.opened_vector import OpenedVector
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.vector_beats import BeatsAndChunks
from lab.proofs.vector_steady import SIZES, More, SteadyVector, size_parameters, size_slug, size_title

__all__ = ["WaitingVector", "longest_wait", "waiting_component", "waiting_proofs"]


def longest_wait(parameters: VectorParameters) -> int:
    """Return the longest wait of a beat in cycles, without those in which a result is offered and not taken."""
    return (parameters.accumulate_latency + 3) * parameters.promotions + _depth(parameters) + _flushing(parameters)


def _depth(parameters: VectorParameters) -> int:
    return len(parameters.operation_ranks)


def _delivering(parameters: VectorParameters) -> int:
    """Return the largest value of the third part of the measure."""
    return 2 * parameters.results + parameters.accumulate_latency + 4 + parameters.has_input_rank


def _flushing(parameters: VectorParameters) -> int:
    """Return the largest value of the second part, the third one included."""
    return _depth(parameters) + 2 + _delivering(parameters)


class WaitingVector(SteadyVector):
    """A vector unit without its lanes, and for how long a beat has waited in it."""

    def more(self, m: Module, opened: OpenedVector, model: BeatsAndChunks) -> More:
        """Return the claim that a beat does not wait too long."""
        parameters = self.unit.parameters
        most = longest_wait(parameters)
        waited = Signal(range(most + 2), name="cycles_waited")
        is_stalled = self.o.valid & ~self.o.ready
        waits = model.beat_valid & ~model.is_issued
        m.d.sync += waited.eq(Mux(waits, waited + (~is_stalled & (waited <= most)), 0))
        measure = _measure(m, opened, parameters)
        conditions = [
            *_parts(opened, parameters),
            ("measure", (measure <= most) & (waited + measure <= most)),
        ]
        return More(conditions, [("waits no longer", waited <= most), ("waits for something", ~waits | (measure != 0))])


def _total(m: Module, name: str, terms: list[Value]) -> Value:
    """Return a sum, of as many bits as it can need."""
    while len(terms) > 1:
        terms = [
            named(m, name, terms[at] + terms[at + 1]) if at + 1 < len(terms) else terms[at]
            for at in range(0, len(terms), 2)
        ]
    return terms[0]


def _is_chunk(operation: Any) -> Value:
    return operation.writes & operation.is_product & operation.partial


def _is_there(operation: Any) -> Value:
    return operation.writes | Cat(operation.error).any()


def _measure(m: Module, opened: OpenedVector, parameters: VectorParameters) -> Value:
    """Return the measure of the work left."""
    latency, behind = parameters.accumulate_latency, opened.operations[1:]
    held = opened.held
    chunks = [_is_chunk(operation) for operation in behind]
    waits = [
        Cat(row[cycle : cycle + 1] for row in opened.rows_of_promotions).any()
        for cycle in range(latency - 1)
    ]  # fmt: skip
    in_queue = named(m, "in_queue", _total(m, "chunks_in_flight", chunks) + opened.level)
    # The promotion of a chunk waits at most `latency` - 1 cycles, takes up to two issues, and two steps before that.
    of_held = Mux(opened.held_valid, _total(m, "to_wait", waits) + 1 + (held.wide & ~opened.is_second), 0)
    until_last = _total(m, "until_last_chunk", [Cat(chunks[: place + 1]).any() for place in range(len(chunks))])
    first = (latency + 3) * in_queue - opened.row_valid + of_held + until_last
    is_first = (in_queue != 0) | opened.held_valid

    packed = _is_there(opened.packed) if opened.packed is not None else C(0, 1)
    there = [*map(_is_there, behind), packed]
    flushed = _total(m, "until_flushed", [Cat(there[: place + 1]).any() for place in range(len(there))])
    third = 2 * opened.results.level + opened.taken + opened.left + opened.unsettled + opened.change.any()
    if parameters.has_input_rank:
        third = third + opened.issue.is_blocked
    second = Mux(Cat(there).any(), flushed + _delivering(parameters), third)
    return named(m, "measure", Mux(is_first, first + _flushing(parameters), second)[:12])


def _parts(opened: OpenedVector, parameters: VectorParameters) -> Iterator[Condition]:
    """Bounds of the parts of the measure."""
    latency = parameters.accumulate_latency
    yield (
        "waits of promotions",
        Cat(
            ~row[cycle + 1] | Cat(other[cycle : cycle + 1] for other in opened.rows_of_promotions).any()
            for row in opened.rows_of_promotions
            for cycle in range(len(row) - 1)
        ).all(),
    )
    # The first promotion to be issued again is as far away as the last one is old.
    for place in range(1, min(latency, len(opened.operations))):
        yield (
            f"settled by {place}",
            (opened.left < latency - place) | Cat(map(_is_there, opened.operations[1 : place + 1])).any(),
        )


def waiting_component(lanes: int, stages: int, operands: tuple[FloatFormat, ...], **changes: Any) -> WaitingVector:
    """Return a unit of some size."""
    return WaitingVector(**size_parameters(lanes, stages, operands) | changes)


def waiting_proofs() -> Iterator[Proof]:
    """Yield the proofs of units of three depths, two of them released."""
    for size in SIZES:
        for engine in (BITWUZLA, Z3_CADICAL):
            build = partial(_build, *size)
            fast = engine == BITWUZLA and size == SIZES[0]
            claim, title = f"vector/waiting/{size_slug(*size)}", _title(*size)
            yield Proof(claim, "vector: waiting", title, "induction", engine, build, 900, fast)


def _title(lanes: int, stages: int, operands: tuple[FloatFormat, ...]) -> str:
    most = longest_wait(VectorParameters(**size_parameters(lanes, stages, operands)))
    return f"{size_title(lanes, stages, operands)}, {most} cycles at most"


def _build(lanes: int, stages: int, operands: tuple[FloatFormat, ...], folder: Path) -> str:
    return induction(waiting_component(lanes, stages, operands), folder)
