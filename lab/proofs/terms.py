"""SMT-LIB text: the few forms that the specifications are made of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from amaranth.lib import data

from golden.formats import FloatFormat
from lab.netlists.netlist import Instance

__all__ = [
    "DOUBLE", "Sort", "bits", "both", "define", "either", "equal", "field_of", "from_bits", "inverse", "is_infinite",
    "is_nan", "is_signalling", "number", "power_of_two", "refute", "round_to", "sign_bit", "slice_of", "split_result",
    "verdict", "widened",
]  # fmt: skip


@dataclass(frozen=True)
class Sort:
    """A floating-point format of SMT-LIB: its bias is the IEEE one, its NaN is one.

    Parameters
    ----------
    exponent_bits, precision : int
        The precision counts the leading bit.
    """

    exponent_bits: int
    precision: int

    @property
    def bias(self) -> int:
        """The number subtracted from the exponent field, which is also the largest exponent."""
        return (1 << self.exponent_bits - 1) - 1

    def __str__(self) -> str:
        return f"(_ FloatingPoint {self.exponent_bits} {self.precision})"


#: The widest format that every engine knows.
DOUBLE = Sort(11, 53)


def bits(value: int, width: int) -> str:
    """Return a bit-vector constant."""
    return f"(_ bv{value % (1 << width)} {width})"


def slice_of(word: str, high: int, low: int) -> str:
    """Return the bits from `high` down to `low`."""
    return f"((_ extract {high} {low}) {word})"


def field_of(word: str, layout: data.Layout, name: str | int) -> str:
    """Return a field of a word, or an element."""
    field = layout[name]
    return slice_of(word, field.offset + field.width - 1, field.offset)


def widened(word: str, width: int, wanted: int) -> str:
    """Return an unsigned word of `width` bits with zeros ahead of it."""
    return f"((_ zero_extend {wanted - width}) {word})"


def define(name: str, sort: Sort | str, body: str) -> str:
    """Name a term."""
    return f"(define-fun {name} () {sort} {body})\n"


def both(*conditions: str) -> str:
    """Return the conjunction."""
    return f"(and true {' '.join(conditions)})"


def either(*conditions: str) -> str:
    """Return the disjunction."""
    return f"(or false {' '.join(conditions)})"


def inverse(condition: str) -> str:
    """Return the negation."""
    return f"(not {condition})"


def equal(one: str, other: str) -> str:
    """Return ``one = other``; floating point as in SMT-LIB: all NaNs are one, the zeros are two."""
    return f"(= {one} {other})"


def sign_bit(code: str, fmt: FloatFormat) -> str:
    """Tell whether the sign of a code is set."""
    return equal(slice_of(code, fmt.width - 1, fmt.width - 1), "#b1")


def _is_ones(code: str, fmt: FloatFormat) -> str:
    return equal(slice_of(code, fmt.width - 2, fmt.fraction_bits), bits(-1, fmt.exponent_bits))


def _is_fraction_zero(code: str, fmt: FloatFormat) -> str:
    return equal(slice_of(code, fmt.fraction_bits - 1, 0), bits(0, fmt.fraction_bits))


def is_nan(code: str, fmt: FloatFormat) -> str:
    """Tell whether a code is a NaN."""
    match fmt.specials:
        case "fn":
            return equal(slice_of(code, fmt.width - 2, 0), bits(-1, fmt.width - 1))
        case "fnuz":
            return equal(code, bits(1 << fmt.width - 1, fmt.width))
        case "finite":
            return "false"
    return both(_is_ones(code, fmt), inverse(_is_fraction_zero(code, fmt)))


def is_infinite(code: str, fmt: FloatFormat) -> str:
    """Tell whether a code is an infinity."""
    if fmt.specials != "ieee":
        return "false"
    return both(_is_ones(code, fmt), _is_fraction_zero(code, fmt))


def is_signalling(code: str, fmt: FloatFormat) -> str:
    """Tell whether a code is a NaN whose top fraction bit is 0; only formats as IEEE 754's have those."""
    if fmt.specials != "ieee":
        return "false"
    top = fmt.fraction_bits - 1
    return both(is_nan(code, fmt), equal(slice_of(code, top, top), "#b0"))


def from_bits(code: str, sort: Sort) -> str:
    """Read a bit-vector as a floating-point number."""
    return f"((_ to_fp {sort.exponent_bits} {sort.precision}) {code})"


def round_to(sort: Sort, term: str, mode: str = "RNE") -> str:
    """Round a floating-point number to another format."""
    return f"((_ to_fp {sort.exponent_bits} {sort.precision}) {mode} {term})"


def power_of_two(exponent: int, sort: Sort) -> str:
    """Return a power of two that is a normal number."""
    return number(Fraction(2) ** exponent, sort)


def number(value: Fraction, sort: Sort) -> str:
    """Return a positive number that is a normal one.

    Raises
    ------
    ValueError
        If the format does not hold it, or as a subnormal.
    """
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** exponent:
        exponent -= 1
    fraction = (value / Fraction(2) ** exponent - 1) * (1 << sort.precision - 1)
    field = exponent + sort.bias
    if fraction.denominator != 1 or not 0 < field <= 2 * sort.bias:
        raise ValueError(f"value: got {value}, must be a normal number of {sort}")
    return f"(fp #b0 {bits(field, sort.exponent_bits)} {bits(int(fraction), sort.precision - 1)})"


def verdict(correct_bits: str, flags: str) -> str:
    """Define ``correct``: `correct_bits` holds, and `flags` has the flags that the specification has defined."""
    names = ("is_invalid", "", "overflows", "underflows", "is_inexact")
    places = " ".join(f"(ite {name} #b1 #b0)" if name else "#b0" for name in names)
    text = define("correct_bits", "Bool", correct_bits)
    text += define("correct_flags", "Bool", equal(flags, f"(concat {places})"))
    return text + define("correct", "Bool", both("correct_bits", "correct_flags"))


def refute(claim: str) -> str:
    """Ask for a solution in which a claim does not hold."""
    return f"(assert (not {claim}))\n"


def split_result(netlist: Instance, fmt: FloatFormat) -> str:
    """Define ``out`` and ``flags``, the fields of a `result_layout` at the port ``o``."""
    high = netlist.outputs["o"] - 1
    text = define("out", f"(_ BitVec {fmt.width})", slice_of(netlist.port("o"), fmt.width - 1, 0))
    return text + define("flags", "(_ BitVec 5)", slice_of(netlist.port("o"), high, high - 4))
