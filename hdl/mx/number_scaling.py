"""The scale of a block as a number, and a value over it: the cores of `hdl.mx.number_plan`."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import choose, named
from hdl.float_shape import FloatShape, FloatView
from hdl.mx.number_plan import TENSOR_EXPONENT, NumberPlan, value_of
from hdl.pipeline import rank

__all__ = ["NumberScale", "Quotient"]


class NumberScale(wiring.Component):
    """Find the scale of a block from its largest magnitude.

    The scale is the largest magnitude over the tensor's scale and over the largest element, to nearest even, at most
    the largest number of the scale's format. A NaN makes the scale NaN.

    Parameters
    ----------
    plan : NumberPlan
    has_ranks : bool
        Whether the result comes `ranks` cycles later; combinational otherwise.

    Ports
    -----
    largest : unsigned(wide.width - 1), in
        The largest wide code without its sign.
    tensor_exponent : signed(8), in
    o : plan.scaling_layout, out
    """

    ranks = 3

    def __init__(self, plan: NumberPlan, *, has_ranks: bool = False) -> None:
        self.plan, self._has_ranks = plan, has_ranks
        super().__init__(
            {
                "largest": In(plan.wide.width - 1),
                "tensor_exponent": In(TENSOR_EXPONENT),
                "o": Out(plan.scaling_layout),
            }
        )

    def _rank(self, m: Module, name: str, value: Value) -> Signal:
        """Return a value in the next rank."""
        there = Signal(value.shape(), name=name, reset_less=True)
        m.d[("comb", "sync")[self._has_ranks]] += there.eq(value)
        return there

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, scale = self.plan, self.plan.scale
        field = self.largest[plan.wide.fraction_bits :]
        power = self._rank(m, "power", field - plan.wide.bias - self.tensor_exponent)
        tensor_exponent = self._rank(m, "exponent", self.tensor_exponent)
        largest = self._rank(m, "largest", self.largest)
        field, fraction = largest[plan.wide.fraction_bits :], largest[: plan.wide.fraction_bits]
        place = named(m, "place", Cat(fraction, power).as_signed())
        # Magnitudes below the first normal scale have places of their own; the others are alike in every binade.
        normal, binade = 1 << scale.fraction_bits, 1 << plan.wide.fraction_bits
        least = [plan.least_of_scale(code) for code in range(1, 3 * normal)]
        exponent = least[normal - 1] // binade + 1
        starts = [each - exponent * binade for each in least]
        first_normal = plan.place_of(value_of(scale, normal) * plan.largest_element)
        steps = Cat(fraction >= start for start in starts if 0 < start < binade)

        is_subnormal = self._rank(m, "is_subnormal", place < first_normal)
        subnormal_steps = self._rank(m, "subnormal_steps", Cat(place >= each for each in least[:normal]))
        before = sum(start <= 0 for start in starts)
        steps = self._rank(m, "steps", steps)
        binades = self._rank(m, "binades", (power - exponent + before // normal))
        is_zero, is_special = self._rank(m, "is_zero", ~field.any()), self._rank(m, "is_special", field.all())
        is_nan = self._rank(m, "is_nan", field.all() & fraction.any())
        tensor_exponent = self._rank(m, "its_exponent", tensor_exponent)

        low = named(m, "low", _count(steps, before % normal))
        high = named(m, "high", binades + low[scale.fraction_bits :])
        code = Cat(low[: scale.fraction_bits], high[: scale.exponent_bits])
        is_over = is_special | high[scale.exponent_bits :].any() | (code > scale.max_finite)
        normal_code = Mux(is_over, scale.max_finite, code)
        finite = Mux(is_zero, 0, Mux(is_subnormal & ~is_special, _count(subnormal_steps), normal_code))
        found = Signal(scale.width, name="found")
        m.d.comb += found.eq(Mux(is_nan, scale.nan, finite))
        offset = named(m, "tensor_offset", tensor_exponent + (plan.wide.bias - scale.bias))
        self._normalise(m, self._rank(m, "scale", found), self._rank(m, "offset", offset))
        return m

    def _normalise(self, m: Module, scale: Signal, offset: Signal) -> None:
        """Give the fraction and the exponent of the scale as a normal number."""
        o, fraction_bits = self.o, self.plan.scale.fraction_bits
        view = FloatView(FloatShape(self.plan.scale), scale)
        fraction, shift = Signal(fraction_bits, name="fraction"), Signal(range(fraction_bits + 1), name="shift")
        m.d.comb += fraction.eq(view.fraction)
        with m.If(~view.exponent_field.any()):
            for places in range(1, fraction_bits + 1):
                with m.If(view.fraction[fraction_bits - places :] == 1):
                    m.d.comb += [fraction.eq(view.fraction << places), shift.eq(places - 1)]
        m.d.comb += [o.scale.eq(scale), o.fraction.eq(fraction), o.offset.eq(offset + view.exponent_field - shift)]


def _count(bits: Value, start: int = 0) -> Value:
    """Return how many bits are set, more than `start`, where a set one has only set ones below it.

    Each bit of the result changes with some of the bits: no carry runs through it.
    """
    total, last = [], start + len(bits)
    for place in range(last.bit_length()):
        changes = [bit for number, bit in enumerate(bits, start) if (number ^ number + 1) >> place & 1]
        total.append(Cat(changes).xor() ^ (start >> place & 1))
    return Cat(total)


class Quotient(wiring.Component):
    """Round a value over the scale of its block to an element.

    Parameters
    ----------
    plan : NumberPlan
    has_ranks : bool
        Whether the result comes two cycles later, in which ``moves`` is 1; combinational otherwise.

    Ports
    -----
    code : unsigned(wide.width), in
    scaling : plan.scaling_layout, in
        Scaling of the block.
    moves : unsigned(1), in
        Enables the registers.
    o : unsigned, out
        A bit for each code of a positive element but 0: the magnitude reaches it; and the sign.
    """

    def __init__(self, plan: NumberPlan, *, has_ranks: bool = False) -> None:
        self.plan, self._has_ranks = plan, has_ranks
        super().__init__(
            {
                "code": In(plan.wide.width),
                "scaling": In(plan.scaling_layout),
                "moves": In(1),
                "o": Out(plan.element.max_finite + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, scaling, codes = self.plan, self.scaling, range(1, self.plan.element.max_finite + 1)
        fractions, binade = range(1 << plan.scale.fraction_bits), 1 << plan.wide.fraction_bits
        least = {code: [plan.least_of_element(code, fraction) for fraction in fractions] for code in codes}
        view = FloatView(FloatShape(plan.wide), self.code)
        power = self._rank(m, "power", view.exponent_field - scaling.offset)
        fraction, of_scale = self._rank(m, "fraction", view.fraction), self._rank(m, "of_scale", scaling.fraction)
        is_zero = self._rank(m, "is_zero", ~view.exponent_field.any() | ~scaling.scale.any())
        is_most = self._rank(m, "is_most", view.exponent_field.all() | (scaling.scale == plan.scale.nan))
        # The few binades in which elements begin; below them, none is reached, above them, each.
        lowest, highest = (end(map(end, least.values())) // binade for end in (min, max))
        bits = (highest - lowest).bit_length()
        is_below, is_above = power < lowest, power >= lowest + (1 << bits)
        place = self._rank(m, "place", Cat(fraction, (power - lowest)[:bits]))
        is_none = self._rank(m, "is_none", is_zero | is_below)
        is_every = self._rank(m, "is_every", is_most | (is_above & ~is_zero))
        sign = self._rank(m, "later_sign", self._rank(m, "sign", view.sign))
        reached = []
        for code in codes:
            places = [each - lowest * binade for each in least[code]]
            its_least = self._rank(m, f"least_{code}", choose(of_scale, places))
            reached.append(((place >= its_least) & ~is_none) | is_every)
        m.d.comb += self.o.eq(Cat(*reached, sign))
        return m

    def _rank(self, m: Module, name: str, value: Value) -> Value:
        return rank(m, name, value, self.moves) if self._has_ranks else named(m, name, value)

    @staticmethod
    def element_of(plan: NumberPlan, reached: Value) -> Value:
        """Return the element's code from the output of this core."""
        return Cat(_count(reached[:-1])[: plan.element.width - 1], reached[-1])
