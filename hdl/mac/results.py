"""The queue of results: the pipeline never stops, because no product enters for whose result there is no place."""

from __future__ import annotations

from amaranth import Elaboratable, Module, Signal
from amaranth.lib.fifo import SyncFIFO

from hdl.cores.round import flags_layout
from hdl.mac.operation import operation_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, result_beat_layout

__all__ = ["ResultQueue"]


class ResultQueue(Elaboratable):
    """Hold results until they are taken, and places for those that are on their way.

    Parameters
    ----------
    parameters : MacParameters

    Attributes
    ----------
    reserve : in
        A product that gives a result has been issued.
    has_room : out
        A further one may be.
    operation, code, flags : operation_layout, unsigned, flags_layout, in
        What stands behind the last rank, and its result.
    o, o_valid, o_ready : result_beat_layout, out; out; in
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        self.reserve, self.has_room = Signal(), Signal()
        self.operation = Signal(operation_layout(parameters))
        self.code, self.flags = Signal(parameters.formats.accumulator_width), Signal(flags_layout())
        self.o, self.o_valid, self.o_ready = Signal(result_beat_layout(parameters)), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        places = self.parameters.results
        m.submodules.queue = queue = SyncFIFO(width=len(self.o.as_value()), depth=places)
        result = Signal.like(self.o)
        is_refused = self.operation.error != Error.NONE
        with m.If(~is_refused):
            m.d.comb += result.result.eq(self.code)
            if self.parameters.flags:
                m.d.comb += result.flags.eq(self.flags)
        is_result = self.operation.writes & self.operation.last & ~self.operation.promote
        m.d.comb += [
            result.error.eq(self.operation.error),
            result.register.eq(self.operation.register),
            queue.w_data.eq(result),
            queue.w_en.eq(is_refused | is_result),
            self.o.eq(queue.r_data),
            self.o_valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o_ready),
        ]
        reserved = Signal(range(places + 1))
        taken = self.o_valid & self.o_ready
        m.d.sync += reserved.eq(reserved + self.reserve - taken)
        # A power of two: the top bit says that all places are taken.
        m.d.comb += self.has_room.eq(~reserved[-1])
        return m
