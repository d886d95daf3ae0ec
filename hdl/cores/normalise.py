"""Bringing the leading one of a sum to the top, as far as the smallest exponent allows."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.accumulate import sum_layout
from hdl.cores.round import normal_layout
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import leading_zero_count, shift_left

__all__ = ["CountLeadingZeros", "Normalise", "counted_layout", "step_normal_layout"]


def counted_layout(formats: StepFormats) -> data.StructLayout:
    """Return a sum and by how many places to shift it left; ``exponent`` is already that of the shifted sum."""
    return data.StructLayout(
        {
            "magnitude": formats.window_width + 1,
            "distance": formats.distance_width,
            "sign": 1,
            "exponent": formats.exponent_width,
            "is_nan": 1,
            "invalid": 1,
            "is_infinite": 1,
        }
    )


def step_normal_layout(formats: StepFormats) -> data.StructLayout:
    """Return what the rounder takes after a step."""
    return normal_layout(formats.window_width + 1, formats.exponent_width)


class CountLeadingZeros(wiring.Component):
    """Count the leading zeros of the sum, at most as many as its exponent is above 1. Combinational.

    An exponent of 1 is the smallest: a sum that still has leading zeros there is subnormal (or zero) and is rounded
    where it stands, so that no shift to the right is ever needed.

    Ports
    -----
    i : sum_layout(formats), in
    o : counted_layout(formats), out
    """

    def __init__(self, formats: StepFormats) -> None:
        self.formats = formats
        super().__init__({"i": In(sum_layout(formats)), "o": Out(counted_layout(formats))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        count = leading_zero_count(m, i.magnitude)
        room = Signal.like(i.exponent)
        m.d.comb += [
            room.eq(i.exponent - 1),
            o.distance.eq(Mux(count > room, room, count)),
            o.exponent.eq(i.exponent - o.distance),
            o.magnitude.eq(i.magnitude),
            o.sign.eq(i.sign),
            o.is_nan.eq(i.is_nan),
            o.invalid.eq(i.invalid),
            o.is_infinite.eq(i.is_infinite),
        ]
        return m


class Normalise(wiring.Component):
    """Shift the sum left. Combinational.

    ::

        magnitude    [ 0 0 0 1 x x x x x x x x x S ]    distance 3
        significand  [ 1 x x x x x x x x x S 0 0 0 ]

    Ports
    -----
    i : counted_layout(formats), in
    o : step_normal_layout(formats), out
    """

    def __init__(self, formats: StepFormats) -> None:
        self.formats = formats
        super().__init__({"i": In(counted_layout(formats)), "o": Out(step_normal_layout(formats))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        m.d.comb += [
            o.significand.eq(shift_left(m, i.magnitude, i.distance)),
            o.exponent.eq(i.exponent),
            o.sign.eq(i.sign),
            o.is_nan.eq(i.is_nan),
            o.invalid.eq(i.invalid),
            o.is_infinite.eq(i.is_infinite),
        ]
        return m
