"""Specification B of conversions between any formats, in every mode: the number lies in the interval of its result.

As in `lab.proofs.by_interval`, the ends are codes with a few more fraction bits. With one more, in units of half an
ulp, the number of code k is 2k, and the numbers that round to it lie between these ends::

    nearest_even    2k - 1   2k + 1    both belong to it if k is even
    nearest_away    2k - 1   2k + 1    the lower one does
    towards zero    2k       2k + 2    the lower one does
    away from zero  2k - 2   2k        the upper one does
    to_odd          2k - 2   2k + 2    if k is odd; else 2k alone

With R more, in units of 2**-R ulp, a stochastic rounding by the number r takes to k what lies from 2**R k - r, which
belongs to it, to 2**R k + 2**R - r, which does not. No number here is ever rounded.
"""

from __future__ import annotations

from typing import Any

from golden.formats import FloatFormat
from golden.rounding import Rounding
from lab.proofs.by_interval import exact_product, exact_sum
from lab.proofs.rounded import conclusion, moves_away, settled
from lab.proofs.terms import (
    DOUBLE,
    Sort,
    bits,
    both,
    define,
    either,
    equal,
    from_bits,
    inverse,
    power_of_two,
    sign_bit,
    slice_of,
    widened,
)

__all__ = ["addition", "conversion", "fused_step", "magnitude_of", "rounding"]


def magnitude_of(word: str, width: int, fraction_bits: int, bias: int, carrier: Sort) -> str:
    """Return the number of an exponent field and a fraction, without sign, as one of the carrier."""
    exponent_bits = width - fraction_bits
    parts = [
        bits(0, 1 + carrier.exponent_bits - exponent_bits),
        word,
        *([bits(0, spare)] if (spare := carrier.precision - 1 - fraction_bits) else []),
    ]
    read = from_bits(f"(concat {' '.join(parts)})", carrier)
    return f"(fp.mul RNE {read} {power_of_two(carrier.bias - bias, carrier)})"


class _Interval:
    """The ends of the numbers that round to a code, in units of ``2**-extra`` ulp, and which of them belong to it."""

    def __init__(self, mode: Rounding, random: str, random_bits: int, width: int, away: str) -> None:
        self.extra = random_bits if mode is Rounding.STOCHASTIC else 1
        self.mode, self.width, self.away = mode, width, away
        self.random = widened(random, random_bits, width) if mode is Rounding.STOCHASTIC else ""

    def lower(self, word: str, is_odd: str) -> tuple[str, str]:
        """Return the lower end and whether it belongs to the numbers of the code that `word` stands for."""
        match self.mode:
            case Rounding.NEAREST_EVEN:
                return self._down(word, 1), inverse(is_odd)
            case Rounding.NEAREST_AWAY:
                return self._down(word, 1), "true"
            case Rounding.TO_ODD:
                return f"(ite {is_odd} {self._down(word, 2)} {word})", inverse(is_odd)
            case Rounding.STOCHASTIC:
                return f"(bvsub {word} {self.random})", "true"
        return f"(ite {self.away} {self._down(word, 2)} {word})", inverse(self.away)

    def upper(self, word: str, is_odd: str) -> tuple[str, str]:
        """Return the upper end and whether it belongs to them."""
        match self.mode:
            case Rounding.NEAREST_EVEN:
                return self._up(word, 1), inverse(is_odd)
            case Rounding.NEAREST_AWAY:
                return self._up(word, 1), "false"
            case Rounding.TO_ODD:
                return f"(ite {is_odd} {self._up(word, 2)} {word})", inverse(is_odd)
            case Rounding.STOCHASTIC:
                return f"(bvsub {self._up(word, 1 << self.extra)} {self.random})", "false"
        return f"(ite {self.away} {word} {self._up(word, 2)})", self.away

    def _up(self, word: str, units: int) -> str:
        return f"(bvadd {word} {bits(units, self.width)})"

    def _down(self, word: str, units: int) -> str:
        return f"(bvsub {word} {bits(units, self.width)})"


def conversion(
    code: str,
    source: FloatFormat,
    destination: FloatFormat,
    out: str,
    flags: str,
    mode: Rounding = Rounding.NEAREST_EVEN,
    overflow: str = "special",
    *,
    random: str = "",
    random_bits: int = 1,
    carrier: Sort = DOUBLE,
) -> str:
    """Return definitions up to ``correct``: `out` and `flags` are what converting `code` gives.

    `random` is the random number of the mode ``stochastic``, of `random_bits` bits.
    """
    top = source.width - 1
    magnitude = magnitude_of(slice_of(code, top - 1, 0), top, source.fraction_bits, source.bias, carrier)
    text = define("magnitude", carrier, magnitude)
    text += rounding(
        sign_bit(code, source), destination, out, mode, random=random, random_bits=random_bits, carrier=carrier
    )
    return text + conclusion(code, source, destination, mode, overflow, out, flags)


def rounding(
    is_negative: str,
    destination: FloatFormat,
    out: str,
    mode: Rounding = Rounding.NEAREST_EVEN,
    *,
    random: str = "",
    random_bits: int = 1,
    carrier: Sort = DOUBLE,
    low: str = "magnitude",
    high: str = "magnitude",
) -> str:
    """Return definitions of ``is_beyond``, ``is_rounded``, ``is_exact`` and ``is_tiny``, as `conclusion` says.

    Defined already: ``magnitude``, of the number that `out` rounds; or `low` and `high`, that number rounded down and
    up to the carrier, which holds all that it is compared with. `is_negative` tells its sign.
    """
    extra = random_bits if mode is Rounding.STOCHASTIC else 1
    fraction_bits = destination.fraction_bits + extra
    # One more exponent bit than the destination has, and one more fraction bit for tiny numbers.
    width = destination.exponent_bits + 1 + fraction_bits + 1
    interval = _Interval(mode, random, random_bits, width, moves_away(mode, is_negative))

    def reaches(word: str, is_odd: str, digits: int) -> str:
        """Tell whether the number is rounded to a code or beyond; ``digits`` fraction bits stand in its word."""
        end, belongs = interval.lower(word, is_odd)
        value = magnitude_of(end, width, digits, destination.bias, carrier)
        return f"(ite {belongs} (fp.geq {low} {value}) (fp.gt {high} {value}))"

    kept = slice_of(out, destination.width - 2, 0)
    text = define("kept", f"(_ BitVec {destination.width - 1})", kept)
    shifted = f"(concat {bits(0, width - extra - destination.width + 1)} kept {bits(0, extra)})"
    text += define("word", f"(_ BitVec {width})", shifted)
    text += define("is_odd", "Bool", equal("((_ extract 0 0) kept)", "#b1"))

    above = destination.max_finite + 1
    text += define(
        "is_beyond", "Bool", reaches(bits(above << extra, width), "true" if above & 1 else "false", fraction_bits)
    )
    end, belongs = interval.upper("word", "is_odd")
    value = magnitude_of(end, width, fraction_bits, destination.bias, carrier)
    is_zero = equal("kept", bits(0, destination.width - 1))
    sign = equal(sign_bit(out, destination), is_negative)
    if destination.specials == "fnuz":
        sign = f"(ite {is_zero} {inverse(sign_bit(out, destination))} {sign})"
    within = both(
        f"(bvule kept {bits(destination.max_finite, destination.width - 1)})",
        either(is_zero, reaches("word", "is_odd", fraction_bits)),
        f"(ite {belongs} (fp.leq {high} {value}) (fp.lt {low} {value}))",
        sign,
    )
    text += define("is_rounded", "Bool", within)
    own = magnitude_of("word", width, fraction_bits, destination.bias, carrier)
    text += define("is_exact", "Bool", both(f"(fp.eq {low} {own})", f"(fp.eq {high} {own})"))
    # With an unbounded exponent, the numbers below the smallest normal one have one more fraction bit than those above.
    smallest = bits(1 << fraction_bits + 1, width)
    return text + define("is_tiny", "Bool", inverse(reaches(smallest, "false", fraction_bits + 1)))


def fused_step(
    a: str,
    b: str,
    acc: str,
    operand: FloatFormat,
    accumulator: FloatFormat,
    out: str,
    flags: str,
    mode: Rounding,
    *,
    random: str = "",
    random_bits: int = 1,
    carrier: Sort = DOUBLE,
) -> str:
    """Return definitions up to ``correct``: `out` and `flags` are ``round(a * b + acc)`` in a mode."""
    text = exact_product(a, b, acc, operand, accumulator, carrier)
    options: dict[str, Any] = {"random": random, "random_bits": random_bits}
    return text + addition(acc, accumulator, out, flags, mode, carrier=carrier, **options)


def addition(
    acc: str,
    accumulator: FloatFormat,
    out: str,
    flags: str,
    mode: Rounding,
    *,
    random: str = "",
    random_bits: int = 1,
    carrier: Sort = DOUBLE,
) -> str:
    """Define ``correct`` from number, class and sign of the product, and number and class of the accumulator.

    The carrier brackets the sum, which it need not hold.
    """
    zero = f"(_ +zero {carrier.exponent_bits} {carrier.precision})"
    text = exact_sum(acc, accumulator, carrier, zero_is_negative=mode is Rounding.DOWN)
    is_zero = both("(fp.isZero below)", "(fp.isZero above)")
    text += define("sum_is_negative", "Bool", f"(ite {is_zero} is_negative (fp.lt below {zero}))")
    text += define("low", carrier, "(ite sum_is_negative (fp.neg above) below)")
    text += define("high", carrier, "(ite sum_is_negative (fp.neg below) above)")
    options: dict[str, Any] = {"random": random, "random_bits": random_bits, "carrier": carrier}
    text += rounding("sum_is_negative", accumulator, out, mode, low="low", high="high", **options)
    text += define("is_number", "Bool", inverse(either("is_nan", "is_infinite")))
    return text + settled(accumulator, mode, "special", out, flags, sign="(ite is_number sum_is_negative is_negative)")
