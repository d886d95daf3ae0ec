"""Specification A: rounding by SMT-LIB's ``to_fp`` and ``fp.fma``, in the five modes of IEEE 754.

A step is rounded in the format of its result. SMT-LIB knows formats by exponent and significand bits; their bias is the
IEEE one. A format of another bias is its *twin*, the IEEE one of the same widths, scaled: every finite code, subnormals
too, stands for the twin's value times ``2**-offset``. So all numbers are moved by exact multiplications, in a format
wide enough, to where the destination is its own twin, and rounded there.

SMT-LIB knows no format without infinities. So a conversion rounds in a format with more exponent bits than the
destination, moved to where its smallest normal number is the destination's. There, every code of the destination is a
number, with zeros ahead of its exponent field. A comparison finds the numbers above the largest finite value.

The flags follow their definitions. Inexact: the results rounded up and down differ. Overflow and tininess: of the
result rounded to the same precision with more exponent bits, which stand for an unbounded exponent.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from golden.formats import FloatFormat
from golden.rounding import Rounding
from lab.proofs.rounded import conclusion
from lab.proofs.terms import (
    Sort,
    bits,
    both,
    define,
    either,
    equal,
    from_bits,
    inverse,
    is_nan,
    is_signalling,
    number,
    power_of_two,
    round_to,
    slice_of,
    verdict,
)

__all__ = ["SMT_MODES", "Conversion", "conversion", "fused_step"]

#: A function such as `conversion`.
Conversion = Callable[..., str]


SMT_MODES = {
    Rounding.NEAREST_EVEN: "RNE",
    Rounding.TOWARD_ZERO: "RTZ",
    Rounding.DOWN: "RTN",
    Rounding.UP: "RTP",
    Rounding.NEAREST_AWAY: "RNA",
}


def sort_of(fmt: FloatFormat) -> Sort:
    """Return the format of SMT-LIB with the same widths: the twin's."""
    return Sort(fmt.exponent_bits, fmt.precision)


def offset(fmt: FloatFormat) -> int:
    """Return the number of binades by which a code's value is smaller than in the twin."""
    return fmt.bias - sort_of(fmt).bias


def _read(code: str, fmt: FloatFormat, sort: Sort) -> str:
    """Read a code with zeros ahead of its exponent field: always a number, the code's value times a power of two."""
    top = fmt.width - 1
    zeros = bits(0, sort.exponent_bits - fmt.exponent_bits)
    return from_bits(f"(concat {slice_of(code, top, top)} {zeros} {slice_of(code, top - 1, 0)})", sort)


def conversion(
    code: str,
    source: FloatFormat,
    destination: FloatFormat,
    out: str,
    flags: str,
    mode: Rounding = Rounding.NEAREST_EVEN,
    overflow: str = "special",
) -> str:
    """Return definitions up to ``correct``: `out` and `flags` are the result of converting `code`."""
    exponent_bits = max(source.exponent_bits, destination.exponent_bits) + 2
    target = Sort(exponent_bits, destination.precision)
    # Both hold the number wherever it is moved.
    exact, unbounded = (Sort(exponent_bits + 2, precision) for precision in (source.precision, destination.precision))
    read = Sort(source.exponent_bits + 1, source.precision)
    move = (destination.bias - target.bias) - (source.bias - read.bias)
    value = f"(fp.mul RNE {round_to(exact, _read(code, source, read))} {power_of_two(move, exact)})"
    text = define("exact", exact, value)
    text += define("rounded", target, round_to(target, "exact", SMT_MODES[mode]))
    text += define("unbounded", unbounded, round_to(unbounded, "exact", SMT_MODES[mode]))
    text += define("given", target, _read(out, destination, target))

    scale = Fraction(2) ** (destination.bias - target.bias)
    fraction = destination.max_finite & (1 << destination.fraction_bits) - 1
    largest = (1 + Fraction(fraction, 1 << destination.fraction_bits)) * Fraction(2) ** destination.emax * scale
    text += define("is_beyond", "Bool", f"(fp.gt (fp.abs rounded) {number(largest, target)})")
    is_same = equal("given", "rounded")
    if destination.specials == "fnuz":
        is_same = either(is_same, both("(fp.isZero given)", "(fp.isZero rounded)"))
    text += define("is_rounded", "Bool", both(is_same, inverse(is_nan(out, destination))))
    directions = (round_to(target, "exact", mode) for mode in ("RTP", "RTN"))
    text += define("is_exact", "Bool", f"(fp.eq {' '.join(directions)})")
    smallest = number(Fraction(2) ** destination.emin * scale, unbounded)
    text += define("is_tiny", "Bool", f"(fp.lt (fp.abs unbounded) {smallest})")
    return text + conclusion(code, source, destination, mode, overflow, out, flags)


def fused_step(
    a: str,
    b: str,
    acc: str,
    operand: FloatFormat,
    accumulator: FloatFormat,
    out: str,
    flags: str,
    mode: str = "RNE",
) -> str:
    """Return definitions up to ``correct``: `out` and `flags` are ``round(a * b + acc)``.

    That is ``fp.fma`` in the accumulator's format, which usually holds the operands' numbers, too. If it does not, or
    if an offset differs and the first factor takes a power of two, see `_step_rounded_twice`, for nearest even only.
    """
    sort, codes = sort_of(accumulator), ((a, operand), (b, operand), (acc, accumulator))
    wide = Sort(max(operand.exponent_bits, accumulator.exponent_bits) + 2, accumulator.precision)
    text = ""
    for name, (code, fmt) in zip(("x", "y", "z"), codes, strict=True):
        text += define(name, sort_of(fmt), from_bits(code, sort_of(fmt)))
    move = offset(accumulator) - 2 * offset(operand)
    if move or operand.precision > sort.precision or operand.exponent_bits > sort.exponent_bits:
        assert mode == "RNE", f"{operand} into {accumulator} is rounded twice"
        text += _step_rounded_twice(move, max(operand.precision, sort.precision) + 2, sort, wide)
    else:
        text += define("unbounded", wide, f"(fp.fma {mode} {' '.join(round_to(wide, name) for name in 'xyz')})")
        factors = " ".join(round_to(sort, name) if sort_of(operand) != sort else name for name in ("x", "y"))
        for each in dict.fromkeys((mode, "RTP", "RTN")):
            text += define(f"rounded_{each}", sort, f"(fp.fma {each} {factors} z)")
    text += define("is_nan", "Bool", "(fp.isNaN unbounded)")
    times_zero = either(both("(fp.isInfinite x)", "(fp.isZero y)"), both("(fp.isZero x)", "(fp.isInfinite y)"))
    given_nan = either(*(is_nan(code, fmt) for code, fmt in codes))
    signalling = (is_signalling(code, fmt) for code, fmt in codes)
    text += define("is_invalid", "Bool", either(*signalling, times_zero, both("is_nan", inverse(given_nan))))
    operands_are_finite = (inverse(f"(fp.isInfinite {name})") for name in "xyz")
    text += define("is_number", "Bool", both(inverse("is_nan"), *operands_are_finite))
    return text + _conclusion(accumulator, wide, out, flags, mode)


def _step_rounded_twice(move: int, precision: int, sort: Sort, wide: Sort) -> str:
    """Define the results of a step with a factor of ``2**move``: two roundings with the effect of one.

    The first rounding is into a format with at least two more bits of significand and of exponent. Rounding up or down
    twice equals rounding once. To round to nearest, the first rounding is towards zero. If it was inexact, the exact
    result is larger than the rounded one: then an apparent tie is not a tie, and is rounded away from zero.
    """
    longer = Sort(wide.exponent_bits, precision)
    x, y, z = (round_to(longer, name) for name in "xyz")
    text = define("scaled", longer, f"(fp.mul RNE {x} {power_of_two(move, longer)})")
    for mode in ("RTZ", "RTP", "RTN"):
        text += define(f"longer_{mode}", longer, f"(fp.fma {mode} scaled {y} {z})")
    for mode in ("RTP", "RTN"):
        text += define(f"rounded_{mode}", sort, round_to(sort, f"longer_{mode}", mode))
    # An exact zero has the sign of rounding to nearest in this mode, too.
    for name, target in (("rounded_RNE", sort), ("unbounded", wide)):
        nearest = (round_to(target, "longer_RTZ", mode) for mode in ("RNE", "RNA"))
        text += define(name, target, f"(ite (fp.eq longer_RTP longer_RTN) {' '.join(nearest)})")
    return text


def _conclusion(destination: FloatFormat, unbounded: Sort, out: str, flags: str, mode: str = "RNE") -> str:
    """Define ``correct`` from the operation's definitions: the same exact result rounded in several ways."""
    sort = sort_of(destination)
    largest = (2 - Fraction(1, 1 << destination.fraction_bits)) * Fraction(2) ** sort.bias
    smallest = Fraction(2) ** (1 - sort.bias)
    text = define("is_inexact", "Bool", both("is_number", inverse("(fp.eq rounded_RTP rounded_RTN)")))
    text += define("magnitude", unbounded, "(fp.abs unbounded)")
    text += define("overflows", "Bool", both("is_number", f"(fp.gt magnitude {number(largest, unbounded)})"))
    is_tiny = f"(fp.lt magnitude {number(smallest, unbounded)})"
    text += define("underflows", "Bool", both("is_inexact", is_tiny))
    result = equal(from_bits(out, sort), f"rounded_{mode}")
    correct = f"(ite is_nan {equal(out, bits(destination.nan, destination.width))} {result})"
    return text + verdict(correct, flags)
