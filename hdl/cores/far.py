"""The far path: any sum, and the difference of addends two places or more apart.

The smaller addend is shifted into its place; the result moves by one place at most.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, Value, signed

from hdl.cores.bundle import Bundle
from hdl.cores.carries import add_or_subtract
from hdl.cores.operand import GROUP
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import named

__all__ = ["add_far", "align_by_groups", "align_within", "compare_exponents", "exponent_difference"]


def exponent_difference(m: Module, product: Bundle, accumulator: Bundle) -> Value:
    """Return the exponent of the normalised product minus the accumulator's, as two's complement.

    Parameters
    ----------
    product : Bundle
        The result of `hdl.cores.fused_step.multiply_operands`: not normalised yet.
    accumulator : Bundle
    """
    span = max(len(product.exponent), len(accumulator.exponent) + 1) + 1
    # A product below 2 has an exponent one smaller, which is subtracted as a borrow from below the lowest place.
    difference = Signal(signed(span + 1), name="exponent_difference")
    top = product.significand[-1]
    m.d.comb += difference.eq(Cat(top, product.exponent).as_signed() - Cat(C(1, 1), accumulator.exponent))
    return difference[1:]


def compare_exponents(difference: Value) -> Bundle:
    """Return which addend is the lower one, and how far.

    Parameters
    ----------
    difference : Value
        The result of `exponent_difference`.

    Returns
    -------
    Bundle
        ``product_is_lower``: its exponent is smaller; ``distance``: number of places between the leading bits, less one
        if the product is the lower addend (which saves a second adder to negate the difference).
    """
    lower = difference[-1]
    return Bundle(product_is_lower=lower, distance=difference[:-1] ^ lower.replicate(len(difference) - 1))


def align_within(m: Module, formats: StepFormats, product: Bundle, accumulator: Bundle, compared: Bundle) -> Bundle:
    """Sort the addends by exponent, and shift the lower one right by up to three places.

    ::

        upper  [ u u u u u u u u 0 0 0 0 0 ]
        lower  [ l l l l l l l l 0 0 0 0 0 ]    an accumulator, or
        lower  [ 0 l l l l l l l l 0 0 0 0 ]    a product, one place lower from the start

    Returns
    -------
    Bundle
        ``upper`` and ``lower``, of `far_width` bits; ``sticky``, the OR of the bits that fell out; ``groups``, the
        remaining shift of the lower one in groups of four places. All ones shift the whole addend out, also for a
        distance that is too large for them.
    """
    width = formats.far_width

    def at(significand: Value, place: int) -> Value:
        return Cat(C(0, width - place - len(significand)), significand)

    swap = compared.product_is_lower
    upper = named(m, "far_upper", Mux(swap, at(accumulator.significand, 0), at(product.significand, 0)))
    lower = named(m, "far_lower", Mux(swap, at(product.significand, 1), at(accumulator.significand, 0)))
    one, two = compared.distance[0], compared.distance[1]
    by_one = named(m, "far_by_1", Mux(one, lower[1:], lower))
    by_two = named(m, "far_by_2", Mux(two, by_one[2:], by_one))
    group_bits = ((width + GROUP - 1) // GROUP).bit_length()
    is_too_large = compared.distance[2 + group_bits :].any()
    return Bundle(
        upper=upper,
        lower=by_two,
        sticky=(one & lower[0]) | (two & by_one[:2].any()),
        groups=compared.distance[2:][:group_bits] | is_too_large.replicate(group_bits),
    )


def align_by_groups(m: Module, far: Bundle) -> Bundle:
    """Shift the lower addend right by groups of four places, with a sticky bit.

    ::

        upper  [ u u u u u u u u u u u u | 0 ]
        lower  [ 0 0 0 0 0 0 0 l l l l l | S ]    S: whether a one fell out

    S is computed in parallel with the shift: for each group, whether it is zero and whether the distance reaches it.

    Returns
    -------
    Bundle
        ``upper`` and ``lower``; ``whole``: no one fell out, in two parts, which the addition joins.
    """
    width = len(far.upper)
    groups = [far.lower[start : start + GROUP] for start in range(0, width, GROUP)]
    lost = [far.sticky, *(group.any() & (far.groups > number) for number, group in enumerate(groups))]
    half = len(lost) // 2
    word = far.lower
    for bit in range(len(far.groups)):
        step = GROUP << bit
        word = named(m, f"far_by_{step}", Mux(far.groups[bit], word[step:] if step < width else C(0, width), word))
    return Bundle(
        upper=far.upper,
        lower=Cat(word, C(0, width))[:width],
        whole=Cat(~Cat(*lost[:half]).any(), ~Cat(*lost[half:]).any()),
    )


def add_far(m: Module, far: Bundle, kind: str) -> Value:
    """Add or subtract the lower addend; the lowest place of the result is the one of the sticky bit.

    The bit above the leading bits of the addends is a carry, or the sign of a difference.

    Parameters
    ----------
    far : Bundle
        The result of `align_by_groups`, ``subtract``, and ``add``, its inverse.
    kind : str
        One of `hdl.cores.multiplier.MULTIPLIERS`.
    """
    return add_or_subtract(
        m, "far_sum", Cat(far.upper, 0), far.lower, whole=far.whole, subtract=far.subtract, add=far.add, kind=kind
    )
