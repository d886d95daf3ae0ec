"""The facts about products that the other proofs assume, for small numbers: only here does a solver multiply."""

from __future__ import annotations

from typing import Any

from amaranth import C, Module, Mux, Signal
from amaranth.lib.wiring import In

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import command_layout
from lab.proofs.along_engine.matrices import EXACT, Bounds, Matrix, Place

__all__ = ["Arithmetic"]

#: Bits of the sizes, and of the strides and addresses.
_SIZE, _WORD = 2, 3


class Arithmetic(Bounds):
    """A place that goes through a matrix at will, and a multiplication.

    Ports
    -----
    command : in
        Describes the matrix while `begins` is 1.
    begins : in
    rows, columns, batches : in
        How far the place moves on; how many rows and columns the claim about it covers.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters.of(size_bits=4)
        steps = {"rows": 2, "columns": 2, "batches": 1}
        super().__init__(
            {"command": In(command_layout()), "begins": In(1), **{name: In(width) for name, width in steps.items()}}
        )

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        held, kept = Signal(command_layout()), {}
        end = Signal(EXACT)
        matrix = Matrix(held, end, "a")
        place = Place(self.parameters, matrix, "place")
        widths = dict.fromkeys(("m", "k", "batches"), _SIZE)
        widths |= dict.fromkeys(("a_address", "a_row_stride", "a_batch_stride"), _WORD)
        for name, width in widths.items():
            kept[name] = Signal(width, name=name)
            m.d.comb += held[name].eq(kept[name])
            with m.If(self.begins):
                m.d.sync += kept[name].eq(self.command[name])
        options = Signal(2)
        m.d.comb += [held.options.a_transposed.eq(options[0]), held.options.a_float32.eq(options[1])]
        with m.If(self.begins):
            m.d.sync += options.eq(self.command.options.as_value()[:2])
        m.d.comb += end.eq(
            matrix.address + (held.batches - 1)[:_SIZE] * matrix.batch_stride
            + (matrix.rows - 1)[:_SIZE] * matrix.row_stride + matrix.in_bytes(matrix.columns)
        )  # fmt: skip
        is_new = Signal(init=1)
        m.d.sync += is_new.eq(self.begins)
        with m.If(is_new):
            m.d.sync += place.begin()
        with m.Else():
            m.d.sync += place.becomes(place, rows=self.rows, columns=self.columns)
            with m.If(self.batches):
                m.d.sync += place.becomes(place, rows=self.rows, columns=self.columns, batches=1)
        indices = (place.batch, place.row, place.column)
        small = [held.batches != 0, *(index < 1 << _SIZE for index in indices)]
        factor, moved, left = Signal(_SIZE), Signal(_SIZE + _WORD), Signal(_SIZE + _WORD)
        m.d.sync += [factor.eq(factor >> 1), moved.eq(moved << 1), left.eq(left - Mux(factor[0], moved, 0))]
        conditions = [
            ("exact", is_new | place.is_exact()),
            ("rest of a multiplication", left == (factor * moved)[: len(left)]),
        ]
        claims = [
            ("inside", is_new | place.is_inside(self.rows, self.columns)),
            ("nothing is left", (factor != 0) | (left == C(0, len(left)))),
        ]
        return small, conditions, claims
