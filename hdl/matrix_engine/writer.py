# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""Rows of results to memory: a burst for each row of a tile, two at a boundary of 4 KiB."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.placement import Placement
from hdl.matrix_engine.ports import block_layout
from hdl.matrix_engine.reader import PAGE_BITS
from hdl.matrix_engine.widths import ELEMENT, Widths

__all__ = ["Writer"]

#: Bursts in flight: the bus still owes their answers.
_MOST_BURSTS = 255


class Writer(wiring.Component):
    """Write the rows of tiles where they belong, without those beyond the edges of D.

    ::

        array -> one row of a tile -> Widths -----> shifted to its place in the words -> m_axi_w, a word a cycle
        blocks -> Placement: its      to the                                         '-> m_axi_aw, once a burst
                  address, its size   format of D

    Ports
    -----
    blocks : stream of block_layout, in
    row_stride, is_wide, converts, source, destination : in
        Of the command: bytes; D has 4 bytes an element; its results are converted, from the operand format (or float32)
        to which format. See `hdl.matrix_engine.widths.Widths`.
    rows : stream, in
        A row of a tile: a code for each column, and flags.
    address, length, address_valid, address_ready
        The write address channel.
    data, strobes, last, data_valid, data_ready
        The write data channel.
    answered : in
        The bus answers a burst.
    stop : in
        Begin no further burst, except for those of a row of which one has begun.
    flags : out
        The flags of the row that is accepted, without those beyond the edge; 0 in other cycles.
    is_idle : out
        No row, no block and no burst is on its way.
    is_quiet : out
        No burst is on its way.
    """

    def __init__(self, parameters: EngineParameters, row: data.StructLayout) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "blocks": In(stream.Signature(block_layout(parameters))),
                "row_stride": In(32),
                "is_wide": In(1),
                "converts": In(1),
                "source": In(4),
                "destination": In(4),
                "rows": In(stream.Signature(row)),
                "address": Out(parameters.address_bits),
                "length": Out(8),
                "address_valid": Out(1),
                "address_ready": In(1),
                "data": Out(parameters.bus_width),
                "strobes": Out(parameters.bus_bytes),
                "last": Out(1),
                "data_valid": Out(1),
                "data_ready": In(1),
                "answered": In(1),
                "stop": In(1),
                "flags": Out(5),
                "is_idle": Out(1),
                "is_quiet": Out(1),
            }
        )
        self.placement = Placement(parameters)
        self.widths = Widths(parameters)
        #: Bursts in flight: the bus still owes their answers.
        self.bursts = Signal(range(_MOST_BURSTS + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        m.submodules.placement, m.submodules.widths = placement, _ = self.placement, self.widths
        count, is_inside, takes = placement.count, placement.is_inside, placement.takes
        wiring.connect(m, wiring.flipped(self.blocks), placement.blocks)
        m.d.comb += [placement.row_stride.eq(self.row_stride), placement.is_wide.eq(self.is_wide)]
        # Flags of elements within D.
        if parameters.flags:
            raised = [Mux(count > number, each.as_value(), 0) for number, each in enumerate(self.rows.payload.flags)]
            total = C(0, 5)
            for each in raised:
                total = total | each
            with m.If(takes & is_inside):
                m.d.comb += self.flags.eq(total | 0)

        self._send(m)
        return m

    def _send(self, m: Module) -> None:
        """Hold one row, convert it, and send it in one or two bursts."""
        parameters, widths, placement = self.parameters, self.widths, self.placement
        is_inside, takes, shift = placement.is_inside, placement.takes, parameters.bus_bytes.bit_length() - 1
        bus_width, bus_bytes = parameters.bus_width, parameters.bus_bytes
        most_bytes = parameters.columns * ELEMENT // 8
        most_words = most_bytes // bus_bytes + 1 + (most_bytes % bus_bytes != 0)
        held = Signal(most_words * bus_width, reset_less=True)
        mask = Signal(most_words * bus_bytes, reset_less=True)
        words = Signal(range(most_words + 1))
        page_words = 1 << (PAGE_BITS - shift)
        word = Signal(parameters.address_bits - shift)
        left_in_page, length = Signal(range(page_words + 1)), Signal(range(most_words + 1))
        to_go = Signal(range(most_words + 1))  # words of the burst
        begins = Signal()
        m.d.comb += [
            left_in_page.eq(page_words - word[: PAGE_BITS - shift]),
            length.eq(Mux(words > left_in_page, left_in_page, words)),
            self.data.eq(held[:bus_width]),
            self.strobes.eq(mask[:bus_bytes]),
            self.last.eq(to_go == 1),
        ]
        widths_row = widths.i.payload
        m.d.comb += [
            widths_row.codes.eq(Cat(_wide(code) for code in self.rows.payload.result)),
            widths_row.count.eq(placement.count),
            widths.is_wide.eq(self.is_wide),
            widths.converts.eq(self.converts),
            widths.source.eq(self.source),
            widths.destination.eq(self.destination),
        ]
        begun = Signal()  # a burst of the row has begun
        place = Signal(parameters.address_bits)
        is_free = Signal()
        m.d.comb += [
            widths.i.valid.eq(self.rows.valid & placement.has_block & is_inside & is_free & ~self.stop),
            self.rows.ready.eq(placement.has_block & ~self.stop & (~is_inside | (is_free & widths.i.ready))),
            takes.eq(self.rows.valid & self.rows.ready),
            self.is_quiet.eq((self.bursts == 0) & ~begun),
            self.address.eq(word << shift),
            self.length.eq(length - 1),
        ]
        m.d.comb += self.is_idle.eq(self.is_quiet & is_free & placement.is_empty)
        m.d.sync += self.bursts.eq(self.bursts + begins - self.answered)
        self.mask, self.words, self.word, self.to_go, self.begun, self.place = mask, words, word, to_go, begun, place
        with m.FSM() as self.fsm:
            with m.State("WAIT"):
                m.d.comb += is_free.eq(1)
                m.d.sync += place.eq(placement.address)
                with m.If(takes & is_inside):
                    m.next = "SHIFT"
            with m.State("SHIFT"):
                # The row, as bytes, moves to its place in the words.
                its_bytes, full = Signal(range(most_bytes + 1)), Signal(most_bytes)
                m.d.comb += [
                    widths.o.ready.eq(1),
                    its_bytes.eq(widths.o.payload.count << Mux(self.is_wide, 2, 1)),
                    full.eq((C(1, most_bytes + 1) << its_bytes) - 1),
                ]
                m.d.sync += [
                    held.eq(widths.o.payload.codes.as_value() << (place[:shift] << 3)),
                    mask.eq(full << place[:shift]),
                    words.eq((its_bytes + place[:shift] + bus_bytes - 1) >> shift),
                    word.eq(place[shift:]),
                ]
                with m.If(widths.o.valid & ~self.stop):
                    m.next = "BURST"
            with m.State("BURST"):
                with m.If((self.bursts != _MOST_BURSTS) & ~(self.stop & ~begun)):
                    m.d.comb += begins.eq(1)
                    m.d.sync += [to_go.eq(length), self.data_valid.eq(1), self.address_valid.eq(1), begun.eq(1)]
                    m.next = "SEND"
            with m.State("SEND"):
                with m.If(self.address_ready):
                    m.d.sync += self.address_valid.eq(0)
                with m.If(self.data_valid & self.data_ready):
                    m.d.sync += [
                        held.eq(held >> bus_width),
                        mask.eq(mask >> bus_bytes),
                        to_go.eq(to_go - 1),
                        self.data_valid.eq(~self.last),
                    ]
                ends_address = ~self.address_valid | self.address_ready
                ends_data = ~self.data_valid | (self.data_ready & self.last)
                with m.If(ends_address & ends_data):
                    m.d.sync += [words.eq(words - length), word.eq(word + length)]
                    m.next = "BURST"
                    with m.If(words == length):
                        m.d.sync += begun.eq(0)
                        m.next = "WAIT"


def _wide(code):
    return Cat(code, C(0, ELEMENT - len(code)))
