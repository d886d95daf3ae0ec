"""Expressions on words of bits, shared by several cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

__all__ = ["choose", "is_at_least", "named", "record", "select_width", "shift_left"]


def named(m: Module, name: str, value: Value | int) -> Signal:
    """Name an expression or constant, also in the Verilog, where an unnamed one is repeated for every use."""
    signal = Signal((C(value) if isinstance(value, int) else value).shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal


def select_width(count: int) -> int:
    """Return the width of an index into `count` items: 0 for a single one."""
    return (count - 1).bit_length()


def choose(index: Value, options: Sequence[Any]) -> Value:
    """Return the option that `index` selects; an index out of range selects the last."""
    chosen = Value.cast(options[-1])
    for number in reversed(range(len(options) - 1)):
        chosen = Mux(index == number, options[number], chosen)
    return chosen


def is_at_least(word: Value, least: int) -> Value:
    """Return whether an unsigned word has a value of `least` or more, in gates: a comparison takes a carry chain."""
    found: Value = C(not least >> len(word), 1)
    for place, bit in enumerate(word):
        found = bit & found if least >> place & 1 else bit | found
    return found


def record(layout: data.StructLayout, fields: Mapping[str, Any]) -> Value:
    """Return a record as one word, for a single assignment.

    Separate assignments to the fields of a wide signal slow Icarus Verilog down: on every change of a field it resolves
    all bits of the signal again.

    Parameters
    ----------
    layout : data.StructLayout
    fields : mapping of str to Value
        Values of the layout's widths; missing fields are 0.
    """
    parts = []
    for name, field in layout:
        value = Value.cast(fields.get(name, C(0, field.width)))
        if len(value) != field.width:
            raise ValueError(f"{name}: got {len(value)} bits, must be {field.width}")
        parts.append(value)
    unknown = fields.keys() - {name for name, _ in layout}
    if unknown:
        raise ValueError(f"fields: got {', '.join(sorted(unknown))}, which {layout!r} does not have")
    return Cat(parts)


def shift_left(m: Module, word: Value, distance: Value) -> Value:
    """Shift left within the width of the word, the largest power of two first."""
    for level in reversed(range(len(distance))):
        step = min(1 << level, len(word))
        shifted = Cat(C(0, step), word[: len(word) - step])
        word = named(m, f"shifted_left_{1 << level}", Mux(distance[level], shifted, word))
    return word
