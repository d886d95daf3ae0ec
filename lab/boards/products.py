"""The source of products: a linear-feedback shift register, shaped so that rare numbers occur."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.crc import Algorithm
from amaranth.lib.wiring import In, Out

from lab.boards.plan import Plan

__all__ = ["Products"]

_FORMAT = Plan.OPERAND


class Products(wiring.Component):
    """Send the products of one window after the other, as `Plan` describes them.

    Parameters
    ----------
    plan : Plan
    beat : layout
        Of the unit's product beats.

    Attributes
    ----------
    begin : in
        High for one cycle: send window number ``window``, which is 0 or follows the one before.
    window : unsigned, in
        Keep it until the window has been sent.
    o : stream of product beats, out
    """

    def __init__(self, plan: Plan, beat: Any) -> None:
        self.plan = plan
        super().__init__({"begin": In(1), "window": In(plan.WINDOW_BITS), "o": Out(stream.Signature(beat))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, levels = self.plan, len(self.plan.LEVELS)
        # A CRC over zeros is nothing but its shift register.
        m.submodules.noise = noise = Algorithm(
            crc_width=32,
            polynomial=plan.POLYNOMIAL,
            initial_crc=plan.SEED,
            reflect_input=False,
            reflect_output=False,
            xor_output=0,
        )(data_width=32).create()

        is_sending = Signal()
        lane, k = Signal(range(plan.lanes)), Signal(range(plan.length))
        level, first_level, next_first_level = (Signal(2) for _ in range(3))
        is_last_lane, is_last_product = lane == plan.lanes - 1, k == plan.length - 1
        m.d.comb += next_first_level.eq(Mux(self.window == 0, 0, _following(first_level, levels)))

        # Registered, so that the unit's paths start at a register here.
        load = is_sending & (~self.o.valid | self.o.ready)
        m.d.comb += [noise.valid.eq(load), noise.start.eq(self.begin & (self.window == 0))]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(load):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.a.eq(self._operand(noise.crc[:16], is_a=True)),
                self.o.payload.b.eq(self._operand(noise.crc[16:], is_a=False)),
                self.o.payload.level.eq(level),
                self.o.payload.register.eq(Cat((level == 2) & self.window[2], lane)),
                self.o.payload.first.eq(k == 0),
                self.o.payload.last.eq(is_last_product),
                lane.eq(Mux(is_last_lane, 0, lane + 1)),
                level.eq(Mux(is_last_lane, first_level, _following(level, levels))),
            ]
            with m.If(is_last_lane):
                m.d.sync += [k.eq(Mux(is_last_product, 0, k + 1)), is_sending.eq(~is_last_product)]
        with m.If(self.begin):
            m.d.sync += [is_sending.eq(1), first_level.eq(next_first_level), level.eq(next_first_level)]
        return m

    def _operand(self, noise: Value, *, is_a: bool) -> Value:
        bits, bias = _FORMAT.fraction_bits, _FORMAT.bias
        fraction, field, sign = noise[:bits], noise[bits : _FORMAT.width - 1], noise[_FORMAT.width - 1]
        kind = self.window[:2]
        top_bits = Const(3 << (bits - 2), bits)
        small = field[:2] if is_a else bias - 8 + field[:3]
        fields = [bias - 8 + field[:4], bias - 1 + field[:1], small, field]
        shaped = Signal(_FORMAT.exponent_bits, name="field_of_a" if is_a else "field_of_b")
        chosen = Mux(kind[1], Mux(kind[0], fields[3], fields[2]), Mux(kind[0], fields[1], fields[0]))
        return Cat(Mux(kind[0], fraction & top_bits, fraction), chosen[: len(shaped)], sign)


def _following(level: Value, levels: int) -> Value:
    return Mux(level == levels - 1, 0, level + 1)
