"""The signature: one number, made from all results, that shows whether all of them are right."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.crc import catalog
from amaranth.lib.wiring import In, Out

from lab.boards.plan import Plan

__all__ = ["Signature"]


class Signature(wiring.Component):
    """Add up the CRCs of results, as `Plan` describes it.

    Parameters
    ----------
    beat : layout
        Of the unit's result beats.

    Attributes
    ----------
    clear : in
        Start again from 0.
    window : unsigned, in
        Number of the window that the results belong to.
    i : stream of result beats, in
        Not ready in one cycle of four, so that the unit is also stopped now and then.
    taken : out
        A result is being taken.
    value : unsigned(32), out
        The signature of what has been taken.
    settled : out
        No result is still on its way into ``value``.
    """

    def __init__(self, beat: Any) -> None:
        super().__init__(
            {
                "clear": In(1),
                "window": In(Plan.WINDOW_BITS),
                "i": In(stream.Signature(beat)),
                "taken": Out(1),
                "value": Out(32),
                "settled": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = crc = catalog.CRC32_ISO_HDLC(data_width=64).create()
        result = self.i.payload
        cycle, is_folding = Signal(2), Signal()
        register, error = Signal(6), Signal(2)
        m.d.comb += [
            self.i.ready.eq(cycle != 0),
            self.taken.eq(self.i.valid & self.i.ready),
            register.eq(result.register),
            error.eq(result.error),
            crc.data.eq(Cat(result.result, result.flags.as_value(), Const(0, 3), register, error, self.window)),
            crc.valid.eq(self.taken),
            crc.start.eq(1),
            self.settled.eq(~is_folding),
        ]
        m.d.sync += [cycle.eq(cycle + 1), is_folding.eq(self.taken)]
        with m.If(self.clear):
            m.d.sync += self.value.eq(0)
        with m.Elif(is_folding):
            m.d.sync += self.value.eq(self.value + crc.crc)
        return m
