"""Special results of a step, NaN and infinity, and its flags. They are decided in parallel and override the number."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

from hdl.cores.bundle import Bundle
from hdl.cores.result import flags_layout, pack
from hdl.cores.step_formats import StepFormats
from hdl.cores.swamping import is_swamped
from hdl.cores.words import choose, named

__all__ = ["align_result", "decide_class", "finish", "pack_result"]


def decide_class(product: Bundle, accumulator: Bundle) -> Bundle:
    """Decide whether the result is a NaN or an infinity because an addend is one.

    Parameters
    ----------
    product, accumulator : Bundle
        ``sign``, ``is_infinite``, ``is_nan``, ``invalid``.

    Returns
    -------
    Bundle
        ``is_nan``, which overrides ``is_infinite`` (with ``infinite_sign``), and ``invalid``.
    """
    # A stored NaN may look infinite as well.
    both_infinite = product.is_infinite & accumulator.is_infinite & ~product.is_nan & ~accumulator.is_nan
    opposite_infinities = both_infinite & (product.sign ^ accumulator.sign)
    return Bundle(
        is_nan=product.is_nan | accumulator.is_nan | opposite_infinities,
        invalid=product.invalid | accumulator.invalid | opposite_infinities,
        is_infinite=product.is_infinite | accumulator.is_infinite,
        infinite_sign=Mux(product.is_infinite, product.sign, accumulator.sign),
    )


def finish(m: Module, formats: StepFormats, index: Value, rounded: Bundle, *, with_flags: bool = True) -> Bundle:
    """Determine class and flags once the rounded number is known.

    A carry out of rounding produces the infinity by itself; an exponent that was too large before rounding does not.

    Parameters
    ----------
    rounded : Bundle
        The result of `hdl.cores.fused_step.add_product`.

    Returns
    -------
    Bundle
        ``is_infinite``, ``is_nan``, which overrides it, and ``flags``; also ``swamped``, if the addends were watched.
    """
    # The largest exponent field is even, the field of an infinity is odd.
    carried = rounded.is_largest & rounded.field[0]
    outcome = rounded.outcome
    is_number = ~(outcome.is_nan | outcome.is_infinite)
    overflow = named(m, "overflow", is_number & (rounded.too_large | carried))
    # Beyond the largest finite value, an infinity or, in some modes, that value.
    is_beyond = overflow if formats.is_nearest_even else overflow | (is_number & rounded.to_largest)
    # Tininess after rounding: with an unbounded exponent the result would have one more bit, the round bit. It reaches
    # the smallest normal only if its bits are all ones and the bit after them rounds it up.
    inexact = rounded.inexact
    if formats.flushes:
        tiny = rounded.is_subnormal & rounded.has_ones
        inexact = inexact | tiny
    else:
        tiny = rounded.is_subnormal & ~(rounded.field[0] & rounded.following)
    flags = Signal(flags_layout(), name="step_flags")
    if with_flags:
        m.d.comb += [
            flags.inexact.eq(is_number & (inexact | is_beyond)),
            flags.underflow.eq(is_number & tiny & inexact),
            flags.overflow.eq(is_beyond),
            flags.invalid.eq(outcome.invalid),
        ]
    finished = Bundle(
        is_infinite=named(m, "is_infinite", outcome.is_infinite | overflow),
        is_nan=outcome.is_nan,
        flags=flags,
    )
    if "watched" not in vars(rounded):
        return finished
    return finished.but(swamped=named(m, "swamped", is_number & is_swamped(formats, index, rounded)))


def align_result(formats: StepFormats, index: Value, number: Any) -> Bundle:
    """Return ``sign`` and ``magnitude`` of a number, the result of `hdl.cores.fused_step.add_product`.

    The magnitude is 0 where another result overrides it: the reset of its register clears it, without a LUT.
    """
    fraction_bits = formats.accumulator_precision - 1
    fraction = number.fraction
    if formats.flushes:  # a zero, whose fraction is undefined
        fraction = fraction & ~number.is_subnormal.replicate(fraction_bits)
    magnitudes = [
        Cat(fraction[fraction_bits - fmt.fraction_bits :], number.field[: fmt.exponent_bits])
        for fmt in formats.accumulators
    ]
    is_overridden = number.is_special | number.too_large
    return Bundle(sign=number.sign, magnitude=Mux(is_overridden, 0, choose(index, magnitudes)))


def pack_result(formats: StepFormats, index: Value, aligned: Any, number_class: Any) -> Value:
    """Return the code of a result of `align_result` and its class, in the low bits."""
    special = {"is_infinite": number_class.is_infinite, "is_nan": number_class.is_nan}
    codes = [pack(fmt, sign=aligned.sign, magnitude=C(0, fmt.width - 1), **special) for fmt in formats.accumulators]
    return choose(index, codes) | aligned.magnitude
