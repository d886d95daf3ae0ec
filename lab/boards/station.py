"""The self-test with what shows its verdicts: a serial line and four lamps."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from lab.boards.line import VerdictLine
from lab.boards.plan import Plan
from lab.boards.self_test import PATIENCE, SelfTest
from lab.boards.uart import BAUD, UartTransmitter

__all__ = ["Station"]


class Station(wiring.Component):
    """Run the self-test for ever; every round is followed by a line of text, and the next one awaits its end.

    Parameters
    ----------
    expected : int
        The signature that a round must have, 32 bits.
    clock : float
        Frequency of the clock in hertz.
    baud : int
        Bits per second on the serial line.
    plan, unit, patience
        See `SelfTest`.

    Attributes
    ----------
    tx : out
        The serial line.
    running : out
        A round is under way.
    passed : out
        The last round passed; low until one has.
    failed : out
        A round has failed or was given up since power-up.
    heartbeat : out
        Changes about every half second as long as there is a clock.
    """

    def __init__(
        self,
        expected: int,
        *,
        clock: float,
        baud: int = BAUD,
        plan: Plan | None = None,
        unit: Any = None,
        patience: int = PATIENCE,
    ) -> None:
        self.test = SelfTest(expected, plan=plan, unit=unit, patience=patience)
        self.line = VerdictLine(expected)
        self.uart = UartTransmitter(round(clock / baud))
        self.clock = clock
        super().__init__(
            {"tx": Out(1, init=1), "running": Out(1), "passed": Out(1), "failed": Out(1), "heartbeat": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.test, m.submodules.line, m.submodules.uart = test, line, uart = self.test, self.line, self.uart
        wiring.connect(m, line.o, uart.i)
        half_second = round(self.clock / 2)
        tick = Signal(range(half_second))
        m.d.comb += [
            self.tx.eq(uart.tx),
            test.proceed.eq(~line.busy),
            line.found.eq(test.found),
            line.passed.eq(test.passed),
            line.start.eq(test.done),
            self.running.eq(test.running),
        ]
        with m.If(test.done):
            m.d.sync += [self.passed.eq(test.passed), self.failed.eq(self.failed | ~test.passed)]
        m.d.sync += tick.eq(tick + 1)
        with m.If(tick == half_second - 1):
            m.d.sync += [tick.eq(0), self.heartbeat.eq(~self.heartbeat)]
        return m
