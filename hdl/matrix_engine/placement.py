# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""Where the rows of tiles belong in memory."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import block_layout
from hdl.queue import Queue

__all__ = ["Placement"]

#: Blocks whose results are not in memory.
_BLOCKS = 4


class Placement(wiring.Component):
    """Walk over the rows of the tiles of each block, in the order in which the array gives them.

    ::

        block:   tile 0 | tile 1       row 0, 1, ... of tile 0, row 0, 1, ... of tile 1: side by side first,
                 -------+-------       then the next row of tiles
                 tile 2 | tile 3

    Ports
    -----
    blocks : stream of block_layout, in
    row_stride, is_wide : in
        Of D: bytes; its elements have 4 bytes.
    address : out
        Of the row's first element.
    count : out
        Its elements within D.
    is_inside : out
        The row itself is within D.
    has_block : out
        There is such a row.
    takes : in
        Go on to the next row.
    is_empty : out
        No block waits for rows.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "blocks": In(stream.Signature(block_layout(parameters))),
                "row_stride": In(32),
                "is_wide": In(1),
                "address": Out(parameters.address_bits),
                "count": Out(range(parameters.columns + 1)),
                "is_inside": Out(1),
                "has_block": Out(1),
                "takes": In(1),
                "is_empty": Out(1),
            }
        )
        self.queue = Queue(block_layout(parameters), _BLOCKS)
        # State that proofs refer to: rows and columns of the block that are left from the tile on; addresses of the
        # first row in this row of tiles, of the row, and of the tile's first row.
        block, address = block_layout(parameters), parameters.address_bits
        self.is_first = Signal(init=1)  # of the block
        self.rows_kept = Signal(block["rows"].width)
        self.columns_kept = Signal(block["columns"].width)
        self.tile_row_kept = Signal(address)
        self.at_kept = Signal(address)
        self.tile_at_kept = Signal(address)
        self.row = Signal(range(max(2, parameters.rows)))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        columns, lane_rows = self.parameters.columns, self.parameters.rows
        m.submodules.queue = queue = self.queue
        block, takes = queue.r_data, self.takes
        m.d.comb += [
            queue.w_data.eq(self.blocks.payload),
            self.blocks.ready.eq(queue.level != queue.depth),
            queue.w_en.eq(self.blocks.valid & self.blocks.ready),
            self.has_block.eq(queue.r_rdy),
            self.is_empty.eq(queue.level == 0),
        ]

        is_first, row, rows_kept, columns_kept = self.is_first, self.row, self.rows_kept, self.columns_kept
        tile_row_kept, at_kept, tile_at_kept = self.tile_row_kept, self.at_kept, self.tile_at_kept
        rows, left, tile_row, at = (
            Signal.like(rows_kept), Signal.like(columns_kept), Signal.like(at_kept), Signal.like(at_kept)
        )  # fmt: skip
        m.d.comb += [
            rows.eq(Mux(is_first, block.rows, rows_kept)),
            left.eq(Mux(is_first, block.columns, columns_kept)),
            tile_row.eq(Mux(is_first, block.address, tile_row_kept)),
            at.eq(Mux(is_first, block.address, at_kept)),
        ]
        element_shift = Mux(self.is_wide, 2, 1)
        ends_tile, ends_row_of_tiles, ends_block = Signal(), Signal(), Signal()
        tile_at = Signal.like(at)  # address of the tile's first row
        m.d.comb += [
            tile_at.eq(Mux(row == 0, at, tile_at_kept)),
            self.count.eq(Mux(left > columns, columns, left)),
            self.is_inside.eq(row < rows),
            self.address.eq(at),
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
        return m
