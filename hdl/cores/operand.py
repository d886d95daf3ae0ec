"""From an operand's code to a normalised significand, in three steps; a pipeline may put ranks between them.

Where subnormals are flushed, there is nothing to normalise: the last two steps only classify the operand.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import C, Cat, Module, Mux, Value

from golden.formats import FloatFormat
from hdl.cores.bundle import Bundle
from hdl.cores.specials import is_special_field
from hdl.cores.words import choose, named
from hdl.float_shape import FloatShape, FloatView

__all__ = [
    "GROUP",
    "classify_flushed",
    "first_group",
    "inspect_flushed",
    "inspect_operand",
    "normalise_operand",
    "places_left",
    "split_code",
    "zeros_in_groups",
]

#: Places in a group: the search for the leading one finds the group first, then the place within it.
GROUP = 4


def split_code(m: Module, formats: Sequence[FloatFormat], index: Value, code: Value) -> Bundle:
    """Unpack a code of one of several formats.

    ::

        code      [ s | exponent_field | fraction ]
        fraction                       [ fraction | 0 ]    the top fraction bit of every format at one place

    Returns
    -------
    Bundle
        ``sign``, ``field``, ``fraction`` and ``is_normal``, which is the leading bit of the significand.
    """
    fraction_bits = max(fmt.fraction_bits for fmt in formats)
    views = [FloatView(FloatShape(fmt), code[: fmt.width]) for fmt in formats]
    fractions = [
        Cat(C(0, fraction_bits - fmt.fraction_bits), view.fraction) for fmt, view in zip(formats, views, strict=True)
    ]
    return Bundle(
        sign=choose(index, [view.sign for view in views]),
        field=choose(index, [view.exponent_field for view in views]),
        fraction=choose(index, fractions),
        is_normal=choose(index, [view.exponent_field.any() for view in views]),
    ).named(m)


def zeros_in_groups(word: Value) -> tuple[list[Value], list[Value]]:
    """Return, for each group of four places from the top, whether it is zero, and the zeros above its highest one.

    ::

        [ 0 0 0 0 | 0 0 1 x | x x x x | x x ]    zero: 1 0 ? ?    count: - 2 ? ?
    """
    bits = list(reversed(list(word)))
    groups = [bits[start : start + GROUP] for start in range(0, len(bits), GROUP)]
    zeros, counts = [], []
    for group in groups:
        first, second, third = (group + [C(1, 1)] * 3)[:3]
        zeros.append(~Cat(group).any())
        # 1xxx: 0, 01xx: 1, 001x: 2, 0001: 3
        counts.append(Cat(~first & (second | ~third), ~first & ~second))
    return zeros, counts


def first_group(zeros: Sequence[Value], options: Sequence[Value], otherwise: Value) -> Value:
    """Return the option of the first group that is not zero, or `otherwise` if all are."""
    chosen = otherwise
    for is_zero, option in reversed(list(zip(zeros, options, strict=True))):
        chosen = Mux(is_zero, chosen, option)
    return chosen


def inspect_operand(m: Module, formats: Sequence[FloatFormat], index: Value, operand: Bundle) -> Bundle:
    """Find the leading one, move it up by whole groups of four places, and classify the operand.

    ::

        significand  [ 0 0 0 0 0 1 x x x x ]    in the second group, one zero within
                     [ 0 1 x x x x 0 0 0 0 ]    left by one group

    Parameters
    ----------
    operand : Bundle
        The result of `split_code`, with ``is_infinite`` and ``is_nan``, which override the code.

    Returns
    -------
    Bundle
        ``sign``; ``exponent`` (the field, but 1 for a subnormal); ``significand``, moved by ``skipped`` groups, with
        ``within`` places left to move; ``zeros``: which parts of it are zero, the leading bit last; ``is_ones``
        (exponent field); ``is_quiet``; and ``is_infinite`` and ``is_nan``, unchanged.
    """
    significand = named(m, "significand", Cat(operand.fraction, operand.is_normal))
    zeros, counts = zeros_in_groups(significand)
    groups = len(zeros)
    places = [Cat(C(0, GROUP * group), significand)[: len(significand)] for group in range(groups)]
    numbers = [C(group, (groups - 1).bit_length()) for group in range(groups)]
    return Bundle(
        sign=operand.sign,
        exponent=Cat(operand.field[0] | ~operand.is_normal, operand.field[1:]),
        significand=first_group(zeros[:-1], places[:-1], places[-1]),
        skipped=first_group(zeros[:-1], numbers[:-1], numbers[-1]),
        within=first_group(zeros[:-1], counts[:-1], counts[-1]),
        zeros=Cat(*zeros[1:], ~significand[-min(GROUP, len(significand)) : -1].any(), ~operand.is_normal),
        is_ones=choose(index, [is_special_field(fmt, operand.field) for fmt in formats]),
        is_quiet=operand.fraction[-1],
        is_infinite=operand.is_infinite,
        is_nan=operand.is_nan,
    )


def places_left(significand: Value) -> Value:
    """Return the zeros above the leading one of a significand that `inspect_operand` has moved.

    The same number as its ``within``, unless the significand is zero: then it has no meaning.
    """
    _, (zeros,) = zeros_in_groups(significand[-GROUP:])
    return zeros


def normalise_operand(m: Module, operand: Bundle) -> Bundle:
    """Shift the leading one to the top and determine the class.

    ::

        significand  [ 0 1 x x x x 0 0 0 0 ]    shifted by `inspect_operand`, here by one group
                     [ 1 x x x x 0 0 0 0 0 ]    exponent - 5

    Parameters
    ----------
    operand : Bundle
        The result of `inspect_operand`.

    Returns
    -------
    Bundle
        ``sign``, ``exponent``, ``significand`` (its top bit is 1, or it is zero); and the class: ``is_zero``,
        ``is_infinite``, ``is_nan``, ``is_signalling``.
    """
    width, within = len(operand.significand), operand.within
    by_two = named(m, "by_two", Mux(within[1], Cat(C(0, 2), operand.significand)[:width], operand.significand))
    return Bundle(
        sign=operand.sign,
        exponent=operand.exponent - Cat(within, operand.skipped),
        significand=Mux(within[0], Cat(C(0, 1), by_two)[:width], by_two),
        is_zero=operand.zeros.all(),
        **vars(_special_classes(operand, ~operand.zeros[:-1].all())),
    )


def _special_classes(operand: Bundle, has_fraction: Value) -> Bundle:
    """Return ``is_infinite``, ``is_nan`` and ``is_signalling`` of an operand."""
    looks_special = operand.is_ones & ~operand.is_infinite & ~operand.is_nan
    is_nan = looks_special & has_fraction
    return Bundle(
        is_infinite=operand.is_infinite | (looks_special & ~has_fraction),
        is_nan=operand.is_nan | is_nan,
        is_signalling=is_nan & ~operand.is_quiet,
    )


def inspect_flushed(formats: Sequence[FloatFormat], index: Value, operand: Bundle, are_numbers: Value) -> Bundle:
    """Do as `inspect_operand` where subnormals count as zeros.

    Parameters
    ----------
    are_numbers : Value
        Neither factor is a zero: the significand is 0 otherwise. A product of 0 needs it of one factor alone.

    Returns
    -------
    Bundle
        ``sign``, ``exponent``, ``significand``, ``is_zero``, ``has_fraction``, ``is_ones`` (exponent field),
        ``is_quiet``, ``is_infinite`` and ``is_nan``.
    """
    significand = Cat(operand.fraction, 1)
    return Bundle(
        sign=operand.sign,
        exponent=operand.field,
        significand=significand & are_numbers.replicate(len(significand)),
        is_zero=~operand.is_normal,
        has_fraction=operand.fraction.any(),
        is_ones=choose(index, [is_special_field(fmt, operand.field) for fmt in formats]),
        is_quiet=operand.fraction[-1],
        is_infinite=operand.is_infinite,
        is_nan=operand.is_nan,
    )


def classify_flushed(operand: Bundle) -> Bundle:
    """Do as `normalise_operand` with the result of `inspect_flushed`."""
    return Bundle(
        sign=operand.sign,
        exponent=operand.exponent,
        significand=operand.significand,
        is_zero=operand.is_zero,
        **vars(_special_classes(operand, operand.has_fraction)),
    )
