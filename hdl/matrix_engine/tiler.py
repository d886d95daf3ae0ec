"""The walk over a command: batches, blocks of D, slices of K, and the lines of A and B that each slice needs."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import block_layout, command_layout, line_layout, slice_layout
from hdl.matrix_engine.registers import Initial

__all__ = ["Tiler"]


def _bits(count: int) -> int:
    return count.bit_length() - 1


class Tiler(wiring.Component):
    """Say which lines to read, which slices to compute and where the results go, in the order of the work.

    ::

        for each matrix of the batch:
            for each row of blocks of D:                      a_block: its first row of A
                for each block of that row:                   b_block: its first column of B   -> blocks
                    rows of C, if there is one                c_block                        -> lines, a slice
                    for each slice of K:                      a_slice, b_slice: from its first k
                        wait until a half of block RAM is free
                        lines of A, lines of B                -> lines
                                                              -> slices, once the last line is in block RAM

    Addresses only ever grow by strides, sizes and their multiples by powers of two, so there is no multiplier.

    Ports
    -----
    command : command_layout, in
        Held while the command runs. It is checked, and M, N and the number of batches are not 0.
    outer_shift : in
        1 for elements of 2 bytes in D, 2 for 4 bytes.
    start : in
    is_done : out
        All of the command was handed on. 1 before the first command.
    has_slices : out
        A slice was asked for and is not computed.
    lines : stream of line_layout, out
    loaded : in
        The last group of a line that ``ends`` its slice enters block RAM.
    slices : stream of slice_layout, out
        Slices in block RAM.
    blocks : stream of block_layout, out
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "command": In(command_layout()),
                "outer_shift": In(2),
                "start": In(1),
                "is_done": Out(1, init=1),
                "has_slices": Out(1),
                "lines": Out(stream.Signature(line_layout(parameters))),
                "loaded": In(1),
                "slices": Out(stream.Signature(slice_layout(parameters))),
                "blocks": Out(stream.Signature(block_layout(parameters))),
            }
        )
        address, size = parameters.address_bits, parameters.size_bits
        # Addresses: of the matrix in its batch, of the block, of the slice, of the next line.
        self.a_matrix, self.a_block, self.a_slice = Signal(address), Signal(address), Signal(address)
        self.b_matrix, self.b_block, self.b_slice = Signal(address), Signal(address), Signal(address)
        self.d_matrix, self.d_row, self.d_block = Signal(address), Signal(address), Signal(address)
        if parameters.initial:
            self.c_matrix, self.c_row, self.c_block = Signal(address), Signal(address), Signal(address)
        self.at = Signal(address)
        # The remaining size in each dimension, with the current block or slice.
        self.batches, self.m, self.n, self.k = Signal(size), Signal(size), Signal(size), Signal(size)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, command, options = self.parameters, self.command, self.command.options
        depth, rows, columns = parameters.depth, parameters.block_rows, parameters.block_columns
        line = self.lines.payload

        # Sizes of this block and this slice, cut at the edges.
        m_here, n_here, k_here = Signal(range(rows + 1)), Signal(range(columns + 1)), Signal(range(depth + 1))
        m.d.comb += [
            m_here.eq(Mux(self.m > rows, rows, self.m)),
            n_here.eq(Mux(self.n > columns, columns, self.n)),
            k_here.eq(Mux(self.k > depth, depth, self.k)),
        ]
        is_last_k, is_last_n, is_last_m = self.k <= depth, self.n <= columns, self.m <= rows
        is_last_batch, is_empty = self.batches == 1, command.k == 0

        # Halves of block RAM: handed to the reader, loaded, computed.
        first_k = Signal()
        asked, ready = Signal(range(3)), Signal(range(3))  # slices asked for and not computed; of these, loaded ones
        asks, frees, loads = Signal(), Signal(), Signal()
        half = Signal()
        m.d.comb += frees.eq(self.slices.valid & self.slices.ready)
        m.d.sync += [asked.eq(asked + asks - frees), ready.eq(ready + loads - frees)]

        # The facts about the slices in the two halves.
        facts = [Signal(slice_layout(parameters), name=f"slice_{number}", reset_less=True) for number in range(2)]
        computes = Signal()  # the half that is computed
        m.d.sync += computes.eq(computes ^ frees)
        m.d.comb += [
            self.has_slices.eq(asked != 0),
            self.slices.valid.eq(ready != 0),
            self.slices.payload.eq(Mux(computes, facts[1], facts[0])),
        ]
        now = Signal(slice_layout(parameters))
        m.d.comb += [
            now.last_k.eq(Mux(is_empty, 0, k_here - 1)),
            # The slices after one of C continue its sums.
            now.first.eq(first_k & (options.initial == Initial.NONE if parameters.initial else 1)),
            now.last.eq(is_last_k),
            now.is_empty.eq(is_empty),
            now.last_tile_row.eq((m_here - 1) >> _bits(parameters.rows)),
            now.last_tile_column.eq((n_here - 1) >> _bits(parameters.columns)),
        ]

        count = Signal.like(line.index)  # lines of this operand before this one
        a_lines, b_lines = Signal.like(line.count), Signal.like(line.count)
        m.d.comb += [
            a_lines.eq(Mux(options.a_transposed, k_here, m_here)),
            b_lines.eq(Mux(options.b_transposed, n_here, k_here)),
            self.blocks.payload.address.eq(self.d_block),
            self.blocks.payload.rows.eq(m_here),
            self.blocks.payload.columns.eq(n_here),
            line.address.eq(self.at),
            line.index.eq(count),
            line.half.eq(half),
        ]
        a_shift, b_shift = Mux(options.a_float32, 2, 1), Mux(options.b_float32, 2, 1)
        ends_lines, needs_lines, c_is_wide = Signal(), Signal(), Signal()
        m.d.comb += c_is_wide.eq(options.level != 2)

        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += [
                        self.is_done.eq(0),
                        self.batches.eq(command.batches),
                        self.a_matrix.eq(Cat(command.a_address, command.a_address_high)),
                        self.b_matrix.eq(Cat(command.b_address, command.b_address_high)),
                        self.d_matrix.eq(Cat(command.d_address, command.d_address_high)),
                    ]
                    if parameters.initial:
                        m.d.sync += self.c_matrix.eq(Cat(command.c_address, command.c_address_high))
                    m.next = "MATRIX"
            with m.State("MATRIX"):
                m.d.sync += [self.m.eq(command.m), self.a_block.eq(self.a_matrix), self.d_row.eq(self.d_matrix)]
                if parameters.initial:
                    m.d.sync += self.c_row.eq(self.c_matrix)
                m.next = "ROW"
            with m.State("ROW"):
                m.d.sync += [self.n.eq(command.n), self.b_block.eq(self.b_matrix), self.d_block.eq(self.d_row)]
                if parameters.initial:
                    m.d.sync += self.c_block.eq(self.c_row)
                m.next = "BLOCK"
            with m.State("BLOCK"):
                m.d.comb += self.blocks.valid.eq(1)
                m.d.sync += [
                    self.k.eq(command.k),
                    self.a_slice.eq(self.a_block),
                    self.b_slice.eq(self.b_block),
                    first_k.eq(1),
                ]
                with m.If(self.blocks.ready):
                    m.next = "SLICE"
                    if parameters.initial:
                        with m.If(options.initial != Initial.NONE):
                            m.next = "INITIAL"
            if parameters.initial:
                initial = Signal(slice_layout(parameters))
                m.d.comb += [
                    initial.last_k.eq(parameters.rows - 1),
                    initial.last_tile_row.eq(now.last_tile_row),
                    initial.last_tile_column.eq(now.last_tile_column),
                    initial.is_initial.eq(1),
                ]
                with m.State("INITIAL"):
                    m.d.sync += [self.at.eq(self.c_block), count.eq(0)]
                    with m.If(asked != len(facts)):
                        m.d.comb += [asks.eq(1), needs_lines.eq(1)]
                        for number, each in enumerate(facts):
                            with m.If(half == number):
                                m.d.sync += each.eq(initial)
                        m.next = "C"
                with m.State("C"):
                    is_row, ends_row = options.initial == Initial.ROW, Signal()
                    m.d.comb += [
                        self.lines.valid.eq(1),
                        line.is_b.eq(1),
                        line.is_c.eq(1),
                        line.is_across.eq(1),
                        line.count.eq(n_here),
                        line.is_float32.eq(c_is_wide),
                        # Lower halves at even places, upper halves at odd ones.
                        ends_row.eq(count[0] | ~c_is_wide),
                        ends_lines.eq(ends_row & ((count >> 1) == Mux(is_row, 0, m_here - 1))),
                        line.ends.eq(ends_lines),
                    ]
                    with m.If(self.lines.ready):
                        m.d.sync += count.eq(count + Mux(c_is_wide, 1, 2))
                        with m.If(ends_row):
                            m.d.sync += self.at.eq(self.at + command.c_row_stride)
                        with m.If(ends_lines):
                            m.next = "STEP"
                            with m.If(~is_empty):
                                m.d.sync += half.eq(~half)
                                m.next = "SLICE"
            with m.State("SLICE"):
                m.d.sync += [self.at.eq(self.a_slice), count.eq(0)]
                with m.If(asked != len(facts)):
                    m.d.comb += asks.eq(1)
                    for number, each in enumerate(facts):
                        with m.If(half == number):
                            m.d.sync += each.eq(now)
                    m.next = "A"
                    with m.If(is_empty):
                        m.next = "STEP"
            with m.State("A"):
                m.d.comb += [
                    self.lines.valid.eq(1),
                    line.is_across.eq(options.a_transposed),
                    line.count.eq(Mux(options.a_transposed, m_here, k_here)),
                    line.is_float32.eq(options.a_float32),
                    ends_lines.eq(count == a_lines - 1),
                ]
                with m.If(self.lines.ready):
                    m.d.sync += [self.at.eq(self.at + command.a_row_stride), count.eq(count + 1)]
                    with m.If(ends_lines):
                        m.d.sync += [self.at.eq(self.b_slice), count.eq(0)]
                        m.next = "B"
            with m.State("B"):
                m.d.comb += [
                    self.lines.valid.eq(1),
                    line.is_b.eq(1),
                    line.is_across.eq(~options.b_transposed),
                    line.count.eq(Mux(options.b_transposed, k_here, n_here)),
                    line.is_float32.eq(options.b_float32),
                    ends_lines.eq(count == b_lines - 1),
                    line.ends.eq(ends_lines),
                ]
                with m.If(self.lines.ready):
                    m.d.sync += [self.at.eq(self.at + command.b_row_stride), count.eq(count + 1)]
                    with m.If(ends_lines):
                        m.next = "STEP"
            with m.State("STEP"):
                m.d.sync += [half.eq(~half), first_k.eq(0)]
                with m.If(~is_last_k):
                    m.d.sync += [
                        self.k.eq(self.k - depth),
                        self.a_slice.eq(
                            self.a_slice
                            + Mux(options.a_transposed, command.a_row_stride << _bits(depth), depth << a_shift)
                        ),
                        self.b_slice.eq(
                            self.b_slice
                            + Mux(options.b_transposed, depth << b_shift, command.b_row_stride << _bits(depth))
                        ),
                    ]
                    m.next = "SLICE"
                with m.Elif(~is_last_n):
                    m.d.sync += [
                        self.n.eq(self.n - columns),
                        self.b_block.eq(
                            self.b_block
                            + Mux(options.b_transposed, command.b_row_stride << _bits(columns), columns << b_shift)
                        ),
                        self.d_block.eq(self.d_block + (columns << self.outer_shift)),
                    ]
                    if parameters.initial:
                        m.d.sync += self.c_block.eq(self.c_block + (columns << Mux(c_is_wide, 2, 1)))
                    m.next = "BLOCK"
                with m.Elif(~is_last_m):
                    m.d.sync += [
                        self.m.eq(self.m - rows),
                        self.a_block.eq(
                            self.a_block
                            + Mux(options.a_transposed, rows << a_shift, command.a_row_stride << _bits(rows))
                        ),
                        self.d_row.eq(self.d_row + (command.d_row_stride << _bits(rows))),
                    ]
                    if parameters.initial:
                        with m.If(options.initial == Initial.MATRIX):
                            m.d.sync += self.c_row.eq(self.c_row + (command.c_row_stride << _bits(rows)))
                    m.next = "ROW"
                with m.Elif(~is_last_batch):
                    m.d.sync += [
                        self.batches.eq(self.batches - 1),
                        self.a_matrix.eq(self.a_matrix + command.a_batch_stride),
                        self.b_matrix.eq(self.b_matrix + command.b_batch_stride),
                        self.d_matrix.eq(self.d_matrix + command.d_batch_stride),
                    ]
                    if parameters.initial:
                        m.d.sync += self.c_matrix.eq(self.c_matrix + command.c_batch_stride)
                    m.next = "MATRIX"
                with m.Else():
                    m.d.sync += self.is_done.eq(1)
                    m.next = "IDLE"
        m.d.comb += loads.eq(self.loaded | (asks & is_empty & ~needs_lines))
        return m
