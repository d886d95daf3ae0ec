# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""From words of the bus to groups of codes in block RAM."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.narrow import Narrow
from hdl.matrix_engine.parameters import CODE_WIDTH, EngineParameters
from hdl.matrix_engine.ports import line_layout, to_read_layout
from hdl.queue import Queue

__all__ = ["Loader"]


class Loader(wiring.Component):
    """Cut lines out of the words that the bus delivers, and hand them on as groups of codes.

    ::

        to_read --> queue --------------------------.
        m_axi_r --> Narrow --> pairs of halves --> window of two words --> group of codes --> panels
                    float32      of float32          shifted by the
                    to 16 bits   words               line's first element

    A word of the memory holds `group` codes, or half as many float32 numbers, so that two float32 words make one word
    of codes. Group number g of a line has its elements g * group ... g * group + group - 1.

    Ports
    -----
    to_read : stream of to_read_layout, in
    words : stream, in
        The read data channel.
    format : in
        Index of the operand format.
    line : out
        The line of the group.
    group : out
        Its codes, the first in the low bits.
    number : out
        Its number in the line.
    valid, ready
        A group is offered, and accepted.
    ends : out
        It is the last group of its line.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        most = parameters.line_most
        super().__init__(
            {
                "to_read": In(stream.Signature(to_read_layout(parameters))),
                "words": In(stream.Signature(parameters.bus_width)),
                "format": In(range(max(2, len(parameters.operands)))),
                "line": Out(line_layout(parameters)),
                "group": Out(parameters.bus_width),
                "number": Out(range(most)),
                "valid": Out(1),
                "ready": In(1),
                "ends": Out(1),
            }
        )
        depth = max(2, 2 * parameters.reads)
        #: Lines whose words are still on the bus, and lines whose words have arrived.
        self.awaited = Queue(to_read_layout(parameters), depth)
        self.within = Queue(to_read_layout(parameters), depth)
        self.narrow = Narrow(parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._enter(m)
        self._leave(m)
        return m

    def _enter(self, m: Module) -> None:
        """Count the words of each line as they arrive, which tells how to take them."""
        m.submodules.awaited, m.submodules.within, m.submodules.narrow = awaited, within, narrow = (
            self.awaited, self.within, self.narrow
        )  # fmt: skip
        accepts, enters = Signal(), Signal()
        words = Signal(9)
        its = awaited.r_data
        m.d.comb += [
            # The queue of lines within is as deep, and holds those that are awaited, too.
            self.to_read.ready.eq((awaited.level != awaited.depth) & (within.level != within.depth)),
            accepts.eq(self.to_read.valid & self.to_read.ready),
            awaited.w_data.eq(self.to_read.payload),
            within.w_data.eq(self.to_read.payload),
            awaited.w_en.eq(accepts),
            within.w_en.eq(accepts),
            narrow.i.payload.eq(self.words.payload),
            narrow.i.valid.eq(self.words.valid & awaited.r_rdy),
            self.words.ready.eq(narrow.i.ready & awaited.r_rdy),
            narrow.is_float32.eq(its.line.is_float32),
            narrow.format.eq(self.format),
            enters.eq(narrow.i.valid & narrow.i.ready),
            awaited.r_en.eq(enters & (words == its.words - 1)),
        ]
        if self.parameters.initial:
            m.d.comb += [narrow.is_c.eq(its.line.is_c), narrow.is_high.eq(its.line.index[0])]
        with m.If(enters):
            m.d.sync += words.eq(Mux(awaited.r_en, 0, words + 1))

    def _leave(self, m: Module) -> None:
        """Shift words by the line's offset into groups."""
        parameters, within, narrow = self.parameters, self.within, self.narrow
        width, group = parameters.bus_width, parameters.group
        shift = parameters.bus_bytes.bit_length() - 1
        its, line = within.r_data, within.r_data.line
        has_line = within.r_rdy

        # Number of the first code in its word of codes; the half of that word in which a float32 line starts.
        offset, starts_high = Signal(range(group)), Signal()
        m.d.comb += [
            offset.eq(Mux(line.is_float32, line.address[2:], line.address[1:shift])),
            starts_high.eq(line.is_float32 & line.address[shift]),
        ]
        taken, is_high = Signal(9), Signal()  # words of the line that were taken; the half that the next one fills
        is_first = taken == 0
        high = Signal()
        is_last_word = Signal()
        low_half = Signal(width // 2)
        m.d.comb += [
            high.eq(Mux(is_first, starts_high, is_high)),
            is_last_word.eq(taken == its.words - 1),
        ]
        # A word of codes is complete with its upper half, or with the last word of the line.
        word, completes = Signal(width), Signal()
        half = narrow.o.payload[: width // 2]
        with m.If(line.is_float32):
            m.d.comb += [
                word.eq(Mux(high, Cat(low_half, half), half)),
                completes.eq(high | is_last_word),
            ]
        with m.Else():
            m.d.comb += [word.eq(narrow.o.payload), completes.eq(1)]

        earlier, has_earlier, flushes = Signal(width), Signal(), Signal()
        number, groups = Signal(self.number.shape()), Signal(self.number.shape())
        m.d.comb += groups.eq((line.count - 1) >> (group.bit_length() - 1))
        moves = Signal()
        shifted = Cat(earlier, Mux(flushes, 0, word)) >> (offset * CODE_WIDTH)
        # Without an offset a word is a group by itself. Otherwise a group ends in the word after the one it starts in,
        # or, at the end of a line, in no word (`flushes`).
        gives = Signal()
        m.d.comb += [
            gives.eq(flushes | (narrow.o.valid & has_line & completes & ((offset == 0) | has_earlier))),
            self.valid.eq(gives),
            self.group.eq(Mux(offset == 0, word, shifted[:width])),
            self.number.eq(number),
            self.line.eq(line),
            self.ends.eq(number == groups),
            moves.eq(~gives | self.ready),
            narrow.o.ready.eq(has_line & moves & ~flushes),
            # A line is finished with its last group; all of its words have been taken by then.
            within.r_en.eq(gives & self.ready & self.ends),
        ]
        takes = Signal()
        m.d.comb += takes.eq(narrow.o.valid & narrow.o.ready)
        with m.If(takes):
            m.d.sync += [
                taken.eq(taken + 1),
                is_high.eq(~high),
                low_half.eq(half),
            ]
            with m.If(completes):
                m.d.sync += [earlier.eq(word), has_earlier.eq(offset != 0)]
            # The last word of the line may leave a rest that is a group by itself.
            with m.If(is_last_word):
                m.d.sync += flushes.eq(~(gives & self.ends))
        with m.If(gives & self.ready):
            m.d.sync += number.eq(number + 1)
        with m.If(within.r_en):
            m.d.sync += [number.eq(0), taken.eq(0), has_earlier.eq(0), flushes.eq(0)]
