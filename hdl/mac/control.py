# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The control of a multiply-accumulate unit: everything except its lanes and their registers."""

from __future__ import annotations

from typing import Any

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.result import flags_layout
from hdl.mac.arrangement import Arrangement
from hdl.mac.chunks import Chunks
from hdl.mac.issue import Issue
from hdl.mac.lane import operand_layout
from hdl.mac.operands import GROUP, Operands, groups_of
from hdl.mac.operation import Flight
from hdl.mac.parameters import MacParameters
from hdl.mac.results import ResultQueue

__all__ = ["Control"]


class Control(wiring.Component):
    """Issue the same operations to all lanes, return promotions, and queue results.

    ::

        beats -+-> Issue -> Flight: the operation behind each rank, for the lanes -> ResultQueue -> results
               |     ^        ^ Chunks                         |
               |     '--------'------- promotions <------------'
               |                           v
               '-> Operands of groups of lanes ------------> lanes

    Parameters
    ----------
    parameters : MacParameters
    arrangement : Arrangement
    answer : data.StructLayout
        The layout of a result.
    issue : Issue
    promotions : Component
        With the ports of `hdl.mac.promotions.promotions_signature`.
    places : Component
        With ``reserves``, ``leaves`` and ``has_room``, like `hdl.mac.results.SinglePlaces`.

    Ports
    -----
    i, o : streams of the arrangement's beat, in, and of `answer`, out
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length.
    at : array of the arrangement's operation, out
        The operation as issued and behind each rank.
    a, b, issued_flags : arrays of operand_layout, flags_layout, out
        For each lane, the operands of the operation that was issued `operand_delay` cycles ago, and the flags already
        raised on them.
    promoted, flags : arrays of operand_layout, flags_layout, in
        For each lane, the result behind the last rank as an operand, and its flags.
    packed, entry : operation, out; answer, in
        The operation whose result codes the lanes output, and the answer built from them; behind the rank ``pack`` if
        there is one.

    Attributes
    ----------
    issue, flight, chunks, promotions, places, results : Component
        The parts. Their classes document the state that proofs refer to.
    operands : list of Operands
        One for each group of lanes.
    """

    def __init__(
        self,
        parameters: MacParameters,
        arrangement: Arrangement,
        answer: data.StructLayout,
        *,
        issue: Issue,
        promotions: Any,
        places: Any,
    ) -> None:
        self.parameters, self.issue, self.promotions, self.places = parameters, issue, promotions, places
        self._counts_held = arrangement.counts_held
        operand, operation, lanes = operand_layout(parameters.formats), arrangement.operation, arrangement.lanes
        self.flight, self.chunks = Flight(parameters, operation), Chunks(parameters)
        self.results = ResultQueue(parameters, operation, answer)
        self.operands = [Operands(parameters, arrangement, group) for group in groups_of(lanes)]
        super().__init__(
            {
                "i": In(stream.Signature(arrangement.beat)),
                "o": Out(stream.Signature(answer)),
                "chunk": In(parameters.chunk_bits),
                "at": Out(operation).array(len(parameters.operation_ranks) + 1),
                "a": Out(operand).array(lanes),
                "b": Out(operand).array(lanes),
                "issued_flags": Out(flags_layout()).array(lanes),
                "promoted": In(operand).array(lanes),
                "flags": In(flags_layout()).array(lanes),
                "packed": Out(operation),
                "entry": In(answer),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        issue, flight, promotions = self.issue, self.flight, self.promotions
        results, places = self.results, self.places
        m.submodules.issue, m.submodules.flight, m.submodules.promotions = issue, flight, promotions
        m.submodules.results, m.submodules.places = results, places
        if self.parameters.has_chunks:
            self._count(m)
        finished = flight.at[-1]
        m.d.comb += [
            issue.i.payload.eq(self.i.payload),
            issue.i.valid.eq(self.i.valid),
            self.i.ready.eq(issue.i.ready),
            issue.has_room.eq(places.has_room),
            issue.promotes.eq(promotions.issues),
            issue.promotes_next.eq(promotions.issues_next),
            issue.promotion.eq(promotions.operation),
            issue.takes_chunks.eq(promotions.has_room),
            issue.are_settled.eq(promotions.are_settled),
            flight.issued.eq(issue.operation),
            promotions.counts.eq(issue.counts),
            promotions.offers_chunk.eq(issue.offers_chunk),
            promotions.finished.eq(finished),
            places.reserves.eq(issue.reserves),
            places.leaves.eq(self.o.valid & self.o.ready),
            results.finished.eq(finished),
            results.entry.eq(self.entry),
            self.packed.eq(results.packed),
            self.o.payload.eq(results.o.payload),
            self.o.valid.eq(results.o.valid),
            results.o.ready.eq(self.o.ready),
        ]
        for ours, theirs in (
            (self.at, flight.at),
            (issue.in_flight, flight.at[1:]),
            (promotions.in_flight, flight.at[1:]),
            (promotions.promoted, self.promoted),
            (promotions.flags, self.flags),
            (self.issued_flags, promotions.operand_flags),
        ):
            m.d.comb += [there.eq(here) for there, here in zip(ours, theirs, strict=True)]
        for number, group in enumerate(self.operands):
            m.submodules[f"operands_{number}"] = group
            lanes = slice(number * GROUP, (number + 1) * GROUP)
            m.d.comb += [
                group.beat.eq(self.i.payload),
                group.load.eq(issue.i.ready),
                group.promotes.eq(promotions.issues),
                group.format.eq(promotions.operation.format),
            ]
            for ours, theirs in (
                (group.promoted, promotions.operands[lanes]),
                (self.a[lanes], group.a),
                (self.b[lanes], group.b),
            ):
                m.d.comb += [there.eq(here) for there, here in zip(ours, theirs, strict=True)]
        return m

    def _count(self, m: Module) -> None:
        issue, chunks = self.issue, self.chunks
        m.submodules.chunks = chunks
        m.d.comb += [
            chunks.counts.eq(issue.counts),
            chunks.register.eq(issue.held.register if self._counts_held else issue.operation.register),
            chunks.first.eq(issue.held.first),
            chunks.last.eq(issue.held.last),
            chunks.chunk.eq(self.chunk),
            self.flight.facts.eq(chunks.facts),
        ]
