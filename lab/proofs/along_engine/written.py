# amaranth: UnusedElaboratable=no
# A part is elaborated by hand, so that its state is at hand.
"""The writer beside the bytes of its rows: it writes these bytes, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_
from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.matrix.parameters import MatrixParameters
from hdl.matrix.ports import matrix_result_layout
from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import block_layout
from hdl.matrix_engine.reader import PAGE_BITS
from hdl.matrix_engine.writer import Writer
from lab.proofs.along_engine.matrices import Bounds
from lab.proofs.along_model.record import Condition

__all__ = ["Written"]


class Written(Bounds):
    """A writer, and the bytes of the row that it holds.

    `lab.proofs.along_engine.placed` proves that the placement inside puts each row where it belongs.

    Ports
    -----
    row_stride, is_wide : in
        The width keeps its value while there is work.
    block, offers_block, offers_row, address_ready, data_ready, answered, stop : in
        As of `hdl.matrix_engine.writer.Writer`.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        self.writer = Writer(parameters, matrix_result_layout(MatrixParameters(**parameters.array)))
        inputs = ("is_wide", "offers_block", "offers_row", "address_ready", "data_ready", "answered", "stop")
        super().__init__(
            {
                "row_stride": In(32),
                "block": In(block_layout(parameters)),
                **{name: In(1) for name in inputs},
            }
        )

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        writer, placement, width = self.writer, self.writer.placement, self.parameters.address_bits
        m.submodules.writer = writer.elaborate(platform)
        wide = Signal()
        with m.If(writer.is_idle & ~self.offers_block):
            m.d.sync += wide.eq(self.is_wide)
        m.d.comb += [
            writer.row_stride.eq(self.row_stride),
            writer.is_wide.eq(wide),
            writer.blocks.payload.eq(self.block),
            writer.blocks.valid.eq(self.offers_block),
            writer.rows.valid.eq(self.offers_row),
            writer.address_ready.eq(self.address_ready),
            writer.data_ready.eq(self.data_ready),
            writer.answered.eq(self.answered),
            writer.stop.eq(self.stop),
        ]
        # The row that is sent: its address and its number of bytes.
        self.begin, self.bytes = Signal(width), Signal(range(4 * self.parameters.columns + 1))
        size, keeps = Mux(wide, placement.count << 2, placement.count << 1), placement.takes & placement.is_inside
        with m.If(keeps):
            m.d.sync += [self.begin.eq(placement.address), self.bytes.eq(size)]
        self.end = self.begin + self.bytes
        is_within = (placement.address + size <= 1 << width) & (placement.count != 0)
        claims = [*self._claims(), ("one row at a time", ~keeps | writer.fsm.ongoing("WAIT"))]
        return [~keeps | is_within], list(self._conditions(wide)), claims

    def _conditions(self, wide: Value) -> Iterator[Condition]:
        """Yield the conditions on the writer's state while it sends a row."""
        p, writer = self.parameters, self.writer
        waits, shifts, begins, sends = (writer.fsm.ongoing(name) for name in ("WAIT", "SHIFT", "BURST", "SEND"))
        holds, queue = begins | sends, writer.placement.queue
        yield "blocks", (queue.has_word == (queue.level != 0)) & (queue.level <= queue.depth)
        yield "a row", waits | ((self.end <= 1 << p.address_bits) & (self.bytes != 0))
        yield "at most a tile's row", waits | (self.bytes <= Mux(wide, 4, 2) * p.columns)
        yield "its address", ~shifts | (writer.place == self.begin)
        elements = writer.widths.o.payload.count
        yield "its elements", ~shifts | (Mux(wide, elements << 2, elements << 1) == self.bytes)
        first, last = self._words()
        yield "its words", ~holds | ((writer.word >= first) & (writer.word + writer.words == last + 1))
        yield "words to come", ~holds | (writer.words != 0)
        yield "data to come", ~sends | (writer.data_valid == (writer.to_go != 0))
        yield "data of a burst", sends | ~writer.data_valid
        yield "address of a burst", sends | ~writer.address_valid
        yield "words of the burst", ~sends | (writer.to_go <= writer.length + 1)
        yield "strobes", ~holds | reduce(and_, self._strobes(len(writer.mask)))
        yield "has begun", ~sends | writer.begun

    def _words(self) -> tuple[Value, Value]:
        """Return the first and the last word of the row."""
        shift = self.parameters.bus_bytes.bit_length() - 1
        return self.begin >> shift, (self.end - 1)[: len(self.end)] >> shift

    def _sent(self) -> Value:
        """Return how many words of the burst have been sent."""
        writer = self.writer
        return Mux(writer.fsm.ongoing("SEND"), (writer.length + 1 - writer.to_go)[: len(writer.words)], 0)

    def _strobes(self, count: int) -> Iterator[Value]:
        """Yield, for each byte from the next word on, whether its strobe tells correctly if it belongs to the row."""
        p, writer = self.parameters, self.writer
        begin = (writer.word + self._sent()) << (p.bus_bytes.bit_length() - 1)
        for byte in range(count):
            at = begin + byte
            yield writer.mask[byte] == ((at >= self.begin) & (at < self.end))

    def _claims(self) -> Iterator[Condition]:
        """Yield the claims that a burst has only words of the row, and strobes for exactly the bytes of the row."""
        p, writer = self.parameters, self.writer
        shift = p.bus_bytes.bit_length() - 1
        begins, ends = writer.address >> shift, (writer.address >> shift) + writer.length
        first, last = self._words()
        offered, gives = writer.address_valid, writer.data_valid
        yield "burst within the row", ~offered | ((begins >= first) & (ends <= last))
        yield "burst in one page", ~offered | (begins >> PAGE_BITS - shift == ends >> PAGE_BITS - shift)
        yield "whole words", writer.address[:shift] == 0
        strobes = Value.cast(writer.strobes) == writer.mask[: p.bus_bytes]
        yield "strobes of the row", ~gives | reduce(and_, self._strobes(p.bus_bytes), strobes)
        yield "last word", ~gives | (writer.last == (self._sent() == writer.length))
        yield "data of the row", ~gives | (writer.word + self._sent() <= last)
