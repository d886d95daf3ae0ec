"""The beats of a slice: every tile of a block in turn, for one k after the other."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import named
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

    A slice of C has a row of each tile in place of a k. The rows of a tile follow one another if `passes`, which is the
    order of results.

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
    b_k : out
        The k of the B panel: that of a row of C if the slice has these.
    is_row, passes : in
        C is a single row; its elements are the results.
    loads, row : out
        The beat is a row of C, and its number in the tile. These five only with initial values.
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
                **(
                    {
                        "b_k": Out(range(parameters.depth)),
                        "is_row": In(1),
                        "passes": In(1),
                        "loads": Out(1),
                        "row": Out(range(parameters.rows)),
                    }
                    if parameters.initial
                    else {}
                ),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, its = self.parameters, self.slices.payload
        columns_bits = parameters.tile_columns.bit_length() - 1
        rows_bits = parameters.tile_rows.bit_length() - 1
        ends_row, ends_rows, ends_k, ends = Signal(), Signal(), Signal(), Signal()
        # Tile column, tile row, k; or k, tile column, tile row.
        passes = self.passes if parameters.initial else C(0, 1)
        steps_column = named(m, "steps_column", ~passes | ends_k)
        steps_row = named(m, "steps_row", steps_column & ends_row)
        steps_k = named(m, "steps_k", passes | (ends_row & ends_rows))
        m.d.comb += [
            self.enable.eq(~self.valid | self.ready),
            ends_row.eq(self.tile_column == its.last_tile_column),
            ends_rows.eq(self.tile_row == its.last_tile_row),
            ends_k.eq(self.k == its.last_k),
            ends.eq(ends_row & ends_rows & ends_k),
            self.slices.ready.eq(self.enable & ends),
        ]
        with m.If(self.slices.valid & self.enable):
            with m.If(steps_column):
                m.d.sync += self.tile_column.eq(Mux(ends_row, 0, self.tile_column + 1))
            with m.If(steps_row):
                m.d.sync += self.tile_row.eq(Mux(ends_rows, 0, self.tile_row + 1))
            with m.If(steps_k):
                m.d.sync += self.k.eq(Mux(ends_k, 0, self.k + 1))
            with m.If(ends):
                m.d.sync += self.half.eq(~self.half)
        now = [
            Cat(self.tile_column[:columns_bits], self.tile_row[:rows_bits]),
            its.first & (self.k == 0),
            its.last & (self.k == its.last_k),
            its.is_empty,
        ]
        beat = [self.register, self.first, self.last, self.is_empty]
        if parameters.initial:
            row = self.k[: parameters.rows.bit_length() - 1]
            its_k = Mux(self.is_row, 0, Cat(C(0, 1), row, self.tile_row[:rows_bits]))
            m.d.comb += self.b_k.eq(Mux(its.is_initial, its_k, self.k))
            now += [its.is_initial, row]
            beat += [self.loads, self.row]
        in_memory = [Signal.like(each, name=f"{each.name}_read") for each in beat]
        has_read = Signal()
        with m.If(self.enable):
            m.d.sync += [has_read.eq(self.slices.valid), self.valid.eq(has_read)]
            m.d.sync += [there.eq(value) for there, value in zip(in_memory, now, strict=True)]
            m.d.sync += [there.eq(value) for there, value in zip(beat, in_memory, strict=True)]
        return m
