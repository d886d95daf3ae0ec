# amaranth: UnusedElaboratable=no
# A part is elaborated by hand, so that its state is at hand.
"""The reader beside the words of its lines: every word that it asks for holds a byte of the line."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib.wiring import In

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import line_layout
from hdl.matrix_engine.reader import PAGE_BITS, Reader
from lab.proofs.along_engine.matrices import Bounds

__all__ = ["Read"]


class Read(Bounds):
    """A reader, the words of its line, and the words of the line to which the offered burst belongs.

    Ports
    -----
    line, offers, loader_ready, ready, ended, stop : in
        As of `hdl.matrix_engine.reader.Reader`.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters, self.reader = parameters, Reader(parameters)
        inputs = ("offers", "loader_ready", "ready", "ended", "stop")
        super().__init__({"line": In(line_layout(parameters)), **{name: In(1) for name in inputs}})

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        parameters, reader, line = self.parameters, self.reader, self.line
        m.submodules.reader = reader.elaborate(platform)
        m.d.comb += [
            reader.lines.payload.eq(line),
            reader.lines.valid.eq(self.offers),
            reader.to_read.ready.eq(self.loader_ready),
            reader.ready.eq(self.ready),
            reader.ended.eq(self.ended),
            reader.stop.eq(self.stop),
        ]
        shift = parameters.bus_bytes.bit_length() - 1
        end = line.address + Mux(line.is_float32, line.count << 2, line.count << 1)
        first, last, offered_first, offered_last = (
            Signal(parameters.address_bits, name=name) for name in ("first", "last", "offered_first", "offered_last")
        )
        with m.If(self.offers & reader.lines.ready):
            m.d.sync += [first.eq(line.address >> shift), last.eq((end - 1) >> shift)]
        # The reader may take the next line while a burst of this one waits for the bus.
        with m.If(~reader.valid | self.ready):
            m.d.sync += [offered_first.eq(first), offered_last.eq(last)]
        is_line = (line.count != 0) & (line.count <= parameters.line_most) & (end <= 1 << parameters.address_bits)
        begins, ends = reader.address >> shift, (reader.address >> shift) + reader.length
        has_line = reader.words != 0
        conditions = [
            ("words to come", ~has_line | (reader.word + reader.words == last + 1)),
            ("words within the line", ~has_line | (reader.word >= first)),
            ("line within memory", last < 1 << parameters.address_bits - shift),
            ("a word's address", reader.address[:shift] == 0),
            ("words of a burst", ~reader.valid | ((begins >= offered_first) & (ends <= offered_last))),
            ("bytes of one page", ~reader.valid | (begins >> PAGE_BITS - shift == ends >> PAGE_BITS - shift)),
        ]  # fmt: skip
        return [~self.offers | is_line], conditions, []
