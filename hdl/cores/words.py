"""Expressions on words of bits that several cores need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

__all__ = ["choose", "jam", "leading_zero_count", "named", "select_width", "shift_left", "shift_right_sticky"]


def named(m: Module, name: str, value: Value) -> Signal:
    """Give an expression a name, in the Verilog too; used more than once, it would be emitted more than once."""
    signal = Signal(value.shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal


def select_width(count: int) -> int:
    """Return the bits of an index into `count` things: 0 for one thing."""
    return (count - 1).bit_length()


def choose(index: Value, options: Sequence[Any]) -> Value:
    """Return the option that `index` names; an index beyond the last option names the last."""
    chosen = Value.cast(options[-1])
    for number in reversed(range(len(options) - 1)):
        chosen = Mux(index == number, options[number], chosen)
    return chosen


def jam(word: Value, width: int) -> Value:
    """Keep the top `width` bits of a word and OR the lost ones into the lowest kept bit (the sticky bit)."""
    lost = len(word) - width
    if lost <= 0:
        return Cat(C(0, -lost), word)
    return Cat(word[: lost + 1].any(), word[lost + 1 :])


def shift_right_sticky(m: Module, word: Value, distance: Value) -> Value:
    """Shift right, ORing what falls out into the lowest bit; one level of multiplexers for each bit of `distance`.

    ::

        word      [ w w w w w w w w ]
        distance 3
        result    [ 0 0 0 w w w w S ]    S = the last w kept OR the three that fell out
    """
    for level in range(len(distance)):
        step = min(1 << level, len(word) - 1)
        shifted = Cat(word[: step + 1].any(), word[step + 1 :])
        word = named(m, f"shifted_right_{1 << level}", Mux(distance[level], shifted, word))
    return word


def shift_left(m: Module, word: Value, distance: Value) -> Value:
    """Shift left within the width of the word, the largest power of two first."""
    for level in reversed(range(len(distance))):
        step = min(1 << level, len(word))
        shifted = Cat(C(0, step), word[: len(word) - step])
        word = named(m, f"shifted_left_{1 << level}", Mux(distance[level], shifted, word))
    return word


def leading_zero_count(m: Module, word: Value) -> Value:
    """Count the zeros above the highest one, a tree of halves.

    ::

        [ upper half | lower half ]    upper all zeros: 2^(n-1) + count(lower), else count(upper)

    A word of zeros counts as its own width (the tree is padded below with ones to a power of two).
    """
    padding = (1 << select_width(len(word))) - len(word)
    return _count_in_power_of_two(m, Cat(C((1 << padding) - 1, padding), word))


def _count_in_power_of_two(m: Module, word: Value) -> Value:
    """The count has one bit more than a position: its top bit says that the whole word is zero."""
    if len(word) == 1:
        return ~word
    half = len(word) // 2
    upper, lower = _count_in_power_of_two(m, word[half:]), _count_in_power_of_two(m, word[:half])
    upper_is_zero, lower_is_zero = upper[-1], lower[-1]
    position = Mux(upper_is_zero, lower[:-1], upper[:-1])
    count = Cat(position, upper_is_zero & ~lower_is_zero, upper_is_zero & lower_is_zero)
    return named(m, f"leading_zeros_of_{len(word)}", count)
