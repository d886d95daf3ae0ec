"""A transmitter for a serial line: 8 data bits, no parity, one stop bit."""

from __future__ import annotations

from amaranth import C, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BAUD", "UartTransmitter"]

#: Bits per second.
BAUD = 115_200


class UartTransmitter(wiring.Component):
    """Send bytes, the least significant bit first.

    Parameters
    ----------
    cycles : int
        Clock cycles of a bit, at least 2.

    Attributes
    ----------
    i : stream of unsigned(8), in
    tx : out
        The line; high at rest.

    Raises
    ------
    ValueError
        If a bit is shorter than 2 cycles.
    """

    def __init__(self, cycles: int) -> None:
        if cycles < 2:
            raise ValueError(f"cycles: got {cycles} for a bit, must be at least 2: the clock is too slow for the line")
        self.cycles = cycles
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        frame, left, timer = Signal(9), Signal(range(11)), Signal(range(self.cycles))
        m.d.comb += self.i.ready.eq((left == 0) & (timer == 0))
        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Elif(left != 0):
            m.d.sync += [
                Cat(self.tx, frame).eq(Cat(frame, 1)),
                left.eq(left - 1),
                timer.eq(self.cycles - 1),
            ]
        with m.Elif(self.i.valid):
            # Start bit first, then the data; what is shifted in behind them is the stop bit.
            m.d.sync += [frame.eq(Cat(C(0, 1), self.i.payload)), left.eq(10)]
        return m
