"""Parts shared by both kinds of conversion: the fields before rounding, and expressions on exponent fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data

from golden.formats import FloatFormat
from hdl.cores.words import named, select_width

__all__ = ["add_constant", "at_least", "between", "overflow_field", "pick", "position_of_first", "rounding_layout"]

#: Up to this many bits, a sum with a constant is a table: a carry chain takes more cells and more time.
_TABLE_BITS = 2


def rounding_layout(destination: FloatFormat) -> data.StructLayout:
    """Return the fields between the shift and `ConversionRound`.

    The code before rounding, with the round bit below it, is a sum with at most one nonzero term::

        unshifted   [ exponent_field | fraction | round_bit ]    already normal in the destination
        shifted     [       0        | fraction | round_bit ]    a subnormal
        is_high     [ 1 1 .. 1 1 1 1 | 0 0 .. 0 |     0     ]    too large, an infinity or a NaN

    The sticky bit is the OR of ``sticky``. With ``is_special``, and ``sticky[0]`` or ``is_filled``, the number is NaN.

    The others serve only the flags. ``is_lost``: the number is inexact regardless of round and sticky bits.
    ``all_ones``: all bits from the highest fraction bit to the round bit are 1. Rounding then makes a number with the
    largest exponent (``is_largest``) overflow. With ``is_nearly_normal`` it makes a subnormal (``is_subnormal``) normal
    even with an unbounded exponent. ``is_quiet`` is the top fraction bit of the source.
    """
    return data.StructLayout(
        {
            "unshifted": destination.width,
            "shifted": destination.precision,
            "is_high": 1,
            "sign": 1,
            "sticky": 3,
            "is_special": 1,
            "is_filled": 1,
            "is_lost": 1,
            "all_ones": 1,
            "is_too_large": 1,
            "is_largest": 1,
            "is_subnormal": 1,
            "is_nearly_normal": 1,
            "is_quiet": 1,
        }
    )


def overflow_field(source: FloatFormat, destination: FloatFormat) -> int:
    """Return the smallest exponent field of the source whose normal numbers are too large for the destination."""
    return destination.max_finite_field + 1 - destination.bias + source.bias


def at_least(word: Value, least: int) -> Value:
    """Return ``word >= least`` as a tree of gates instead of a carry chain."""
    if least <= 0:
        return C(1, 1)
    if least >> len(word):
        return C(0, 1)
    reached: Value = C(1, 1)
    for place in range(len(word)):
        reached = word[place] & reached if least >> place & 1 else word[place] | reached
    return reached


def between(word: Value, first: int, end: int) -> Value:
    """Return whether a word is in ``range(first, end)``: one gate over four comparisons of half a word each.

    ::

        upper half    | the first's | between | the end's |
        from_first    |      1      |    1    |     0     |
        to_end        |      0      |    1    |     1     |
    """
    first, end = max(0, first), min(end, 1 << len(word))
    middle = (len(word) + 1) // 2
    low, high = word[:middle], word[middle:]
    first_high, first_low = divmod(first, 1 << middle)
    end_high, end_low = divmod(end, 1 << middle)
    if first >= end:
        return C(0, 1)
    if first_high == end_high:
        return (high == first_high) & at_least(low, first_low) & ~at_least(low, end_low)
    from_first = at_least(high, first_high) & ~at_least(high, end_high)
    to_end = at_least(high, first_high + 1) & ~at_least(high, end_high + 1)
    return Mux(from_first, to_end | at_least(low, first_low), to_end & ~at_least(low, end_low))


def add_constant(word: Value, constant: int, width: int) -> Value:
    """Add modulo ``2**width``; bits below the constant's lowest one pass unchanged.

    Biases are usually ``2**n - 1``, so their differences end in many zeros::

        word      [ e e e e e e e e ]
        constant  [ 1 0 1 0 0 0 0 0 ]
        result    [ + + + e e e e e ]
    """
    word, constant = word[:width], constant % (1 << width)
    if not constant:
        return Cat(word, C(0, width))[:width]
    zeros = (constant & -constant).bit_length() - 1
    low, high, addend = Cat(word, C(0, zeros))[:zeros], word[zeros:], constant >> zeros
    if len(high) > _TABLE_BITS:
        total = Cat(high + addend, C(0, width))
    else:
        total = pick(high, [C((value + addend) % (1 << width - zeros), width) for value in range(1 << len(high))])
    return Cat(low, total)[:width]


def pick(index: Value, options: Sequence[Any]) -> Value:
    """Return the option that `index` selects, by a tree of multiplexers; an index out of range selects any option."""
    if len(options) == 1:
        return Value.cast(options[0])
    half = 1 << (len(index) - 1)
    if len(options) <= half:
        return pick(index[:-1], options)
    return Mux(index[-1], pick(index[:-1], options[half:]), pick(index[:-1], options[:half]))


def position_of_first(m: Module, name: str, reached: Sequence[Value]) -> Value:
    """Return the number of zeros in a row of zeros followed by ones.

    A binary search: the highest bit of the answer is one of the given bits; a multiplexer selects each further one.
    """
    bits: list[Value] = []
    width = select_width(len(reached) + 1)
    padded = [*reached, *[C(1, 1)] * ((1 << width) - 1 - len(reached))]
    for level in reversed(range(width)):
        candidates = padded[(1 << level) - 1 :: 1 << (level + 1)]
        bits.insert(0, named(m, f"{name}_{1 << level}", ~pick(Cat(bits), candidates)))
    return Cat(bits)
