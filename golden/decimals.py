"""Exact values in decimal, and tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

from golden.exact import Class, Value

__all__ = ["EXACT_DIGITS", "decimal_text", "table", "value_text"]

#: Significant digits up to which a value is written exactly.
EXACT_DIGITS = 17


def decimal_text(number: Fraction, digits: int = EXACT_DIGITS) -> str:
    """Write a number in decimal: exactly if `digits` digits do, otherwise with a leading ~ and rounded to them."""
    wide = Context(prec=1200, Emin=-(10**6), Emax=10**6)
    quotient = wide.divide(Decimal(number.numerator), Decimal(number.denominator))
    short = Context(prec=digits, Emin=-(10**6), Emax=10**6).plus(quotient).normalize()
    mark = "" if Fraction(short) == number else "~"
    return mark + (f"{short:f}" if -6 <= short.adjusted() < EXACT_DIGITS else f"{short:e}")


def value_text(value: Value, digits: int = EXACT_DIGITS) -> str:
    """Write any datum: a number in decimal, an infinity, or which NaN it is."""
    if value.is_nan:
        return value.kind.value
    if value.kind is Class.INFINITE or value.is_zero:
        return "-" * value.sign + ("0" if value.is_zero else "inf")
    return decimal_text(value.as_fraction(), digits)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells, the first one the heads, as lines of aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
