"""Reads of lines from memory: one burst for each, two at a boundary of 4 KiB."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import line_layout, to_read_layout

__all__ = ["PAGE_BITS", "Reader"]

#: No burst may cross a boundary of 4 KiB (AXI4, A3.4.1).
PAGE_BITS = 12


class Reader(wiring.Component):
    """Ask the bus for the words that hold the elements of lines, and no others.

    ::

        lines -> words = first .. last word -> min(words, words left in the page) -> m_axi_ar
                                            -> to_read (once a line) -> loader

    A line waits while `reads` bursts are on their way.

    Ports
    -----
    lines : stream of line_layout, in
    to_read : stream of to_read_layout, out
        In the order of the words.
    address, length, valid, ready
        The read address channel.
    ended : in
        The last word of a burst was accepted.
    stop : in
        Begin no further burst.
    is_idle : out
        No burst is on its way or offered.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "lines": In(stream.Signature(line_layout(parameters))),
                "to_read": Out(stream.Signature(to_read_layout(parameters))),
                "address": Out(parameters.address_bits),
                "length": Out(8),
                "valid": Out(1),
                "ready": In(1),
                "ended": In(1),
                "stop": In(1),
                "is_idle": Out(1),
            }
        )
        #: Bursts on their way.
        self.bursts = Signal(range(parameters.reads + 1))
        #: Words of the line that no burst asks for yet, and the number of the first one.
        self.words = Signal(9)
        self.word = Signal(parameters.address_bits - (parameters.bus_bytes.bit_length() - 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        shift = parameters.bus_bytes.bit_length() - 1
        page_words = 1 << (PAGE_BITS - shift)
        line = self.lines.payload
        its_bytes, its_words = Signal(12), Signal(9)
        left, length = Signal(range(page_words + 1)), Signal(9)
        asks, takes = Signal(), Signal()
        m.d.comb += [
            its_bytes.eq(Mux(line.is_float32, line.count << 2, line.count << 1) + line.address[:shift]),
            its_words.eq((its_bytes + parameters.bus_bytes - 1) >> shift),
            # A line is taken once its predecessor has been asked for; the loader hears of it at once.
            takes.eq((self.words == 0) & ~self.stop),
            self.to_read.payload.words.eq(its_words),
            self.to_read.payload.line.eq(line),
            self.to_read.valid.eq(self.lines.valid & takes),
            self.lines.ready.eq(self.to_read.ready & takes),
            left.eq(page_words - self.word[: PAGE_BITS - shift]),
            length.eq(Mux(self.words > left, left, self.words)),
            asks.eq((self.words != 0) & (self.bursts != parameters.reads) & ~self.stop & (~self.valid | self.ready)),
            self.is_idle.eq((self.bursts == 0) & ~self.valid),
        ]
        with m.If(self.lines.valid & self.lines.ready):
            m.d.sync += [self.words.eq(its_words), self.word.eq(line.address[shift:])]
        with m.If(self.ready):
            m.d.sync += self.valid.eq(0)
        with m.If(asks):
            m.d.sync += [
                self.valid.eq(1),
                self.address.eq(self.word << shift),
                self.length.eq(length - 1),
                self.words.eq(self.words - length),
                self.word.eq(self.word + length),
            ]
        m.d.sync += self.bursts.eq(self.bursts + asks - self.ended)
        return m
