"""The line of text that tells the verdict of a round."""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lab.boards.plan import Plan

__all__ = ["VerdictLine"]

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
