"""The queue of results: the pipeline never stops, because no product enters for whose result there is no place."""

from __future__ import annotations

from amaranth import Cat, Elaboratable, Module, Signal
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO

from hdl.cores.result import flags_layout
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
        self.code = Signal(parameters.formats.accumulator_width)
        self.flags = Signal(flags_layout().size if parameters.flags else 0)
        self.o, self.o_valid, self.o_ready = Signal(result_beat_layout(parameters)), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, places = self.parameters, self.parameters.results
        operation, flags = self.operation, self.flags
        if "pack" in parameters.ranks:
            operation, flags = Signal.like(operation), Signal.like(flags, reset_less=True)
            m.d.sync += [operation.eq(self.operation), flags.eq(self.flags)]
        entry = Signal(
            data.StructLayout(
                {
                    "result": parameters.formats.accumulator_width,
                    "flags": len(self.flags),
                    "error": Error,
                    "register": parameters.register_width,
                }
            )
        )
        m.submodules.queue = queue = SyncFIFO(width=len(entry.as_value()), depth=places)
        is_result = operation.writes & operation.last & ~operation.promote
        m.d.comb += [
            entry.result.eq(self.code),
            entry.flags.eq(flags),
            entry.error.eq(operation.error),
            entry.register.eq(operation.register),
            queue.w_data.eq(entry),
            queue.w_en.eq((operation.error != Error.NONE) | is_result),
        ]

        first = Signal.like(entry)
        m.d.comb += [
            first.eq(queue.r_data),
            self.o.error.eq(first.error),
            self.o.register.eq(first.register),
            self.o_valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o_ready),
        ]
        with m.If(first.error == Error.NONE):
            m.d.comb += self.o.result.eq(first.result)
            if parameters.flags:
                m.d.comb += self.o.flags.eq(first.flags)
        # A product is counted one cycle after its issue, because there is no time to do it in the same. Two counters of
        # the places left beyond two, and beyond one, because their signs need no comparison.
        reserving, taking = Signal(), Signal()
        beyond_two = Signal(range(-2, places - 1), init=places - 2)
        beyond_one = Signal(range(-1, places), init=places - 1)
        change = Cat(taking ^ reserving, reserving & ~taking).as_signed()
        m.d.sync += [
            reserving.eq(self.reserve),
            taking.eq(self.o_valid & self.o_ready),
            beyond_two.eq(beyond_two + change),
            beyond_one.eq(beyond_one + change),
        ]
        m.d.comb += self.has_room.eq(~beyond_two[-1] | (~beyond_one[-1] & ~reserving))
        return m
