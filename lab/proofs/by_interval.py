"""Specification B: a result is right if the exact one lies in the interval that rounds to it, in every mode.

The ends of the interval are codes with more fraction bits. With one more, in units of half an ulp, the number of code k
is 2k, across binades and subnormals, and the numbers that round to it lie between these ends::

    nearest_even    2k - 1   2k + 1    both belong to it if k is even
    nearest_away    2k - 1   2k + 1    the lower one does
    towards zero    2k       2k + 2    the lower one does
    away from zero  2k - 2   2k        the upper one does
    to_odd          2k - 2   2k + 2    if k is odd; else 2k alone

For a stochastic rounding by the number r, the ends have R more fraction bits. In units of 2**-R ulp they are
2**R k - r, which belongs to the interval, and 2**R k + 2**R - r, which does not.

No number here is ever rounded to the destination. All live in one *carrier* format, Float64 say. It must hold the
operands, products and ends, and bracket the exact result by rounding it down and up. So this holds for formats of any
widths and bias, in solvers that know only a few formats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from golden.formats import FloatFormat
from golden.nearest import complete
from golden.rounding import Rounding
from lab.proofs.rounded import conclusion, settled
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
    is_infinite,
    is_nan,
    is_signalling,
    power_of_two,
    sign_bit,
    slice_of,
    widened,
)

__all__ = ["addition", "conversion", "decode", "exact_product", "exact_sum", "fused_step", "magnitude_of", "rounding"]


def decode(code: str, fmt: FloatFormat, carrier: Sort) -> str:
    """Return the finite number of a code: read it in the carrier, where another bias moves it, and move it back."""
    top = fmt.exponent_bits + fmt.fraction_bits
    parts = [
        slice_of(code, top, top),
        bits(0, carrier.exponent_bits - fmt.exponent_bits),
        slice_of(code, top - 1, 0),
        bits(0, carrier.precision - 1 - fmt.fraction_bits),
    ]
    return f"(fp.mul RNE {_read(parts, carrier)} {power_of_two(carrier.bias - fmt.bias, carrier)})"


def _read(parts: list[str], carrier: Sort) -> str:
    word = " ".join(part for part in parts if not part.endswith(" 0)"))
    return from_bits(f"(concat {word})", carrier)


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


@dataclass(frozen=True)
class _Code:
    """A code with more fraction bits, which gives the ends of its interval.

    Parameters
    ----------
    word, is_odd, is_negative : str
        ``is_odd`` refers to the code without the additional bits.
    width : int
        Bits of the word.
    random, whole : str
        The random number of a stochastic rounding, and an ulp in its units, in this width.
    """

    word: str
    is_odd: str
    is_negative: str
    width: int
    random: str
    whole: str

    @property
    def is_even(self) -> str:
        return inverse(self.is_odd)

    def up(self, units: int) -> str:
        return f"(bvadd {self.word} {bits(units, self.width)})"

    def down(self, units: int) -> str:
        return f"(bvsub {self.word} {bits(units, self.width)})"

    def directed(self, away: str) -> _Ends:
        """Return the ends of a mode that rounds away from zero, or toward it."""
        lower, upper = f"(ite {away} {self.down(2)} {self.word})", f"(ite {away} {self.word} {self.up(2)})"
        return (lower, inverse(away)), (upper, away)

    def shifted(self) -> _Ends:
        """Return the ends of a stochastic rounding."""
        upper = f"(bvsub (bvadd {self.word} {self.whole}) {self.random})"
        return (f"(bvsub {self.word} {self.random})", "true"), (upper, "false")


#: The lower and the upper end of the numbers that round to a code, and whether they belong to them.
_Ends = tuple[tuple[str, str], tuple[str, str]]
_ENDS: dict[Rounding, Callable[[_Code], _Ends]] = complete(
    "lab.proofs.by_interval._ENDS",
    {
        Rounding.NEAREST_EVEN: lambda code: ((code.down(1), code.is_even), (code.up(1), code.is_even)),
        Rounding.TOWARD_ZERO: lambda code: code.directed("false"),
        Rounding.DOWN: lambda code: code.directed(code.is_negative),
        Rounding.UP: lambda code: code.directed(inverse(code.is_negative)),
        Rounding.NEAREST_AWAY: lambda code: ((code.down(1), "true"), (code.up(1), "false")),
        Rounding.TO_ODD: lambda code: (
            (f"(ite {code.is_odd} {code.down(2)} {code.word})", code.is_even),
            (f"(ite {code.is_odd} {code.up(2)} {code.word})", code.is_even),
        ),
        Rounding.STOCHASTIC: lambda code: code.shifted(),
    },
    Rounding,
)


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
    """Return definitions up to ``correct``: `out` and `flags` are the result of converting `code`.

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

    Already defined: ``magnitude``, of the number that `out` rounds; or `low` and `high`, that number rounded down and
    up to the carrier, which holds every number in a comparison. `is_negative` tells its sign.
    """
    extra = random_bits if mode is Rounding.STOCHASTIC else 1
    fraction_bits = destination.fraction_bits + extra
    # One exponent bit more than the destination has, and one fraction bit more for tiny numbers.
    width = destination.exponent_bits + 1 + fraction_bits + 1
    chance = widened(random, random_bits, width) if mode is Rounding.STOCHASTIC else ""

    def ends(word: str, is_odd: str) -> _Ends:
        return _ENDS[mode](_Code(word, is_odd, is_negative, width, chance, bits(1 << extra, width)))

    def reaches(word: str, is_odd: str, digits: int) -> str:
        """Tell whether the number is rounded to a code or beyond; ``digits`` fraction bits stand in its word."""
        end, belongs = ends(word, is_odd)[0]
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
    end, belongs = ends("word", "is_odd")[1]
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
    mode: Rounding = Rounding.NEAREST_EVEN,
    *,
    random: str = "",
    random_bits: int = 1,
    carrier: Sort = DOUBLE,
) -> str:
    """Return definitions up to ``correct``: `out` and `flags` are ``round(a * b + acc)``.

    The carrier must hold every product: ``2 * operand.precision`` bits, and twice the operand's range.
    """
    text = exact_product(a, b, acc, operand, accumulator, carrier)
    return text + addition(acc, accumulator, out, flags, mode, random=random, random_bits=random_bits, carrier=carrier)


def exact_product(a: str, b: str, acc: str, operand: FloatFormat, accumulator: FloatFormat, carrier: Sort) -> str:
    """Define number, class and sign of a product, and number and class of an accumulator."""
    text, codes = "", ((a, operand), (b, operand), (acc, accumulator))
    for name, (code, fmt) in zip(("x", "y", "z"), codes, strict=True):
        text += define(name, carrier, decode(code, fmt, carrier))
        text += define(f"{name}_is_infinite", "Bool", is_infinite(code, fmt))
        text += define(f"{name}_is_zero", "Bool", equal(slice_of(code, fmt.width - 2, 0), bits(0, fmt.width - 1)))
    text += define("product", carrier, "(fp.mul RNE x y)")
    product_is_infinite = either("x_is_infinite", "y_is_infinite")
    text += define("product_is_infinite", "Bool", product_is_infinite)
    text += define("product_is_negative", "Bool", f"(xor {sign_bit(a, operand)} {sign_bit(b, operand)})")
    is_invalid = either(both("x_is_infinite", "y_is_zero"), both("x_is_zero", "y_is_infinite"))
    text += define("product_is_invalid", "Bool", either(is_invalid, *(is_signalling(code, fmt) for code, fmt in codes)))
    return text + define("operand_is_nan", "Bool", either(*(is_nan(code, fmt) for code, fmt in codes)))


def exact_sum(acc: str, accumulator: FloatFormat, carrier: Sort, *, zero_is_negative: bool = False) -> str:
    """Define bracket, class and sign of the sum.

    Parameters
    ----------
    zero_is_negative : bool
        An exact zero sum of addends of different signs is negative: in the mode ``down``.
    """
    text = define("below", carrier, "(fp.add RTN product z)") + define("above", carrier, "(fp.add RTP product z)")
    text += define("acc_is_negative", "Bool", sign_bit(acc, accumulator))
    signs_differ = "(xor product_is_negative acc_is_negative)"
    text += define(
        "opposite", "Bool", both("product_is_infinite", "z_is_infinite", signs_differ, inverse("operand_is_nan"))
    )
    text += define("is_invalid", "Bool", either("product_is_invalid", "opposite"))
    text += define("is_nan", "Bool", either("is_invalid", "operand_is_nan"))
    text += define("is_infinite", "Bool", both(inverse("is_nan"), either("product_is_infinite", "z_is_infinite")))
    # An exact zero is negative only if both addends are, whether or not they are zeros: then they are.
    join = either if zero_is_negative else both
    of_zero = join("product_is_negative", "acc_is_negative")
    of_infinity = "(ite product_is_infinite product_is_negative acc_is_negative)"
    return text + define("is_negative", "Bool", f"(ite is_infinite {of_infinity} {of_zero})")


def addition(
    acc: str,
    accumulator: FloatFormat,
    out: str,
    flags: str,
    mode: Rounding = Rounding.NEAREST_EVEN,
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
    brackets = {"low": "low", "high": "high"}
    text += rounding(
        "sum_is_negative", accumulator, out, mode, random=random, random_bits=random_bits, carrier=carrier, **brackets
    )
    text += define("is_number", "Bool", inverse(either("is_nan", "is_infinite")))
    return text + settled(accumulator, mode, "special", out, flags, sign="(ite is_number sum_is_negative is_negative)")
