"""Formats and rounding modes as text: what an operator of PyTorch takes must be of PyTorch's own few types."""

from __future__ import annotations

from functools import lru_cache

from golden.accumulator import Accumulator
from golden.formats import FORMATS, FloatFormat, format_named
from golden.presets import accumulators
from golden.reduction import Reduction
from golden.rounding import NEAREST, ReductionRounding

__all__ = ["ACCUMULATOR", "MODES", "accumulator_of", "format_of", "operand_of", "rounding_of", "sums_of", "text_of"]

#: Separates a format from the modes that are not to nearest even.
MODES = "; "
#: Separates a format from a narrower one in which the factors of its products are.
FACTORS = " < "
#: Separates a format from the accumulator of another machine.
ACCUMULATOR = " @ "

#: Accumulators by the names that they have in texts.
_ACCUMULATORS: dict[str, Accumulator] = dict(accumulators)


def text_of(
    fmt: FloatFormat,
    rounding: ReductionRounding = NEAREST,
    operand: FloatFormat | None = None,
    accumulator: Accumulator | None = None,
) -> str:
    """Return the format, that of the factors if it is another, what accumulates, and modes other than to nearest even.

    A format is the name of a known one, else the name, the three numbers and which codes are special.
    """
    if not rounding.is_nearest_even:
        modes = rounding.rounding, rounding.out_rounding, rounding.seed, rounding.call, rounding.random_bits
        return text_of(fmt, NEAREST, operand, accumulator) + MODES + " ".join(map(str, modes))
    if accumulator is not None:
        return text_of(fmt, NEAREST, operand) + ACCUMULATOR + _name_of(accumulator)
    if operand is not None:
        return text_of(fmt) + FACTORS + text_of(operand)
    if fmt in FORMATS:
        return fmt.name
    return f"{fmt.name} {fmt.exponent_bits} {fmt.fraction_bits} {fmt.bias} {fmt.specials}"


@lru_cache(maxsize=256)
def format_of(text: str) -> FloatFormat:
    """Return the format of a text that `text_of` made."""
    return _format_of(_formats(text).partition(FACTORS)[0])


def operand_of(text: str) -> FloatFormat | None:
    """Return the narrower format of the factors, None if they are in that of the results."""
    factors = _formats(text).partition(FACTORS)[2]
    return _format_of(factors) if factors else None


def accumulator_of(text: str) -> Accumulator | None:
    """Return the accumulator of another machine, None where a level says how products are summed."""
    name = text.partition(MODES)[0].partition(ACCUMULATOR)[2]
    return _ACCUMULATORS[name] if name else None


def sums_of(text: str, level: int, chunk: int | None) -> tuple[FloatFormat, Reduction | Accumulator]:
    """Return the format of the factors, and the accumulator of another machine, or else the reduction at a level."""
    return _sums_of(text.partition(MODES)[0], level, chunk)


@lru_cache(maxsize=256)
def _sums_of(text: str, level: int, chunk: int | None) -> tuple[FloatFormat, Reduction | Accumulator]:
    half = format_of(text)
    operand = operand_of(text) or half
    return operand, accumulator_of(text) or Reduction.for_level(level, operand, chunk=chunk, inner=half)


def rounding_of(text: str) -> ReductionRounding:
    """Return the modes of a text that `text_of` made."""
    modes = text.partition(MODES)[2]
    if not modes:
        return NEAREST
    steps, last, *numbers = modes.split()
    return ReductionRounding.of(steps, last, *map(int, numbers))


def _formats(text: str) -> str:
    return text.partition(MODES)[0].partition(ACCUMULATOR)[0]


def _name_of(accumulator: Accumulator) -> str:
    """Return the name of an accumulator; one without gets a number."""
    for name, known in _ACCUMULATORS.items():
        if known == accumulator:
            return name
    name = f"accumulator {len(_ACCUMULATORS)}"
    _ACCUMULATORS[name] = accumulator
    return name


@lru_cache(maxsize=256)
def _format_of(text: str) -> FloatFormat:
    name, *numbers = text.rsplit(" ", 4)
    if not numbers:
        return format_named(name)
    exponent_bits, fraction_bits, bias = map(int, numbers[:3])
    return FloatFormat(name, exponent_bits, fraction_bits, bias, numbers[3])
