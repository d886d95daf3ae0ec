"""CXXRTL's operations on values of up to 64 bits, written as operations on integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["LONGEST", "Value", "cut", "operation"]

#: Bits of the widest integer.
LONGEST = 64


@dataclass(frozen=True)
class Value:
    """A C++ expression of type uint64_t, with a value below 2^width."""

    text: str
    width: int


def _mask(width: int) -> str:
    return f"{(1 << width) - 1:#x}ull"


def cut(text: str, width: int) -> str:
    """Return the low bits."""
    return text if width == LONGEST else f"({text} & {_mask(width)})"


def _extended(value: Value) -> str:
    """Return all 64 bits of a signed value."""
    by = LONGEST - value.width
    return f"uint64_t(int64_t({value.text} << {by}) >> {by})"


def _signed(value: Value) -> str:
    return f"int64_t({_extended(value)})"


_OPERATORS = {"and": "&", "or": "|", "xor": "^", "add": "+", "sub": "-", "mul": "*"}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}


def _operations() -> dict[str, Callable[..., str]]:
    """Return the C++ of every operation, before it is cut to the width of its result."""
    made: dict[str, Callable[..., str]] = {
        "logic_not": lambda a: f"uint64_t(!{a.text})",
        "logic_and": lambda a, b: f"uint64_t({a.text} && {b.text})",
        "logic_or": lambda a, b: f"uint64_t({a.text} || {b.text})",
        "reduce_and": lambda a: f"uint64_t({a.text} == {_mask(a.width)})",
        "reduce_or": lambda a: f"uint64_t({a.text} != 0)",
        "reduce_bool": lambda a: f"uint64_t({a.text} != 0)",
        "reduce_xor": lambda a: f"uint64_t(__builtin_parityll({a.text}))",
        "reduce_xnor": lambda a: f"uint64_t(!__builtin_parityll({a.text}))",
        "not_u": lambda a: f"~{a.text}",
        "not_s": lambda a: f"~{_extended(a)}",
        "pos_u": lambda a: a.text,
        "pos_s": _extended,
        "neg_u": lambda a: f"(0ull - {a.text})",
        "neg_s": lambda a: f"(0ull - {_extended(a)})",
    }
    for name, sign in _OPERATORS.items():
        made[f"{name}_uu"] = lambda a, b, sign=sign: f"({a.text} {sign} {b.text})"
        made[f"{name}_ss"] = lambda a, b, sign=sign: f"({_extended(a)} {sign} {_extended(b)})"
    for name, sign in _COMPARED.items():
        made[f"{name}_uu"] = lambda a, b, sign=sign: f"uint64_t({a.text} {sign} {b.text})"
        made[f"{name}_ss"] = lambda a, b, sign=sign: f"uint64_t({_signed(a)} {sign} {_signed(b)})"
    return made


_OPERATIONS = _operations()
#: Operations whose result is 0 or 1.
_IS_BIT = re.compile(r"(logic|reduce|eq|ne|lt|gt|le|ge)_")


def operation(name: str, width: int, given: Sequence[Value]) -> Value | None:
    """Return the result of an operation; None if it is not known here.

    Parameters
    ----------
    name : str
        CXXRTL's.
    width : int
        Of the result, at most `LONGEST`.
    given : sequence of Value
    """
    make = _OPERATIONS.get(name)
    if make is None:
        return None
    text = make(*given)
    return Value(text if _IS_BIT.match(name) else cut(text, width), width)
