"""The self-test and its outputs: a line of text on a serial port, and four lamps."""

from __future__ import annotations

from typing import Any

from amaranth import Array, C, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lab.boards.plan import Plan
from lab.boards.self_test import PATIENCE, SelfTest

__all__ = ["BAUD", "Station", "UartTransmitter", "VerdictLine"]

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
            # Start bit first, then the data; the stop bit is shifted in behind them.
            m.d.sync += [frame.eq(Cat(C(0, 1), self.i.payload)), left.eq(10)]
        return m


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
