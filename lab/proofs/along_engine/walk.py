# amaranth: UnusedElaboratable=no
# A part is elaborated by hand, so that its state is at hand.
"""The tiler beside the loops of the contract: every line and every block lies within its matrix, each comes once."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import command_layout
from hdl.matrix_engine.registers import Initial
from hdl.matrix_engine.tiler import Tiler
from lab.proofs.along_engine.matrices import Bounds, Matrix, Place, accepted, all_of, ends_layout
from lab.proofs.along_model.record import Condition

__all__ = ["Walk"]


class _Phase(enum.IntEnum):
    """The next duty of the tiler."""

    DONE = 0
    BLOCK = 1
    A = 2
    B = 3
    STEP = 4
    C = 5


class _Operand:
    """The model's places in a matrix.

    Attributes
    ----------
    of_batch, block, slice, line : Place
        The first element of the matrix, of the block, of the slice, of the line.
    row : Place
        For C and D: the first element of the row of blocks.
    """

    def __init__(self, walk: Walk, name: str) -> None:
        self.name, self.matrix = name, Matrix(walk.held, walk.held_ends[name], name)
        self.is_transposed = self.matrix.is_transposed
        self.of_batch, self.row, self.block, self.slice, self.line = (
            Place(walk.parameters, self.matrix, f"{name}_{what}") for what in ("batch", "row", "block", "slice", "line")
        )


class Walk(Bounds):
    """A tiler, and the state of the loops in its docstring.

    Ports
    -----
    command, ends : in
        The next command, and the ends of its matrices; both keep their value while one runs.
    start, lines_ready, blocks_ready, slices_ready, loaded : in
        As of `hdl.matrix_engine.tiler.Tiler`.

    Attributes
    ----------
    held, held_ends
        The command that runs, and the ends of its matrices.
    """

    def __init__(self, parameters: EngineParameters, tiler: type[Tiler] = Tiler) -> None:
        self.parameters, self.tiler = parameters, tiler(parameters)
        self.held, self.held_ends = Signal(command_layout()), Signal(ends_layout())
        inputs = ("start", "lines_ready", "blocks_ready", "slices_ready", "loaded")
        super().__init__(
            {
                "command": In(command_layout()),
                "ends": In(ends_layout()),
                **{name: In(1) for name in inputs},
            }
        )
        size = parameters.size_bits + 1
        self.phase = Signal(_Phase)
        #: Places in the loops: rows and columns of D, products; lines of the operand that were handed on.
        self.i, self.j, self.k, self.line = (Signal(size, name=name) for name in ("i", "j", "k", "line"))
        #: The line of C is the one for the upper halves of float32.
        self.is_upper = Signal()

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        tiler, command = self.tiler, self.held
        m.submodules.tiler = tiler.elaborate(platform)
        self.a, self.b, self.c, self.d = (_Operand(self, name) for name in "abcd")
        with m.If((self.phase == _Phase.DONE) & ~self.start):
            m.d.sync += [command.eq(self.command), self.held_ends.eq(self.ends)]
        m.d.comb += [
            tiler.command.eq(command),
            tiler.outer_shift.eq(Mux(self.d.matrix.is_wide, 2, 1)),
            tiler.start.eq(self.start),
            tiler.lines.ready.eq(self.lines_ready),
            tiler.blocks.ready.eq(self.blocks_ready),
            tiler.slices.ready.eq(self.slices_ready),
            tiler.loaded.eq(self.loaded),
        ]
        p = self.parameters
        self.m_here, self.n_here, self.k_here = (
            _at_most(command[size] - at, most)
            for size, at, most in (("m", self.i, p.block_rows), ("n", self.j, p.block_columns), ("k", self.k, p.depth))
        )
        self._advance(m)
        begins = (self.phase == _Phase.DONE) & self.start
        matrices = {each.name: each.matrix for each in (self.d, self.a, self.b, self.c)}
        is_accepted = all_of(*(value for _, value in accepted(command, matrices, p)))
        legal = [~begins | is_accepted, *self._arithmetic()]
        conditions = [("accepted", (self.phase == _Phase.DONE) | is_accepted), *self._places(), *self._registers()]
        return legal, conditions, [*self._lines(), *self._blocks()]

    def _advance(self, m: Module) -> None:
        """The loops: batches, rows of blocks, blocks, slices, operands, lines."""
        phase, tiler, a, b, c, d = self.phase, self.tiler, self.a, self.b, self.c, self.d
        then = Mux(self.held.k == 0, _Phase.STEP, _Phase.A)
        with m.Switch(phase):
            with m.Case(_Phase.DONE), m.If(self.start):
                m.d.sync += [phase.eq(_Phase.BLOCK), self.i.eq(0), self.j.eq(0), self.k.eq(0)]
                for operand in (a, b, c, d):
                    for place in (operand.of_batch, operand.row, operand.block):
                        m.d.sync += place.begin()
            with m.Case(_Phase.BLOCK), m.If(tiler.blocks.valid & self.blocks_ready):
                m.d.sync += [phase.eq(Mux(c.matrix.is_unused, then, _Phase.C)), self.line.eq(0), self.is_upper.eq(0)]
                m.d.sync += [each for its in (a, b) for each in its.slice.becomes(its.block)]
                m.d.sync += [each for its in (a, c) for each in its.line.becomes(its.block)]
            with m.Case(_Phase.C), m.If(tiler.lines.valid & self.lines_ready):
                m.d.sync += self.is_upper.eq(c.matrix.is_wide & ~self.is_upper)
                with m.If(self.is_upper | ~c.matrix.is_wide):
                    m.d.sync += [self.line.eq(self.line + 1), *c.line.becomes(c.line, rows=1)]
                    with m.If(self.line + 1 == self._lines_of_c()):
                        m.d.sync += [self.line.eq(0), phase.eq(then)]
            with m.Case(_Phase.A, _Phase.B):
                is_a = phase == _Phase.A
                with m.If(tiler.lines.valid & self.lines_ready):
                    m.d.sync += [self.line.eq(self.line + 1), *a.line.becomes(a.line, rows=1)]
                    m.d.sync += b.line.becomes(b.line, rows=1)
                    with m.If(self.line + 1 == Mux(is_a, self._lines_of_a(), self._lines_of_b())):
                        m.d.sync += [self.line.eq(0), *b.line.becomes(b.slice)]
                        m.d.sync += phase.eq(Mux(is_a, _Phase.B, _Phase.STEP))
            with m.Case(_Phase.STEP), m.If(tiler.fsm.ongoing("STEP")):
                self._step(m)

    def _step(self, m: Module) -> None:
        p, command, a, b, c, d = self.parameters, self.held, self.a, self.b, self.c, self.d
        with m.If(self.k + p.depth < command.k):
            m.d.sync += [self.k.eq(self.k + p.depth), self.phase.eq(_Phase.A)]
            for place in (a.slice, a.line):
                m.d.sync += place.becomes_along(a.slice, a.is_transposed, p.depth)
            m.d.sync += b.slice.becomes_along(b.slice, ~b.is_transposed, p.depth)
        with m.Elif(self.j + p.block_columns < command.n):
            m.d.sync += [self.j.eq(self.j + p.block_columns), self.k.eq(0), self.phase.eq(_Phase.BLOCK)]
            m.d.sync += b.block.becomes_along(b.block, b.is_transposed, p.block_columns)
            m.d.sync += [each for its in (c, d) for each in its.block.becomes(its.block, columns=p.block_columns)]
        with m.Elif(self.i + p.block_rows < command.m):
            m.d.sync += [self.i.eq(self.i + p.block_rows), self.j.eq(0), self.k.eq(0), self.phase.eq(_Phase.BLOCK)]
            m.d.sync += [*a.block.becomes_along(a.block, ~a.is_transposed, p.block_rows), *b.block.becomes(b.of_batch)]
            for place in (d.row, d.block):
                m.d.sync += place.becomes(d.row, rows=p.block_rows)
            for place in (c.row, c.block):
                m.d.sync += place.becomes(c.row, rows=Mux(self._has_rows_of_c, p.block_rows, 0))
        with m.Else():
            m.d.sync += [self.i.eq(0), self.j.eq(0), self.k.eq(0)]
            for operand in (a, b, c, d):
                for place in (operand.of_batch, operand.row, operand.block):
                    m.d.sync += place.becomes(operand.of_batch, batches=1)
            is_last = a.of_batch.batch + 1 == command.batches
            m.d.sync += self.phase.eq(Mux(is_last, _Phase.DONE, _Phase.BLOCK))

    def _lines_of_a(self) -> Value:
        return Mux(self.a.matrix.is_transposed, self.k_here, self.m_here)

    def _lines_of_b(self) -> Value:
        return Mux(self.b.matrix.is_transposed, self.n_here, self.k_here)

    def _lines_of_c(self) -> Value:
        return Mux(self._has_rows_of_c, self.m_here, 1)

    @property
    def _has_rows_of_c(self) -> Value:
        """Whether C is a matrix; otherwise it is a row or absent."""
        return Value.cast(self.held.options.initial == Initial.MATRIX)

    def _arithmetic(self) -> Iterator[Value]:
        """Yield the premises that hold if the places are exact; places of an earlier command are not: see `Place`."""
        line, block, phase = self.tiler.lines.payload, self.tiler.blocks.payload, self.phase
        for operand, its in ((self.a, _Phase.A), (self.b, _Phase.B), (self.c, _Phase.C)):
            yield (phase != its) | operand.line.is_inside(C(1, 1), line.count)
        yield (phase != _Phase.BLOCK) | self.d.block.is_inside(block.rows, block.columns)

    def _places(self) -> Iterator[Condition]:
        """Yield the conditions on the places of the model."""
        runs, command, phase = self.phase != _Phase.DONE, self.held, self.phase
        yield "a phase", phase <= _Phase.C
        yield "i", ~runs | (self.i < command.m)
        yield "j", ~runs | (self.j < command.n)
        yield "k", ~runs | (self.k < command.k) | ((self.k == 0) & (command.k == 0))
        yield "first k of a block", (phase != _Phase.BLOCK) | (self.k == 0)
        yield "lines of a slice", (phase != _Phase.STEP) | (self.line == 0)
        a, b, c, d = self.a, self.b, self.c, self.d
        computes = (phase != _Phase.DONE) & (phase != _Phase.BLOCK)
        of_a, of_b, of_c = (phase == _Phase.A), (phase == _Phase.B), (phase == _Phase.C)
        none = C(0, 1)
        row_of_c = Mux(self._has_rows_of_c, self.i, 0)
        yield "c is used", ~of_c | ~c.matrix.is_unused
        yield "upper halves", ~of_c | ~self.is_upper | c.matrix.is_wide
        yield "a and b wait for c", ~of_c | (a.line.is_same(a.slice) & (self.k == 0))
        for what, is_there, place, row, column in (
            ("matrix of a", runs, a.of_batch, none, none),
            ("matrix of b", runs, b.of_batch, none, none),
            ("matrix of c", runs, c.of_batch, none, none),
            ("matrix of d", runs, d.of_batch, none, none),
            ("row of c", runs, c.row, row_of_c, none),
            ("block of c", runs, c.block, row_of_c, self.j),
            ("line of c", of_c, c.line, c.block.row + self.line, c.block.column),
            ("row of d", runs, d.row, self.i, none),
            ("block of d", runs, d.block, self.i, self.j),
            ("block of a", runs, a.block, *_stored(a, self.i, none)),
            ("block of b", runs, b.block, *_stored(b, none, self.j)),
            ("slice of a", computes, a.slice, *_stored(a, self.i, self.k)),
            ("slice of b", computes, b.slice, *_stored(b, self.k, self.j)),
            ("line of a", of_a, a.line, a.slice.row + self.line, a.slice.column),
            ("line of b", of_b, b.line, b.slice.row + self.line, b.slice.column),
        ):
            batch = (place.batch == a.of_batch.batch) & (place.batch < command.batches)
            yield f"indices of {what}", ~is_there | (batch & (place.row == row) & (place.column == column))
        for name, its, lines in (("a", of_a, self._lines_of_a()), ("b", of_b, self._lines_of_b())):
            yield f"lines of {name} to come", ~its | (self.line < lines)
            yield f"products of {name}", ~its | (command.k != 0)
        yield "lines of c to come", ~of_c | (self.line < self._lines_of_c())

    def _registers(self) -> Iterator[Condition]:
        """Yield the contents of the tiler's registers at each place."""
        tiler, command, phase = self.tiler, self.held, self.phase
        a, b, c, d = self.a, self.b, self.c, self.d
        states = ("IDLE", "MATRIX", "ROW", "BLOCK", "INITIAL", "C", "SLICE", "A", "B", "STEP")
        on = {name: tiler.fsm.ongoing(name) for name in states}
        yield "done", (on["IDLE"] == (phase == _Phase.DONE)) & (tiler.is_done == on["IDLE"])
        yield "block", (on["MATRIX"] | on["ROW"] | on["BLOCK"]) == (phase == _Phase.BLOCK)
        yield "lines of c", (on["INITIAL"] | on["C"]) == (phase == _Phase.C)
        yield "lines of a", (on["A"] | (on["SLICE"] & (command.k != 0))) == (phase == _Phase.A)
        yield "lines of b", on["B"] == (phase == _Phase.B)
        yield "step", (on["STEP"] | (on["SLICE"] & (command.k == 0))) == (phase == _Phase.STEP)
        begins, begins_row = on["MATRIX"], on["MATRIX"] | on["ROW"]
        yield (
            "matrix begins",
            ~begins
            | (a.block.is_same(a.of_batch) & c.row.is_same(c.of_batch) & d.row.is_same(d.of_batch) & (self.i == 0)),
        )
        yield (
            "row begins",
            ~begins_row
            | (b.block.is_same(b.of_batch) & c.block.is_same(c.row) & d.block.is_same(d.row) & (self.j == 0)),
        )
        yield "c begins", ~on["INITIAL"] | (c.line.is_same(c.block) & (self.line == 0) & ~self.is_upper)
        slice_begins = on["SLICE"] & (phase == _Phase.A)
        yield "slice begins", ~slice_begins | (a.line.is_same(a.slice) & (self.line == 0))
        in_matrix, in_row = ~(on["IDLE"] | on["MATRIX"]), ~(on["IDLE"] | on["MATRIX"] | on["ROW"])
        in_block = in_row & ~on["BLOCK"]
        yield "left of batches", on["IDLE"] | (tiler.batches == command.batches - a.of_batch.batch)
        yield "left of m", ~in_matrix | (tiler.m == command.m - self.i)
        yield "left of n", ~in_row | (tiler.n == command.n - self.j)
        yield "left of k", ~in_block | (tiler.k == command.k - self.k)
        yield "line", ~(on["A"] | on["B"]) | (tiler.lines.payload.index == self.line)
        yield "line of c", ~on["C"] | (tiler.lines.payload.index == Cat(self.is_upper, self.line))
        for name, is_there, register, place in (
            ("matrix of a", ~on["IDLE"], tiler.a_matrix, a.of_batch),
            ("matrix of b", ~on["IDLE"], tiler.b_matrix, b.of_batch),
            ("matrix of c", ~on["IDLE"], tiler.c_matrix, c.of_batch),
            ("matrix of d", ~on["IDLE"], tiler.d_matrix, d.of_batch),
            ("row of blocks of c", in_matrix, tiler.c_row, c.row),
            ("block of c", in_row, tiler.c_block, c.block),
            ("line of c", on["C"], tiler.at, c.line),
            ("block of a", in_matrix, tiler.a_block, a.block),
            ("block of b", in_row, tiler.b_block, b.block),
            ("row of blocks of d", in_matrix, tiler.d_row, d.row),
            ("block of d", in_row, tiler.d_block, d.block),
            ("slice of a", in_block, tiler.a_slice, a.slice),
            ("slice of b", in_block, tiler.b_slice, b.slice),
            ("line of a", on["A"], tiler.at, a.line),
            ("line of b", on["B"], tiler.at, b.line),
        ):
            yield f"address of {name}", ~is_there | (register == place.address[: len(register)])

    def _lines(self) -> Iterator[Condition]:
        """Yield the claims that a line is the next one of the contract, and lies within its matrix."""
        line, is_there, a, b, c = self.tiler.lines.payload, self.tiler.lines.valid, self.a, self.b, self.c
        yield "line is due", ~is_there | (self.phase == Mux(line.is_c, _Phase.C, Mux(line.is_b, _Phase.B, _Phase.A)))
        yield "line of c is for the panel of b", ~is_there | ~line.is_c | line.is_b
        for operand, its, is_across, count, number in (
            (a, ~line.is_b, a.is_transposed, Mux(a.is_transposed, self.m_here, self.k_here), self.line),
            (b, line.is_b & ~line.is_c, ~b.is_transposed, Mux(b.is_transposed, self.k_here, self.n_here), self.line),
            (c, line.is_c, C(1, 1), self.n_here, Cat(self.is_upper, self.line)),
        ):
            name, matrix, offered = operand.name, operand.matrix, is_there & its
            kind = (line.is_across == is_across) & (line.is_float32 == matrix.is_wide) & (line.index == number)
            yield f"kind of a line of {name}", ~offered | kind
            yield f"elements of a line of {name}", ~offered | (line.count == count)
            yield f"elements within {name}", ~offered | operand.line.is_within(C(1, 1), line.count)
            yield f"address of a line of {name}", ~offered | (line.address == operand.line.address)
            inside = operand.line.ends_before(C(1, 1), line.count, address=line.address)
            yield f"line within {name}", ~offered | inside
        ends_c = (self.is_upper | ~c.matrix.is_wide) & (self.line + 1 == self._lines_of_c())
        ends = Mux(line.is_c, ends_c, line.is_b & (self.line + 1 == self._lines_of_b()))
        yield "line ends the slice", ~is_there | (line.ends == ends)

    def _blocks(self) -> Iterator[Condition]:
        """Yield the claims that a block is the next one of the contract, and lies within D."""
        block, is_there, place = self.tiler.blocks.payload, self.tiler.blocks.valid, self.d.block
        yield "block is due", ~is_there | (self.phase == _Phase.BLOCK)
        yield "size of a block", ~is_there | ((block.rows == self.m_here) & (block.columns == self.n_here))
        yield "elements within d", ~is_there | place.is_within(block.rows, block.columns)
        yield "address of a block", ~is_there | (block.address == place.address)
        yield "block within d", ~is_there | place.ends_before(block.rows, block.columns, address=block.address)


def _stored(operand: _Operand, row: Value, column: Value) -> tuple[Value, Value]:
    """Return row and column as stored."""
    return Mux(operand.is_transposed, column, row), Mux(operand.is_transposed, row, column)


def _at_most(left: Value, most: int) -> Value:
    return Mux(left > most, most, left)
