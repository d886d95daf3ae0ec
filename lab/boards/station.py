"""The design on a board, with its serial line and its lamps: the self-test, or a matrix engine."""

from __future__ import annotations

from typing import Any

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.bridge.system import EngineSystem
from hdl.bridge.uart import UartTransmitter
from lab.boards.plan import Plan
from lab.boards.self_test import PATIENCE, SelfTest

__all__ = ["BAUD", "EngineStation", "Heartbeat", "Station", "VerdictLine"]

#: Bits per second.
BAUD = 115_200


_DIGITS = 8


class VerdictLine(wiring.Component):
    r"""Send ``cbfloat16 MAC signature 1234abcd expected 1234abcd PASS`` (or ``FAIL``) and ``\r\n``, byte by byte.

    Parameters
    ----------
    expected : int
        The signature that is expected.

    Attributes
    ----------
    found : unsigned(32), in
        Signature of the round.
    passed : in
    start : in
        High for one cycle while ``busy`` is low: send the line. Keep ``found`` and ``passed`` until it has been sent.
    busy : out
        From the cycle after ``start`` to the last byte.
    o : stream of unsigned(8), out
    """

    def __init__(self, expected: int) -> None:
        self.expected = expected
        super().__init__(
            {
                "found": In(32),
                "passed": In(1),
                "start": In(1),
                "busy": Out(1),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        digits = [_hexadecimal(self.found.word_select(digit, 4)) for digit in reversed(range(_DIGITS))]
        verdict = [Mux(self.passed, ord(good), ord(bad)) for good, bad in zip("PASS", "FAIL", strict=True)]
        characters = [
            *_text(f"{Plan.OPERAND} MAC signature "),
            *digits,
            *_text(f" expected {self.expected:0{_DIGITS}x} "),
            *verdict,
            *_text("\r\n"),
        ]
        position = Signal(range(len(characters)))
        m.d.comb += [self.o.valid.eq(self.busy), self.o.payload.eq(Array(characters)[position])]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), position.eq(0)]
        with m.Elif(self.busy & self.o.ready):
            m.d.sync += position.eq(position + 1)
            with m.If(position == len(characters) - 1):
                m.d.sync += self.busy.eq(0)
        return m


def _text(characters: str) -> list[Value]:
    return [Const(code, 8) for code in characters.encode("ascii")]


def _hexadecimal(nibble: Value) -> Value:
    return Mux(nibble < 10, Cat(nibble, Const(0b0011, 4)), nibble + (ord("a") - 10))[:8]


class Heartbeat(wiring.Component):
    """Show that there is a clock.

    Parameters
    ----------
    clock : float
        Its frequency in hertz.

    Attributes
    ----------
    o : out
        Changes about every half second.
    """

    def __init__(self, clock: float) -> None:
        self.half_second = round(clock / 2)
        super().__init__({"o": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tick = Signal(range(self.half_second))
        m.d.sync += tick.eq(tick + 1)
        with m.If(tick == self.half_second - 1):
            m.d.sync += [tick.eq(0), self.o.eq(~self.o)]
        return m


class Station(wiring.Component):
    """Run the self-test for ever: send a line of text after every round, and start the next round after the line.

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
        self.lamps = (self.running, self.passed, self.failed, self.heartbeat)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.test, m.submodules.line, m.submodules.uart = test, line, uart = self.test, self.line, self.uart
        wiring.connect(m, line.o, uart.i)
        m.submodules.heart = heart = Heartbeat(self.clock)
        m.d.comb += [
            self.heartbeat.eq(heart.o),
            self.tx.eq(uart.tx),
            test.proceed.eq(~line.busy),
            line.found.eq(test.found),
            line.passed.eq(test.passed),
            line.start.eq(test.done),
            self.running.eq(test.running),
        ]
        with m.If(test.done):
            m.d.sync += [self.passed.eq(test.passed), self.failed.eq(self.failed | ~test.passed)]
        return m


class EngineStation(wiring.Component):
    """A matrix engine with memory and UART bridge for the driver, `hdl.engine.Engine.serial`.

    Parameters
    ----------
    clock : float
        Frequency of the clock in hertz.
    **parameters
        Of `hdl.bridge.system.EngineSystem`.

    Attributes
    ----------
    rx, tx : in, out
        The serial line.
    asked, answers : out
        There is traffic on the line, in either direction.
    interrupt : out
        A result waits, if the driver has enabled this.
    heartbeat : out
    """

    def __init__(self, *, clock: float, **parameters: Any) -> None:
        self.system = EngineSystem(clock=clock, **parameters)
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "asked": Out(1),
                "answers": Out(1),
                "interrupt": Out(1),
                "heartbeat": Out(1),
            }
        )
        self.lamps = (self.asked, self.answers, self.interrupt, self.heartbeat)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.system, m.submodules.heart = system, heart = self.system, Heartbeat(self.system.clock)
        m.d.comb += [
            system.rx.eq(self.rx),
            self.tx.eq(system.tx),
            self.asked.eq(~self.rx),
            self.answers.eq(~system.tx),
            self.interrupt.eq(system.interrupt),
            self.heartbeat.eq(heart.o),
        ]
        return m
