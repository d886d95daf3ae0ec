# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The array of lanes for products of matrices."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from amaranth import C, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.result import flags_layout
from hdl.mac.accumulator import Accumulator
from hdl.mac.arrangement import Arrangement, one_lane
from hdl.mac.control import Control
from hdl.mac.issue import Issue
from hdl.mac.lane import Lane
from hdl.mac.ports import Error
from hdl.mac.promotions import ReturningPromotions
from hdl.mac.results import SinglePlaces
from hdl.mac.widen import widened
from hdl.matrix.parameters import MatrixParameters
from hdl.matrix.ports import matrix_beat_layout, matrix_result_layout
from hdl.parameters import built_from, documented

__all__ = ["MatrixMac"]


@documented(MatrixParameters)
class MatrixMac(wiring.Component):
    """Multiply matrices tile by tile, each element bit for bit as `golden.matmul` computes it (NUMERICS section 5).

    Attributes
    ----------
    latency : int
        Cycles from the last beat of a tile to its first row at level 0, if the rows of no other tile are in the way.
    accumulate_latency : int
        Cycles until the same tile can take its next beat.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    port_notes = {"chunk": "products of a lane in a chunk; 0: one chunk of any length"}

    @built_from(MatrixParameters)
    def __init__(self, parameters: MatrixParameters) -> None:
        self.latency, self.accumulate_latency = parameters.latency + 1, parameters.accumulate_latency
        super().__init__(
            {
                "i": In(stream.Signature(matrix_beat_layout(parameters))),
                "o": Out(stream.Signature(matrix_result_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
            }
        )

    @cached_property
    def core(self):
        return replace(self.parameters.core, registers=2 * self.parameters.registers)

    @cached_property
    def control(self) -> Control:
        parameters, columns = self.core, self.columns
        one = one_lane(parameters)
        lanes = parameters.lanes
        answer = data.StructLayout(
            {
                "result": data.ArrayLayout(parameters.formats.accumulator_width, lanes),
                "flags": data.ArrayLayout(flags_layout(), lanes),
                "error": Error,
                "register": parameters.register_width,
            }
        )
        arrangement = Arrangement(
            lanes=lanes,
            beat=matrix_beat_layout(parameters),
            operation=one.operation,
            code=lambda beat, name, lane: beat[name][lane // columns if name == "a" else lane % columns],
        )
        return Control(
            parameters,
            arrangement,
            answer,
            issue=Issue(parameters, arrangement),
            promotions=ReturningPromotions(parameters, arrangement),
            places=SinglePlaces(parameters.results, looks_ahead=True),
        )

    @cached_property
    def lanes(self):
        one = one_lane(self.core)
        return [Accumulator(self.core, one.operation, Lane(self.core)) for _ in range(self.core.lanes)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.control = control = self.control
        i, chunk = widened(m, self.parameters, self.i, self.chunk, matrix_beat_layout(self.parameters.core))
        for name, _ in i.payload.shape():
            if name != "register":
                m.d.comb += control.i.payload[name].eq(i.payload[name])
        m.d.comb += [
            control.i.payload.register.eq(Cat(C(0, 1), i.payload.register)),
            control.i.valid.eq(i.valid),
            i.ready.eq(control.i.ready),
            control.chunk.eq(chunk),
            control.entry.error.eq(control.packed.error),
            control.entry.register.eq(control.packed.register),
        ]
        for number, lane in enumerate(self.lanes):
            m.submodules[f"lane_{number}"] = lane
            m.d.comb += [there.eq(operation) for there, operation in zip(lane.at, control.at)]
            m.d.comb += [
                lane.a.eq(control.a[number]),
                lane.b.eq(control.b[number]),
                lane.issued_flags.eq(control.issued_flags[number]),
                control.promoted[number].eq(lane.promoted),
                control.flags[number].eq(lane.flags),
                control.entry.result[number].eq(lane.code),
                *([control.entry.flags[number].eq(lane.flags)] if self.flags else []),
            ]
        row = Signal(range(self.rows))
        o, first = self.o.payload, control.o.payload
        refused = first.error != Error.NONE
        ends = (row == self.rows - 1) | refused
        m.d.comb += [
            self.o.valid.eq(control.o.valid),
            control.o.ready.eq(self.o.ready & ends),
            o.error.eq(first.error),
            o.register.eq(first.register[1:]),
            o.last_row.eq(ends),
        ]
        if self.rows > 1:
            m.d.comb += o.row.eq(row)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += row.eq(row + 1)
            with m.If(ends):
                m.d.sync += row.eq(0)
        with m.Switch(row):
            for r in range(self.rows):
                with m.Case(r):
                    for c in range(self.columns):
                        with m.If(~refused):
                            m.d.comb += o.result[c].eq(first.result[r * self.columns + c])
                            if self.flags:
                                m.d.comb += o.flags[c].eq(first.flags[r * self.columns + c])
        return m
