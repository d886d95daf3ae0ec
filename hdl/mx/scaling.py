"""The scale of a block, and a value over its scale: combinational."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import named
from hdl.float_shape import FloatShape, FloatView
from hdl.mx.plan import LARGEST_SCALE, NAN_SCALE, SCALE_BIAS, BlockPlan

__all__ = ["Divide", "Scale", "largest_of"]


def largest_of(m: Module, name: str, numbers: Sequence[Value]) -> Value:
    """Return the largest of some unsigned numbers, by a tree of comparisons."""
    level = 0
    while len(numbers) > 1:
        pairs = [tuple(numbers[at : at + 2]) for at in range(0, len(numbers), 2)]
        numbers = [
            named(m, f"{name}_{level}_{at}", Mux(pair[0] > pair[1], *pair)) if len(pair) == 2 else pair[0]
            for at, pair in enumerate(pairs)
        ]
        level += 1
    return numbers[0]


class Scale(wiring.Component):
    """Find the scale of a block from its largest exponent field. Combinational.

    The scale is the block's largest power of two, divided by the largest one of the element format, and clamped to the
    scale's range. A field of all ones, from an infinity or a NaN, makes the scale NaN.

    Parameters
    ----------
    plan : BlockPlan

    Ports
    -----
    largest : unsigned(wide.exponent_bits), in
        0 if all values are 0.
    o : plan.scaling_layout, out
    """

    def __init__(self, plan: BlockPlan) -> None:
        self.plan = plan
        super().__init__({"largest": In(plan.wide.exponent_bits), "o": Out(plan.scaling_layout)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, o = self.plan, self.o
        code = named(m, "unlimited", self.largest - plan.field_of_scale_0)
        is_zero = ~self.largest.any()
        limited = Mux((code < 0) | is_zero, 0, Mux(code > LARGEST_SCALE, LARGEST_SCALE, code))
        m.d.comb += o.scale.eq(Mux(self.largest.all(), NAN_SCALE, limited))
        # The exponent of a wide field minus the scale's, as a field of the scaled format.
        m.d.comb += o.offset.eq(o.scale - (SCALE_BIAS - plan.wide.bias + plan.scaled.bias))
        return m


class Divide(wiring.Component):
    """Divide a value by the scale of its block: subtract exponents. Combinational.

    A value too small for the scaled format becomes its smallest number, so that it stays different from 0. If the scale
    is NaN, every value becomes +0.

    Parameters
    ----------
    plan : BlockPlan

    Ports
    -----
    code : unsigned(wide.width), in
    scaling : plan.scaling_layout, in
        Scaling of the block.
    o : unsigned(scaled.width), out
    """

    def __init__(self, plan: BlockPlan) -> None:
        self.plan = plan
        super().__init__({"code": In(plan.wide.width), "scaling": In(plan.scaling_layout), "o": Out(plan.scaled.width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scaled = self.plan.scaled
        view = FloatView(FloatShape(self.plan.wide), self.code)
        is_zero = ~view.exponent_field.any()
        difference = named(m, "difference", view.exponent_field - self.scaling.offset.as_signed())
        is_small = is_zero | difference[-1] | ~difference.any()
        normal = Cat(view.fraction, difference[: scaled.exponent_bits])
        code = Cat(Mux(is_small, ~is_zero, normal)[: scaled.width - 1], view.sign)
        m.d.comb += self.o.eq(Mux(self.scaling.scale == NAN_SCALE, 0, code))
        return m
