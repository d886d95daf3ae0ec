"""Additions that choose, mask or invert an operand in the cells of a carry chain.

Synthesis infers a plain adder, and puts a LUT in front of each of its cells.
"""

from __future__ import annotations

from collections.abc import Callable

from amaranth import C, Cat, Instance, Module, Mux, Signal, Value

from hdl.cores.words import named

__all__ = ["add_or_subtract", "subtract_from_chosen"]


def subtract_from_chosen(
    m: Module, name: str, choice: Value, options: tuple[Value, Value], subtrahend: Value, kind: str
) -> Value:
    """Return ``options[choice] - subtrahend``, modulo the width of the options.

    ::

        cell     a: subtrahend    b: options[1]    c: options[0]    d: choice
        sum      a ^ 1 ^ (d ? b : c)

    Parameters
    ----------
    m : Module
    name : str
    choice : Value
    options : tuple of Value
        Of one width.
    subtrahend : Value
        Unsigned, of that width at most.
    kind : str
        One of `hdl.cores.multiplier.MULTIPLIERS`. The generic form is the one that is simulated and proven.
    """
    if_zero, if_one = options
    if kind != "ecp5":
        return named(m, name, (Mux(choice, if_one, if_zero) - subtrahend)[: len(if_one)])
    chosen = _table(lambda a, b, c, d: a ^ 1 ^ (b if d else c))
    return _chain(m, name, chosen, (subtrahend, if_one, if_zero, choice.replicate(len(if_one))), C(1, 1))


def add_or_subtract(
    m: Module, name: str, augend: Value, addend: Value, *, whole: Value, subtract: Value, add: Value, kind: str
) -> Value:
    """Return ``augend`` plus or minus ``addend``, with one more place below: the sticky bit of the addend.

    ::

        cell     a: augend    b: addend      c: subtract    d: 1           lowest cell
        sum      a ^ (b & d) ^ c                                           a: 0    b, d: whole    c: add

    Parameters
    ----------
    m : Module
    name : str
    augend, addend : Value
        Unsigned. The result has the width of `augend`, and the lowest place.
    whole : Value
        Two bits: the sticky bit is 0 if both are 1.
    subtract, add : Value
        One is the inverse of the other.
    kind : str
        As in `subtract_from_chosen`.
    """
    width = len(augend) + 1
    if kind != "ecp5":
        extended = Cat(~whole.all(), addend, C(0, width))[:width]
        return named(m, name, (Cat(C(0, 1), augend) + (extended ^ subtract.replicate(width)) + subtract)[:width])
    inverted = _table(lambda a, b, c, d: a ^ (b & d) ^ c)
    words = (
        Cat(C(0, 1), augend),
        Cat(whole[0], addend),
        Cat(add, subtract.replicate(width - 1)),
        Cat(whole[1], C(-1, width - 1)),
    )
    return _chain(m, name, inverted, words, subtract)


def _table(function: Callable[[int, int, int, int], int]) -> int:
    """Return the content of a LUT of four inputs."""
    return sum(function(*(place >> bit & 1 for bit in range(4))) << place for place in range(16))


def _chain(m: Module, name: str, table: int, words: tuple[Value, ...], carry: Value) -> Signal:
    """Return the sum of a chain of CCU2C, which hold two places each (the model of Project Trellis).

    A place whose table gives 1 passes the carry on. Otherwise its lowest four entries give the carry for ``a`` and
    ``b``.
    """
    width = max(map(len, words))
    total = Signal(width, name=name)
    places = [[Cat(word, C(0, width + 1))[place] for word in words] for place in range(width + 1)]
    for place in range(0, width, 2):
        carry_out = Signal(name=f"{name}_carry_{place}")
        ports = {
            f"i_{port}{half}": bit for half in range(2) for port, bit in zip("ABCD", places[place + half], strict=True)
        }
        outputs = {f"o_S{half}": total[place + half] for half in range(2) if place + half < width}
        m.submodules[f"{name}_{place}"] = Instance(
            "CCU2C",
            **{f"p_INIT{half}": C(table, 16) for half in range(2)},
            **{f"p_INJECT1_{half}": "NO" for half in range(2)},
            i_CIN=carry,
            **ports,
            **outputs,
            o_COUT=carry_out,
        )
        carry = carry_out
    return total
