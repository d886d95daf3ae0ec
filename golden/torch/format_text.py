"""Formats as text: what an operator of PyTorch takes must be of PyTorch's own few types."""

from __future__ import annotations

from functools import lru_cache

from golden.formats import FORMATS, FloatFormat, format_named

__all__ = ["format_of", "text_of"]


def text_of(fmt: FloatFormat) -> str:
    """Return the name of a known format, else the name, the three numbers and which codes are special."""
    if fmt in FORMATS:
        return fmt.name
    return f"{fmt.name} {fmt.exponent_bits} {fmt.fraction_bits} {fmt.bias} {fmt.specials}"


@lru_cache(maxsize=256)
def format_of(text: str) -> FloatFormat:
    """Return the format of a text that `text_of` made."""
    name, *numbers = text.rsplit(" ", 4)
    if not numbers:
        return format_named(name)
    exponent_bits, fraction_bits, bias = map(int, numbers[:3])
    return FloatFormat(name, exponent_bits, fraction_bits, bias, numbers[3])
