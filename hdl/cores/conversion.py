"""Conversion between two formats: shift into the destination's range in two steps, round.

Rounding to nearest between two formats with infinities takes the shortest datapath; this module is its last stage. All
other conversions, and modes chosen at run time, share the datapath that begins in `hdl.cores.conversion_align`.
"""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from golden.rounding import Rounding
from hdl.cores.conversion_align import Align, Unpack
from hdl.cores.conversion_finish import FinishConversion
from hdl.cores.conversion_left import CoarseShiftLeft, FineShiftLeft
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.conversion_right import CoarseShiftRight, FineShiftRight
from hdl.cores.conversion_words import rounding_layout
from hdl.cores.result import pack, result_layout
from hdl.cores.rounding import increment, too_large
from hdl.cores.words import named

__all__ = ["ConversionRound", "Convert", "conversion_cores"]


def conversion_cores(plan: ConversionPlan) -> tuple[wiring.Component, wiring.Component, wiring.Component]:
    """Return the combinational cores of a conversion: two for the shift into the range, and one for the rounding.

    The input of the first is ``code``. Output ``o`` of each core is input ``i`` of the next; the last returns a
    `result_layout` and also takes ``controls`` if the plan has any.
    """
    if not plan.is_plain:
        return Unpack(plan), Align(plan), FinishConversion(plan)
    source, destination = plan.source, plan.destination
    rounder = ConversionRound(source, destination, with_flags=plan.with_flags)
    if source.bias > destination.bias:
        return FineShiftRight(source, destination), CoarseShiftRight(source, destination), rounder
    return CoarseShiftLeft(source, destination), FineShiftLeft(source, destination), rounder


class ConversionRound(wiring.Component):
    """Round to nearest, ties to even, and determine the flags. Combinational.

    A single addition does all of it. Its terms are two words, one of which is 0, and the exponent field of a result
    that is too large. ``more``, the increment of `hdl.cores.rounding` for a round bit of 1, is added at the round bit,
    which then carries::

        [ exponent_field | fraction | round_bit ]
      + [   too large    | fraction |   more    ]

    The carry turns the largest subnormal into the smallest normal, a full fraction into the next binade and the largest
    finite value into infinity. Only a NaN is selected after the addition. It is a constant, which costs nothing if a
    register with a synchronous reset follows.

    Parameters
    ----------
    source, destination : FloatFormat
    with_flags : bool
        Whether flags are computed; they are 0 otherwise.

    Ports
    -----
    i : rounding_layout(destination), in
    o : result_layout(destination.width), out
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat, *, with_flags: bool = True) -> None:
        self.source, self.destination, self.with_flags = source, destination, with_flags
        super().__init__({"i": In(rounding_layout(destination)), "o": Out(result_layout(destination.width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        is_nan = named(m, "is_nan", i.is_special & (i.is_filled | i.sticky[0]))
        destination, mode = self.destination, Rounding.NEAREST_EVEN
        round_bit = named(m, "round_bit", i.unshifted[0] | i.shifted[0])
        lowest = i.unshifted[1] | i.shifted[1]
        more = named(m, "more", increment(mode, round_bit=1, sticky=i.sticky.any(), lowest=lowest, sign=i.sign))
        high_field = too_large(destination, mode, i.sign) >> destination.fraction_bits
        high = Cat(i.is_high if high_field >> place & 1 else C(0, 1) for place in range(destination.exponent_bits))
        one = Cat(round_bit, i.unshifted[1:])
        other = Cat(more, i.shifted[1:], high)
        is_exact = destination.holds(self.source)
        magnitude = (one | other if is_exact else one + other)[1 : destination.width]
        m.d.comb += o.bits.eq(pack(destination, sign=i.sign, magnitude=magnitude, is_infinite=C(0, 1), is_nan=is_nan))
        if not self.with_flags:
            return m
        m.d.comb += o.flags.invalid.eq(is_nan & ~i.is_quiet)
        if not is_exact:
            inexact = named(m, "inexact", i.is_too_large | i.is_lost | (~i.is_special & (round_bit | i.sticky.any())))
            m.d.comb += [
                o.flags.overflow.eq(i.is_too_large | (i.is_largest & i.all_ones)),
                o.flags.underflow.eq(i.is_subnormal & inexact & ~(i.is_nearly_normal & i.all_ones)),
                o.flags.inexact.eq(inexact),
            ]
        return m


class Convert(wiring.Component):
    """Convert a code of `source` into a code of `destination`, with flags. Combinational.

    Parameters
    ----------
    source, destination : FloatFormat
    **options
        As `hdl.cores.conversion_plan.ConversionPlan` takes them.

    Ports
    -----
    code : unsigned(source.width), in
    controls : struct, in
        The plan's ``controls``; absent if it has none.
    o : result_layout(destination.width), out
        Fields ``bits`` and ``flags``.
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat, **options: Any) -> None:
        self.plan = plan = ConversionPlan(source, destination, **options)
        controls = {"controls": In(plan.controls)} if plan.controls.size else {}
        super().__init__({"code": In(source.width), **controls, "o": Out(result_layout(destination.width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first_shift, m.submodules.second_shift, m.submodules.round = conversion_cores(self.plan)
        first, second, rounder = m.submodules.first_shift, m.submodules.second_shift, m.submodules.round
        m.d.comb += [first.code.eq(self.code), second.i.eq(first.o), rounder.i.eq(second.o), self.o.eq(rounder.o)]
        if self.plan.controls.size:
            m.d.comb += rounder.controls.eq(self.controls)
        return m
