# amaranth: UnusedElaboratable=no
# A part is elaborated by hand, so that its state is at hand.
"""The placement of rows beside the rows of the tiles of a block: every row lies within its block, each comes once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.placement import Placement
from hdl.matrix_engine.ports import block_layout
from hdl.queue import Queue
from lab.proofs.along_engine.matrices import Bounds
from lab.proofs.along_model.opened import SeenMemory
from lab.proofs.along_model.record import Condition

__all__ = ["Placed"]

#: Bits of a row stride, and of an address as an exact number, some rows beyond the last one.
_STRIDE, _EXACT = 32, 72


class Placed(Bounds):
    """A placement, and its position in its block.

    Ports
    -----
    row_stride, is_wide, begin, end : in
        Of D; they keep their values while there is a block.
    block, offers, takes : in
        As of `hdl.matrix_engine.placement.Placement`. Rows are taken only while there is a block.
    block_end : in
        One byte beyond the last element of the block, ``address + (rows - 1) * row_stride + columns * element size``.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters, self.placement = parameters, Placement(parameters)
        # The ends of the waiting blocks.
        self.ends = Queue(_EXACT, self.placement.queue.depth)
        super().__init__(
            {
                "row_stride": In(_STRIDE),
                "begin": In(_EXACT),
                "end": In(_EXACT),
                "block": In(block_layout(parameters)),
                "block_end": In(_EXACT),
                **{name: In(1) for name in ("is_wide", "offers", "takes")},
            }
        )

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        placement = self.placement
        m.submodules.placement = placement.elaborate(platform)
        self.stride, self.wide = Signal(_STRIDE), Signal()
        self.d_begin, self.d_end = Signal(_EXACT), Signal(_EXACT)
        with m.If(placement.is_empty & ~self.offers):
            m.d.sync += [self.stride.eq(self.row_stride), self.wide.eq(self.is_wide)]
            m.d.sync += [self.d_begin.eq(self.begin), self.d_end.eq(self.end)]
        takes = self.takes & placement.has_block
        m.d.comb += [
            placement.row_stride.eq(self.stride),
            placement.is_wide.eq(self.wide),
            placement.blocks.payload.eq(self.block),
            placement.blocks.valid.eq(self.offers),
            placement.takes.eq(takes),
        ]
        m.submodules.ends = ends = self.ends
        m.d.comb += [ends.w_data.eq(self.block_end), ends.w_en.eq(placement.queue.w_en)]
        m.d.comb += ends.r_en.eq(placement.queue.r_en)
        self._follow(m, takes)
        block, count = self.its, placement.count
        # A place whose indices are within the block lies before its end: see `lab.proofs.along_engine.matrices.Place`.
        is_within = (self.first + self.row < block.rows) & (self.column + count <= block.columns)
        is_inside = (self.at >= block.address) & (self.at + self._bytes(count) <= ends.r_data)
        legal = [
            ~self.offers | self._is_within(self.block, self.block_end),
            ~placement.has_block | ~is_within | is_inside,
        ]
        keeps = takes & placement.is_inside
        wanted = block.columns - self.column
        at = placement.address
        claims = [
            ("row within the block", ~takes | (placement.is_inside == (self.first + self.row < block.rows))),
            ("address of a row", ~keeps | (at == self.at)),
            (
                "elements of a row",
                ~keeps | (count == Mux(wanted > self.parameters.columns, self.parameters.columns, wanted)),
            ),
            ("some element", ~keeps | (count != 0)),
            ("row within d", ~keeps | ((at >= self.d_begin) & (at + self._bytes(count) <= self.d_end))),
        ]
        return legal, [*self._blocks(m), *self._walk()], claims

    def _bytes(self, elements: Value) -> Value:
        return Mux(self.wide, elements << 2, elements << 1)

    def _is_within(self, block: Any, end: Value) -> Value:
        """Return the tiler's guarantees about a block: see `lab.proofs.along_engine.walk`."""
        within = (block.address >= self.d_begin) & (end <= self.d_end)
        sizes = (block.rows <= self.parameters.block_rows) & (block.columns <= self.parameters.block_columns)
        return (
            within
            & (self.d_end <= 1 << self.parameters.address_bits)
            & sizes
            & (block.rows != 0)
            & (block.columns != 0)
        )

    def _follow(self, m: Module, takes: Value) -> None:
        """Follow the rows of the tiles of a block."""
        p = self.parameters
        block = self.its = self.placement.queue.r_data
        # Row and column of the tile in its block; the row in the tile.
        self.first, self.column = Signal(range(p.block_rows + 1)), Signal(range(p.block_columns + 1))
        self.row = Signal(range(max(2, p.rows)))
        # Addresses of the row of tiles, of the tile and of the row; in a new block, its address replaces all three.
        kept = self.tile_row, self.tile, self.now = Signal(_EXACT), Signal(_EXACT), Signal(_EXACT)
        self.is_new = (self.first == 0) & (self.column == 0) & (self.row == 0)
        tile_row, tile, self.at = (Mux(self.is_new, block.address, each) for each in kept)
        ends_tile = self.row == p.rows - 1
        last_column, last_row = self.column + p.columns >= block.columns, self.first + p.rows >= block.rows
        next_row, next_tile = tile_row + self.stride * p.rows, tile + self._bytes(C(p.columns))
        with m.If(takes):
            m.d.sync += [self.row.eq(self.row + 1), self.now.eq(self.at + self.stride)]
            m.d.sync += [self.tile.eq(tile), self.tile_row.eq(tile_row)]
            with m.If(ends_tile):
                m.d.sync += [self.row.eq(0), self.column.eq(self.column + p.columns)]
                m.d.sync += [self.now.eq(next_tile), self.tile.eq(next_tile)]
                with m.If(last_column):
                    m.d.sync += [self.column.eq(0), self.first.eq(Mux(last_row, 0, self.first + p.rows))]
                    m.d.sync += [each.eq(next_row) for each in kept]

    def _blocks(self, m: Module) -> Iterator[Condition]:
        """Yield the conditions that every waiting block lies within D."""
        queue, width = self.placement.queue, len(self.placement.queue.consume)
        blocks, ends = SeenMemory.of_queue(queue), SeenMemory.of_queue(self.ends)
        m.d.comb += [row.addr.eq(place) for memory in (blocks, ends) for place, row in enumerate(memory.rows)]
        yield "blocks", (queue.has_word == (queue.level != 0)) & (queue.level <= queue.depth)
        yield "order of blocks", queue.produce == (queue.consume + queue.level)[:width]
        for name in ("produce", "consume", "level", "has_word"):
            yield f"ends of blocks: {name}", getattr(queue, name) == getattr(self.ends, name)
        for place in range(queue.depth):
            is_used = (C(place, width) - queue.consume)[:width] < queue.level
            its = data.View(block_layout(self.parameters), blocks.rows[place].data)
            yield f"block {place}", ~is_used | self._is_within(its, ends.rows[place].data)

    def _walk(self) -> Iterator[Condition]:
        """Yield the conditions on the placement's position in its block."""
        p, placement, block = self.parameters, self.placement, self.its
        yield "a block", self.is_new | placement.has_block
        yield "a new block", placement.is_first == self.is_new
        yield "row of a tile", (placement.row == self.row) & (self.row < p.rows)
        old = ~self.is_new
        yield "rows of a block", ~old | ((self.first < block.rows) & (placement.rows_kept == block.rows - self.first))
        left = placement.columns_kept == block.columns - self.column
        yield "columns of a block", ~old | ((self.column < block.columns) & left)
        yield "tiles", (self.first % p.rows == 0) & (self.column % p.columns == 0)
        width = len(placement.address)
        yield "address of a row of tiles", ~old | (placement.tile_row_kept == self.tile_row[:width])
        yield "address of a row", ~old | (placement.at_kept == self.now[:width])
        yield "address of a tile", (self.row == 0) | (placement.tile_at_kept == self.tile[:width])
        yield "first row of a tile", ~old | (self.row != 0) | (self.tile == self.now)
