"""Specification B: a result is right if the exact one lies in the interval that rounds to it.

The interval ends half way to the neighbours. With one more fraction bit these midpoints are codes themselves: beside
``2k``, which is the number of code k, stand ``2k - 1`` and ``2k + 1``, across binades and subnormals::

    k - 1      |      k      |      k + 1
           2k - 1    2k    2k + 1            the ends belong to the interval if k is even

No number here is ever rounded to the destination. All live in one *carrier* format, Float64 say, of which only two
things are asked: that it holds the operands, products and midpoints, and that it brackets the exact result by rounding
it down and up. So this holds for formats of any widths and bias, in solvers that know only a few formats.
"""

from __future__ import annotations

from fractions import Fraction

from golden.formats import FloatFormat
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
    number,
    power_of_two,
    sign_bit,
    slice_of,
    verdict,
)

__all__ = ["addition", "decode", "exact_product", "exact_sum", "fused_step"]


def decode(code: str, fmt: FloatFormat, carrier: Sort, *, fraction_bits: int | None = None) -> str:
    """Return the finite number of a code: read as one of the carrier, whose bias moves it, and moved back, exactly."""
    fraction_bits = fmt.fraction_bits if fraction_bits is None else fraction_bits
    top = fmt.exponent_bits + fraction_bits
    parts = [
        slice_of(code, top, top),
        bits(0, carrier.exponent_bits - fmt.exponent_bits),
        slice_of(code, top - 1, 0),
        bits(0, carrier.precision - 1 - fraction_bits),
    ]
    return f"(fp.mul RNE {_read(parts, carrier)} {power_of_two(carrier.bias - fmt.bias, carrier)})"


def _read(parts: list[str], carrier: Sort) -> str:
    word = " ".join(part for part in parts if not part.endswith(" 0)"))
    return from_bits(f"(concat {word})", carrier)


def fused_step(
    a: str,
    b: str,
    acc: str,
    operand: FloatFormat,
    accumulator: FloatFormat,
    out: str,
    flags: str,
    carrier: Sort = DOUBLE,
) -> str:
    """Return definitions up to ``correct``: `out` and `flags` are ``round(a * b + acc)``.

    The carrier must hold every product: ``2 * operand.precision`` bits, and twice the operand's range.
    """
    return exact_product(a, b, acc, operand, accumulator, carrier) + addition(acc, accumulator, out, flags, carrier)


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


def addition(acc: str, accumulator: FloatFormat, out: str, flags: str, carrier: Sort) -> str:
    """Define ``correct`` from number, class and sign of the product, and number and class of the accumulator."""
    return exact_sum(acc, accumulator, carrier) + conclusion(accumulator, carrier, out, flags)


def exact_sum(acc: str, accumulator: FloatFormat, carrier: Sort, *, zero_is_negative: bool = False) -> str:
    """Define what `conclusion` says of the sum.

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


def conclusion(destination: FloatFormat, carrier: Sort, out: str, flags: str) -> str:
    """Define ``correct`` from the operation's definitions.

    That is: ``is_nan``, ``is_invalid``, ``is_infinite`` (unless it is a NaN); ``below`` and ``above``, the exact result
    rounded down and up, if it is neither; and ``is_negative``, the sign of an infinity or an exact zero.
    """
    fmt, width = destination, destination.width
    infinite = bits(fmt.inf, width)
    text = define("code", f"(_ BitVec {width})", f"(bvand {out} {bits((1 << width - 1) - 1, width)})")
    text += define("sign", "Bool", sign_bit(out, fmt))
    for name, change in (("lower_end", "(bvsub (concat code #b0) {})"), ("upper_end", "(bvadd (concat code #b0) {})")):
        midpoint = change.format(bits(1, width + 1))
        text += define(f"{name}_code", f"(_ BitVec {width + 1})", midpoint)
        text += define(name, carrier, decode(f"{name}_code", fmt, carrier, fraction_bits=fmt.fraction_bits + 1))
    text += define("value", carrier, decode("code", fmt, carrier))
    # Of the magnitude: for a negative result both brackets change places.
    text += define("low", carrier, "(ite sign (fp.neg above) below)")
    text += define("high", carrier, "(ite sign (fp.neg below) above)")
    text += define("is_even", "Bool", equal(slice_of(out, 0, 0), "#b0"))
    text += define("is_zero", "Bool", both("(fp.isZero below)", "(fp.isZero above)"))
    text += define("is_number", "Bool", inverse(either("is_nan", "is_infinite")))
    # The exact result is at least a number if its lower bracket is, and above it if its upper bracket is.
    within = both(
        f"(bvule code {infinite})",
        either(equal("code", bits(0, width)), "(ite is_even (fp.leq lower_end low) (fp.lt lower_end high))"),
        either(equal("code", infinite), "(ite is_even (fp.leq high upper_end) (fp.lt low upper_end))"),
        f"(ite is_zero {equal('sign', 'is_negative')} (fp.lt {_zero(carrier)} high))",
    )
    largest, half_ulp = (
        (2 - Fraction(1, 1 << fmt.fraction_bits)) * Fraction(2) ** fmt.emax,
        Fraction(2) ** (fmt.emax - fmt.fraction_bits - 1),
    )
    limit = number(largest + half_ulp, carrier)
    overflows = either(f"(fp.geq below {limit})", f"(fp.leq above (fp.neg {limit}))")
    text += define("overflows", "Bool", both("is_number", overflows))
    is_exact = both("(fp.eq low value)", "(fp.eq high value)", inverse(equal("code", infinite)))
    text += define("is_inexact", "Bool", both("is_number", inverse(is_exact)))
    # From here on, rounded to this precision with an unbounded exponent, it is the smallest normal number.
    enough = number((1 - Fraction(1, 1 << fmt.precision + 1)) * Fraction(2) ** fmt.emin, carrier)
    is_tiny = both(f"(fp.lt below {enough})", f"(fp.lt (fp.neg {enough}) above)")
    text += define("underflows", "Bool", both("is_inexact", is_tiny))
    special = f"(bvor {infinite} (ite is_negative {bits(fmt.sign_mask, width)} {bits(0, width)}))"
    correct = f"(ite is_nan {equal(out, bits(fmt.nan, width))} (ite is_infinite {equal(out, special)} {within}))"
    return text + verdict(correct, flags)


def _zero(carrier: Sort) -> str:
    return f"(_ +zero {carrier.exponent_bits} {carrier.precision})"
