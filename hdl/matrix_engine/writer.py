# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""Rows of results to memory: a burst for each row of a tile, two at a boundary of 4 KiB."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import block_layout
from hdl.matrix_engine.reader import PAGE_BITS
from hdl.matrix_engine.widths import ELEMENT, Widths
from hdl.queue import Queue

__all__ = ["Writer", "row_layout"]

#: Blocks whose results are not in memory.
_BLOCKS = 4
#: Bursts that the bus has not answered.
_MOST_BURSTS = 255


def row_layout(parameters: EngineParameters) -> data.StructLayout:
    """Return a row of a tile in the format of D."""
    return data.StructLayout({"codes": data.ArrayLayout(ELEMENT, parameters.columns)})


class Writer(wiring.Component):
    """Write the rows of tiles where they belong, without those beyond the edges of D.

    ::

        array -> one row of a tile -> Widths -> shifted to its place in the words -> m_axi_w, a word a cycle
                     |                to the                                      `-> m_axi_aw, once a burst
                     `- its address:  format
                        block + stride * row + ...

    The rows of a block arrive in order: tile by tile, side by side first.

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
        self.queue = Queue(block_layout(parameters), _BLOCKS)
        self.widths = Widths(parameters)
        #: Bursts that the bus has not answered.
        self.bursts = Signal(range(_MOST_BURSTS + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        shift = parameters.bus_bytes.bit_length() - 1
        columns, lane_rows = parameters.columns, parameters.rows
        m.submodules.queue, m.submodules.widths = queue, widths = self.queue, self.widths
        block = queue.r_data
        m.d.comb += [
            queue.w_data.eq(self.blocks.payload),
            self.blocks.ready.eq(queue.level != queue.depth),
            queue.w_en.eq(self.blocks.valid & self.blocks.ready),
        ]

        # Where the next row of the array belongs: rows and columns left from the tile on, and its address.
        is_first = Signal(init=1)  # of the block
        rows_kept, columns_kept = Signal.like(block.rows), Signal.like(block.columns)
        tile_row_kept = Signal(parameters.address_bits)  # address of the first row in this row of tiles
        at_kept = Signal(parameters.address_bits)
        rows, left, tile_row, at = (
            Signal.like(rows_kept), Signal.like(columns_kept), Signal.like(at_kept), Signal.like(at_kept)
        )  # fmt: skip
        m.d.comb += [
            rows.eq(Mux(is_first, block.rows, rows_kept)),
            left.eq(Mux(is_first, block.columns, columns_kept)),
            tile_row.eq(Mux(is_first, block.address, tile_row_kept)),
            at.eq(Mux(is_first, block.address, at_kept)),
        ]
        row = Signal(range(max(2, lane_rows)))
        element_shift = Mux(self.is_wide, 2, 1)
        in_tile = Signal(range(columns + 1))
        is_inside, takes = Signal(), Signal()
        ends_tile, ends_row_of_tiles, ends_block = Signal(), Signal(), Signal()
        tile_at = Signal.like(at)  # address of the tile's first row
        tile_at_kept = Signal.like(at)
        m.d.comb += [
            tile_at.eq(Mux(row == 0, at, tile_at_kept)),
            in_tile.eq(Mux(left > columns, columns, left)),
            is_inside.eq(row < rows),
            ends_tile.eq(row == lane_rows - 1),
            ends_row_of_tiles.eq(ends_tile & (left <= columns)),
            ends_block.eq(ends_row_of_tiles & (rows <= lane_rows)),
            queue.r_en.eq(takes & ends_block),
        ]
        with m.If(takes):
            m.d.sync += [
                row.eq(Mux(ends_tile, 0, row + 1)),
                is_first.eq(ends_block),
                rows_kept.eq(rows),
                columns_kept.eq(left),
                tile_row_kept.eq(tile_row),
                tile_at_kept.eq(tile_at),
                at_kept.eq(at + self.row_stride),
            ]
            with m.If(ends_row_of_tiles):
                next_row = tile_row + (self.row_stride << (lane_rows.bit_length() - 1))
                m.d.sync += [
                    rows_kept.eq(rows - lane_rows),
                    columns_kept.eq(block.columns),
                    tile_row_kept.eq(next_row),
                    at_kept.eq(next_row),
                ]
            with m.Elif(ends_tile):
                m.d.sync += [columns_kept.eq(left - columns), at_kept.eq(tile_at + (columns << element_shift))]

        # Flags of elements within D.
        if parameters.flags:
            raised = [Mux(in_tile > number, self.rows.payload.flags[number].as_value(), 0) for number in range(columns)]
            total = C(0, 5)
            for each in raised:
                total = total | each
            with m.If(takes & is_inside):
                m.d.comb += self.flags.eq(total | 0)

        self._send(m, at=at, in_tile=in_tile, is_inside=is_inside, takes=takes, shift=shift)
        return m

    def _send(self, m: Module, *, at, in_tile, is_inside, takes, shift) -> None:
        """Hold one row, convert it, and send it in one or two bursts."""
        parameters, widths, queue = self.parameters, self.widths, self.queue
        bus_width, bus_bytes = parameters.bus_width, parameters.bus_bytes
        most_bytes = parameters.columns * ELEMENT // 8
        most_words = most_bytes // bus_bytes + 1 + (most_bytes % bus_bytes != 0)
        held = Signal(most_words * bus_width, reset_less=True)
        mask = Signal(most_words * bus_bytes, reset_less=True)
        byte = Signal(parameters.address_bits)
        size = Signal(range(most_bytes + 1))
        row_codes = Signal(parameters.columns * ELEMENT)
        row_count = Signal(range(parameters.columns + 1))
        words = Signal(range(most_words + 1))
        page_words = 1 << (PAGE_BITS - shift)
        word = Signal(parameters.address_bits - shift)
        left_in_page, length = Signal(range(page_words + 1)), Signal(range(most_words + 1))
        to_go = Signal(range(most_words + 1))  # words of the burst
        begins, asked = Signal(), Signal()
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
            widths_row.count.eq(in_tile),
            widths.is_wide.eq(self.is_wide),
            widths.converts.eq(self.converts),
            widths.source.eq(self.source),
            widths.destination.eq(self.destination),
        ]
        del byte, size, row_codes, row_count
        begun = Signal()  # a burst of the row has begun
        place = Signal(parameters.address_bits)
        is_free = Signal()
        m.d.comb += [
            widths.i.valid.eq(self.rows.valid & queue.r_rdy & is_inside & is_free & ~self.stop),
            self.rows.ready.eq(queue.r_rdy & ~self.stop & (~is_inside | (is_free & widths.i.ready))),
            takes.eq(self.rows.valid & self.rows.ready),
            is_free.eq(0),
            self.is_quiet.eq((self.bursts == 0) & ~begun & ~self.address_valid & ~self.data_valid),
            self.address.eq(word << shift),
            self.length.eq(length - 1),
        ]
        answers = self.answered
        m.d.sync += self.bursts.eq(self.bursts + begins - answers)
        is_waiting = Signal()
        m.d.comb += self.is_idle.eq(self.is_quiet & ~queue.r_rdy & is_waiting & (queue.level == 0))
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += [is_free.eq(1), is_waiting.eq(1)]
                m.d.sync += place.eq(at)
                with m.If(takes & is_inside):
                    m.next = "SHIFT"
            with m.State("SHIFT"):
                # The row, as bytes, moves to its place in the words.
                its_bytes = Signal(range(2 * most_bytes + bus_bytes))
                m.d.comb += [
                    widths.o.ready.eq(1),
                    its_bytes.eq((widths.o.payload.count << Mux(self.is_wide, 2, 1)) + place[:shift]),
                ]
                full = Signal(most_bytes)
                m.d.comb += full.eq((C(1, most_bytes + 1) << (widths.o.payload.count << Mux(self.is_wide, 2, 1))) - 1)
                m.d.sync += [
                    held.eq(widths.o.payload.codes.as_value() << (place[:shift] << 3)),
                    mask.eq(full << place[:shift]),
                    words.eq((its_bytes + bus_bytes - 1) >> shift),
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
        del asked


def _wide(code):
    return Cat(code, C(0, ELEMENT - len(code)))
