"""The queue of results, and the places in it that are promised to reductions on their way."""

from __future__ import annotations

from amaranth import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib.fifo import SyncFIFO

from hdl.cores.result import flags_layout
from hdl.mac.parameters import WORD_WIDTH
from hdl.mac.ports import Error
from hdl.vector.operation import vector_operation_layout
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_result_layout

__all__ = ["VectorResultQueue"]


class VectorResultQueue(Elaboratable):
    """Hold results until they are taken, and places for those that are on their way.

    Parameters
    ----------
    parameters : VectorParameters

    Attributes
    ----------
    reserves : unsigned(2), in
        Places for the results of a beat that is issued.
    has_room : out
        There are places for any further beat.
    operation, flags : vector_operation_layout, list of flags_layout, in
        What stands behind the rank ``round``, and the flags of all lanes.
    codes : list of unsigned, in
        Their results: as late as `hdl.mac.lane.Lane` gives them.
    o, o_valid, o_ready : vector_result_layout, out; out; in
    """

    def __init__(self, parameters: VectorParameters) -> None:
        self.parameters = parameters
        self.reserves, self.has_room = Signal(2), Signal()
        self.operation = Signal(vector_operation_layout(parameters))
        lanes = range(parameters.lanes)
        self.codes = [Signal(parameters.of_lane(lane).formats.accumulator_width, name=f"code_{lane}") for lane in lanes]
        self.flags = [Signal(flags_layout(), name=f"flags_{lane}") for lane in lanes]
        self.o, self.o_valid, self.o_ready = Signal(vector_result_layout(parameters)), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, places = self.parameters, self.parameters.results
        operation, flags = self.operation, self.flags
        if "pack" in parameters.ranks:
            operation, *flags = (Signal.like(value) for value in (operation, *flags))
            m.d.sync += [
                operation.eq(self.operation),
                *(late.eq(now) for late, now in zip(flags, self.flags, strict=True)),
            ]
        is_refused = operation.error != Error.NONE
        entry = Signal.like(self.o)
        m.d.comb += [
            entry.error.eq(operation.error),
            # The row of the beat, also where the result comes from the one behind it.
            entry.register.eq(Cat(operation.register[0] & ~operation.is_second, operation.register[1:])),
        ]
        with m.If(~is_refused):
            m.d.comb += entry.part.eq(operation.is_second)
            for even in range(0, parameters.lanes, 2):
                wide, narrow = self.codes[even], self.codes[even + 1]
                m.d.comb += entry.result[even // 2].eq(
                    Cat(wide[:WORD_WIDTH], Mux(operation.wide, wide[WORD_WIDTH:], narrow))
                    if len(wide) > WORD_WIDTH
                    else wide | (narrow << WORD_WIDTH)
                )
                if parameters.flags:
                    m.d.comb += entry.flags[even].eq(flags[even])
                    with m.If(~operation.wide):
                        m.d.comb += entry.flags[even + 1].eq(flags[even + 1])
        m.submodules.queue = queue = SyncFIFO(width=len(entry.as_value()), depth=places)
        m.d.comb += [
            queue.w_data.eq(entry),
            queue.w_en.eq(is_refused | (operation.writes & operation.last & ~operation.promote)),
            self.o.eq(queue.r_data),
            self.o_valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o_ready),
        ]

        reserved = Signal(range(places + 1))
        taken = Signal()
        m.d.sync += [taken.eq(self.o_valid & self.o_ready), reserved.eq(reserved + self.reserves - taken)]
        # A power of two: the top bit says that all places are taken, ones below it that one is left.
        is_full = reserved[-1] | (reserved[:-1].all() if parameters.has_pairs_of_rows else 0)
        m.d.comb += self.has_room.eq(~is_full)
        return m
