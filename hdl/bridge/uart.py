"""Bytes on a serial line: 8 data bits, no parity, 1 stop bit."""

from __future__ import annotations

from amaranth import C, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]


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
            # Start bit first, then the data; the stop bit is shifted in behind them.
            m.d.sync += [frame.eq(Cat(C(0, 1), self.i.payload)), left.eq(10)]
        return m


class UartReceiver(wiring.Component):
    """Receive bytes. One whose stop bit is low is dropped, and so is everything until the line is high again.

    Parameters
    ----------
    cycles : int
        Clock cycles of a bit, at least 4: a bit is sampled in its middle.

    Attributes
    ----------
    rx : in
        The line, high at rest; it may change at any time.
    byte : out
    valid : out
        High for one cycle: a byte has come. Nothing holds the sender back.

    Raises
    ------
    ValueError
        If a bit is shorter than 4 cycles.
    """

    def __init__(self, cycles: int) -> None:
        if cycles < 4:
            raise ValueError(f"cycles: got {cycles} for a bit, must be at least 4: the clock is too slow for the line")
        self.cycles = cycles
        super().__init__({"rx": In(1, init=1), "byte": Out(8), "valid": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line, timer, left = Signal(init=1), Signal(range(self.cycles)), Signal(range(8))
        m.submodules.synchronizer = FFSynchronizer(self.rx, line, init=1)
        m.d.sync += [self.valid.eq(0), timer.eq(timer - 1)]
        with m.FSM():
            with m.State("REST"):
                m.d.sync += [timer.eq(self.cycles // 2 - 1), left.eq(7)]
                with m.If(~line):
                    m.next = "START"
            with m.State("START"):
                with m.If(timer == 0):
                    m.d.sync += timer.eq(self.cycles - 1)
                    m.next = "DATA"
                    with m.If(line):  # too short for a start bit
                        m.next = "REST"
            with m.State("DATA"):
                with m.If(timer == 0):
                    m.d.sync += [timer.eq(self.cycles - 1), self.byte.eq(Cat(self.byte[1:], line)), left.eq(left - 1)]
                    with m.If(left == 0):
                        m.next = "STOP"
            with m.State("STOP"):
                with m.If(timer == 0):
                    m.d.sync += self.valid.eq(line)
                    m.next = "RISE"
            with m.State("RISE"):
                with m.If(line):
                    m.next = "REST"
        return m
