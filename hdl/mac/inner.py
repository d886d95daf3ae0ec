"""The inner format of a unit's reductions (NUMERICS section 8): its default and its allowed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from golden.formats import FloatFormat
from golden.reduction import default_inner
from hdl.cores.specials import check_accumulated
from hdl.definitions import Definition, Format

__all__ = ["OPERAND", "Inner"]

#: The value of ``inner`` for steps in the operand format itself.
OPERAND: Final = "operand"


@dataclass(frozen=True)
class Inner(Definition):
    """The format that operands are widened to; checked after the operands.

    The checked value is that format, `OPERAND` if narrow operands stay as they are, or None if nothing needs widening.
    """

    type_name = 'FloatFormat or "operand", optional'

    widest: int

    @property
    def allowed(self) -> str:
        return (
            f"a format of {self.widest} bits at most that holds every operand, or operand: each operand format itself"
        )

    def check(self, name: str, value: Any, given: Any) -> FloatFormat | str | None:
        default = next((default_inner(fmt) for fmt in given.operands if default_inner(fmt) != fmt), None)
        inner = default if value is None else value
        if isinstance(inner, str) and inner == OPERAND:
            return OPERAND if default else None
        if inner is None:
            return None
        if not isinstance(inner, FloatFormat):
            raise TypeError(f"{name}: got {value!r}, must be a golden.FloatFormat or {OPERAND!r}")
        check_accumulated(inner, name)
        if inner.width > self.widest or not inner.has_one:
            raise ValueError(f"{name}: got {inner}, must be {self.allowed}, and hold 1.0: promotions multiply by it")
        for fmt in given.operands:
            if not inner.holds(fmt):
                default_of = "" if value is not None else ", the default for operands of 8 bits and fewer"
                raise ValueError(f"{name}: got {inner}{default_of}, must hold every value of the operand format {fmt}")
        return inner

    def default_text(self, default: Any) -> str:
        return "cbfloat16 for operand formats of 8 bits and fewer, else operand"

    def parse(self, name: str, text: str) -> FloatFormat | str:
        if text.strip() == OPERAND:
            return OPERAND
        try:
            return Format(self.meaning).parse(name, text)
        except ValueError as error:
            raise ValueError(f"{error}, or {OPERAND}") from None
