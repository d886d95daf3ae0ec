"""The scale of a block, and a value over its scale, combinational or with registers."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import named
from hdl.float_shape import FloatShape, FloatView
from hdl.mx.plan import LARGEST_SCALE, NAN_SCALE, SCALE_BIAS, SCALE_WIDTH, BlockPlan
from hdl.pipeline import rank

__all__ = ["Divide", "Scale", "largest_of", "levels_of"]


def levels_of(count: int) -> int:
    """Return the levels of the tree of `largest_of` for so many numbers; one number takes a level, too."""
    return max(1, (count - 1).bit_length())


def largest_of(m: Module, name: str, numbers: Sequence[Value], domain: str = "comb") -> Value:
    """Return the largest of some unsigned numbers, by a tree of comparisons, in ``sync`` with a rank for each level."""
    for level in range(levels_of(len(numbers))):
        larger = []
        for at in range(0, len(numbers), 2):
            first, second = numbers[at], numbers[min(at + 1, len(numbers) - 1)]
            larger.append(Signal(len(first), name=f"{name}_{level}_{at // 2}", reset_less=True))
            m.d[domain] += larger[-1].eq(Mux(first > second, first, second))
        numbers = larger
    return numbers[0]


class Scale(wiring.Component):
    """Find the scale of a block from its largest exponent field.

    The scale is the block's largest power of two, divided by the largest one of the element format, and clamped to the
    scale's range. A field of all ones, from an infinity or a NaN, makes the scale NaN.

    Parameters
    ----------
    plan : BlockPlan
    has_ranks : bool
        Whether the result comes `ranks` cycles later; combinational otherwise.

    Ports
    -----
    largest : unsigned(wide.exponent_bits), in
        0 if all values are 0.
    o : plan.scaling_layout, out
    """

    ranks = 1

    def __init__(self, plan: BlockPlan, *, has_ranks: bool = False) -> None:
        self.plan, self._domain = plan, "sync" if has_ranks else "comb"
        super().__init__({"largest": In(plan.wide.exponent_bits), "o": Out(plan.scaling_layout)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, o = self.plan, self.o
        code = named(m, "unlimited", self.largest - plan.field_of_scale_0)
        is_zero = ~self.largest.any()
        limited = Mux((code < 0) | is_zero, 0, Mux(code > LARGEST_SCALE, LARGEST_SCALE, code))
        scale = Signal(SCALE_WIDTH, name="limited", reset_less=True)
        m.d[self._domain] += scale.eq(Mux(self.largest.all(), NAN_SCALE, limited))
        m.d.comb += o.scale.eq(scale)
        # The exponent of a wide field minus the scale's, as a field of the scaled format.
        m.d.comb += o.offset.eq(scale - (SCALE_BIAS - plan.wide.bias + plan.scaled.bias))
        return m


class Divide(wiring.Component):
    """Divide a value by the scale of its block: subtract exponents.

    A value too small for the scaled format becomes its smallest number, so that it stays different from 0. If the scale
    is NaN, every value becomes +0.

    Parameters
    ----------
    plan : BlockPlan
    has_ranks : bool
        Whether the result comes two cycles later, in which ``moves`` is 1; combinational otherwise.

    Ports
    -----
    code : unsigned(wide.width), in
    scaling : plan.scaling_layout, in
        Scaling of the block.
    moves : unsigned(1), in
        Enables the registers.
    o : unsigned(scaled.width), out
    """

    def __init__(self, plan: BlockPlan, *, has_ranks: bool = False) -> None:
        self.plan, self._has_ranks = plan, has_ranks
        super().__init__(
            {
                "code": In(plan.wide.width),
                "scaling": In(plan.scaling_layout),
                "moves": In(1),
                "o": Out(plan.scaled.width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        scaled = self.plan.scaled
        view = FloatView(FloatShape(self.plan.wide), self.code)
        is_zero = self._rank(m, "is_zero", ~view.exponent_field.any())
        difference = self._rank(m, "difference", view.exponent_field - self.scaling.offset.as_signed())
        is_nan = self._rank(m, "is_nan", self.scaling.scale == NAN_SCALE)
        sign, fraction = self._rank(m, "sign", view.sign), self._rank(m, "fraction", view.fraction)
        is_small = is_zero | difference[-1] | ~difference.any()
        normal = Cat(fraction, difference[: scaled.exponent_bits])
        code = Cat(Mux(is_small, ~is_zero, normal)[: scaled.width - 1], sign)
        m.d.comb += self.o.eq(self._rank(m, "scaled", Mux(is_nan, 0, code)))
        return m

    def _rank(self, m: Module, name: str, value: Value) -> Value:
        return rank(m, name, value, self.moves) if self._has_ranks else named(m, name, value)
