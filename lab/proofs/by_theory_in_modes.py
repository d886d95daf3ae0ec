"""Specification A of conversions between any formats, in the five modes of IEEE 754: rounding by SMT-LIB's ``to_fp``.

SMT-LIB knows no format without infinities. So numbers are rounded in one with more exponent bits than the
destination's, moved to where its smallest normal number is the destination's. There, every code of the destination is a
number, with zeros ahead of its exponent field; what is above the largest finite value is told by comparison.
"""

from __future__ import annotations

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
    number,
    power_of_two,
    round_to,
    slice_of,
)

__all__ = ["SMT_MODES", "conversion"]

SMT_MODES = {
    Rounding.NEAREST_EVEN: "RNE",
    Rounding.TOWARD_ZERO: "RTZ",
    Rounding.DOWN: "RTN",
    Rounding.UP: "RTP",
    Rounding.NEAREST_AWAY: "RNA",
}


def _read(code: str, fmt: FloatFormat, sort: Sort) -> str:
    """Read a code with zeros ahead of its exponent field: a number in any case, by a power of two the format's."""
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
    """Return definitions up to ``correct``: `out` and `flags` are what converting `code` gives."""
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
