"""The beats of a slice: every tile of a block in turn, for one k after the other."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import slice_layout

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Walk over a slice, a beat of the array in every cycle.

    ::

        for k in the slice:
            for tile row:
                for tile column:      <- so many beats lie between two of one tile
                    read A panel (tile row, k) and B panel (tile column, k) -> beat of tile

    Two ranks follow: the block RAM, and the choice of a code in its word.

    Ports
    -----
    slices : stream of slice_layout, in
        Slices that are in block RAM; taken with their last beat. They lie in the halves in turn.
    half, tile_row, tile_column, k : out
        What to read.
    enable : out
        The ranks move.
    valid, ready : out, in
        The beat behind the ranks.
    register, first, last, is_empty : out
        Of that beat.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "slices": In(stream.Signature(slice_layout(parameters))),
                "half": Out(1),
                "tile_row": Out(range(parameters.tile_rows)),
                "tile_column": Out(range(parameters.tile_columns)),
                "k": Out(range(parameters.depth)),
                "enable": Out(1),
                "valid": Out(1),
                "ready": In(1),
                "register": Out(parameters.register_width),
                "first": Out(1),
                "last": Out(1),
                "is_empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, its = self.parameters, self.slices.payload
        columns_bits = parameters.tile_columns.bit_length() - 1
        rows_bits = parameters.tile_rows.bit_length() - 1
        ends_row, ends_tiles, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            self.enable.eq(~self.valid | self.ready),
            ends_row.eq(self.tile_column == its.last_tile_column),
            ends_tiles.eq(ends_row & (self.tile_row == its.last_tile_row)),
            ends.eq(ends_tiles & (self.k == its.last_k)),
            self.slices.ready.eq(self.enable & ends),
        ]
        with m.If(self.slices.valid & self.enable):
            m.d.sync += self.tile_column.eq(Mux(ends_row, 0, self.tile_column + 1))
            with m.If(ends_row):
                m.d.sync += self.tile_row.eq(Mux(ends_tiles, 0, self.tile_row + 1))
            with m.If(ends_tiles):
                m.d.sync += self.k.eq(Mux(ends, 0, self.k + 1))
            with m.If(ends):
                m.d.sync += self.half.eq(~self.half)
        now = (
            Cat(self.tile_column[:columns_bits], self.tile_row[:rows_bits]),
            its.first & (self.k == 0),
            its.last & (self.k == its.last_k),
            its.is_empty,
        )
        in_memory = [Signal(max(1, parameters.register_width)), Signal(), Signal(), Signal()]
        has_read = Signal()
        with m.If(self.enable):
            m.d.sync += [has_read.eq(self.slices.valid), self.valid.eq(has_read)]
            m.d.sync += [there.eq(value) for there, value in zip(in_memory, now, strict=True)]
            m.d.sync += [
                there.eq(value)
                for there, value in zip((self.register, self.first, self.last, self.is_empty), in_memory, strict=True)
            ]
        return m
