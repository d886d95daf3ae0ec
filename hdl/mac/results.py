"""The queue of results: the pipeline never stops, because no product enters for whose result there is no place."""

from __future__ import annotations

from amaranth import Elaboratable, Module, Signal
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO

from hdl.cores.outcome import pack_result
from hdl.mac.lane import class_layout, number_layout
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
        number = number_layout(parameters.formats)
        self.number, self.number_class = Signal(number), Signal(class_layout(with_flags=parameters.flags))
        self.o, self.o_valid, self.o_ready = Signal(result_beat_layout(parameters)), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, places = self.parameters, self.parameters.results
        entry = Signal(
            data.StructLayout(
                {
                    "number": self.number.shape(),
                    "number_class": self.number_class.shape(),
                    "accumulator_format": self.operation.accumulator_format.shape(),
                    "error": Error,
                    "register": parameters.register_width,
                }
            )
        )
        m.submodules.queue = queue = SyncFIFO(width=len(entry.as_value()), depth=places)
        is_result = self.operation.writes & self.operation.last & ~self.operation.promote
        m.d.comb += [
            entry.number.eq(self.number),
            entry.number_class.eq(self.number_class),
            entry.accumulator_format.eq(self.operation.accumulator_format),
            entry.error.eq(self.operation.error),
            entry.register.eq(self.operation.register),
            queue.w_data.eq(entry),
            queue.w_en.eq((self.operation.error != Error.NONE) | is_result),
        ]

        # Packing here rather than ahead of the queue shares its time with nothing.
        first = Signal.like(entry)
        m.d.comb += [
            first.eq(queue.r_data),
            self.o.error.eq(first.error),
            self.o.register.eq(first.register),
            self.o_valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o_ready),
        ]
        with m.If(first.error == Error.NONE):
            m.d.comb += self.o.result.eq(
                pack_result(parameters.formats, first.accumulator_format, first.number, first.number_class)
            )
            if parameters.flags:
                m.d.comb += self.o.flags.eq(first.number_class.flags)
        reserved = Signal(range(places + 1))
        taken = Signal()
        m.d.sync += [taken.eq(self.o_valid & self.o_ready), reserved.eq(reserved + self.reserve - taken)]
        # A power of two: the top bit says that all places are taken.
        m.d.comb += self.has_room.eq(~reserved[-1])
        return m
