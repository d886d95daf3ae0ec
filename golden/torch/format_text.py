"""Formats and rounding modes as text: what an operator of PyTorch takes must be of PyTorch's own few types."""

from __future__ import annotations

from functools import lru_cache

from golden.formats import FORMATS, FloatFormat, format_named
from golden.rounding import NEAREST, ReductionRounding

__all__ = ["MODES", "format_of", "rounding_of", "text_of"]

#: Separates a format from the modes that are not to nearest even.
MODES = "; "


def text_of(fmt: FloatFormat, rounding: ReductionRounding = NEAREST) -> str:
    """Return the name of a known format, else the name, the three numbers and which codes are special; then modes."""
    if not rounding.is_nearest_even:
        modes = rounding.rounding, rounding.out_rounding, rounding.seed, rounding.call, rounding.random_bits
        return text_of(fmt) + MODES + " ".join(map(str, modes))
    if fmt in FORMATS:
        return fmt.name
    return f"{fmt.name} {fmt.exponent_bits} {fmt.fraction_bits} {fmt.bias} {fmt.specials}"


def format_of(text: str) -> FloatFormat:
    """Return the format of a text that `text_of` made."""
    return _format_of(text.partition(MODES)[0])


def rounding_of(text: str) -> ReductionRounding:
    """Return the modes of a text that `text_of` made."""
    modes = text.partition(MODES)[2]
    if not modes:
        return NEAREST
    steps, last, *numbers = modes.split()
    return ReductionRounding.of(steps, last, *map(int, numbers))


@lru_cache(maxsize=256)
def _format_of(text: str) -> FloatFormat:
    name, *numbers = text.rsplit(" ", 4)
    if not numbers:
        return format_named(name)
    exponent_bits, fraction_bits, bias = map(int, numbers[:3])
    return FloatFormat(name, exponent_bits, fraction_bits, bias, numbers[3])
