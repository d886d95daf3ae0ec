"""The command line: show a value or a code in every format, or print the table of the formats."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

from golden.formats import ALIASES, FORMATS, FloatFormat, format_named
from golden.reference import Class, Value, decode, round_value

__all__ = ["main"]

_ALIAS_OF = {fmt: alias for alias, fmt in ALIASES.items()}
_WIDEST = max(fmt.width for fmt in FORMATS)
_VALUE_HELP = "a decimal value (1.5, -0.0, 1e-40), a quotient (1/3), inf, nan, or a code (0x5900)"
# 10**9999 is far outside every format, and the exact rational of a larger power would take unbounded time to build.
_EXPONENT_LIMIT = 9999
_SHORT = 17  # significant digits up to which a value is printed exactly


def _parse_value(text: str) -> Value | int:
    """Return the exact value of a number, or the int of a code; never a host float, which would round 0.1."""
    text = text.strip().lower()
    wrong = argparse.ArgumentTypeError(f"got {text!r}, must be {_VALUE_HELP}")
    if "_" in text:
        raise wrong
    if text.startswith("0x"):
        try:
            code = int(text, 16)
        except ValueError:
            raise wrong from None
        if code >> _WIDEST:
            raise argparse.ArgumentTypeError(f"got code {text}, must be 0x0 to {(1 << _WIDEST) - 1:#x}")
        return code
    sign, magnitude = int(text.startswith("-")), text.removeprefix("-").removeprefix("+")
    if magnitude in ("inf", "infinity"):
        return Value(Class.INFINITE, sign)
    if magnitude == "nan":
        return Value(Class.QUIET_NAN)
    exponent = re.search(r"e([+-]?\d+)$", magnitude)
    if exponent and abs(int(exponent[1])) > _EXPONENT_LIMIT:
        raise argparse.ArgumentTypeError(
            f"got {text!r}, must have a power of ten from -{_EXPONENT_LIMIT} to {_EXPONENT_LIMIT}"
        )
    try:
        number = Fraction(magnitude)
    except (ValueError, ZeroDivisionError):
        raise wrong from None
    if number < 0:  # a second sign
        raise wrong
    return Value(Class.FINITE, sign, number)


def _parse_format(name: str) -> FloatFormat:
    try:
        return format_named(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("name: ")) from None


def _decimal(number: Fraction) -> str:
    """Write a number in decimal: exactly if that is short, otherwise with a leading ~ and rounded."""
    wide = Context(prec=1200, Emin=-(10**6), Emax=10**6)
    digits = wide.divide(Decimal(number.numerator), Decimal(number.denominator))
    short = Context(prec=_SHORT, Emin=-(10**6), Emax=10**6).plus(digits).normalize()
    mark = "" if Fraction(short) == number else "~"
    return mark + (f"{short:f}" if -6 <= short.adjusted() < _SHORT else f"{short:e}")


def _value_text(value: Value) -> str:
    if value.is_nan:
        return value.kind.value
    if value.kind is Class.INFINITE or value.is_zero:
        return "-" * value.sign + ("0" if value.is_zero else "inf")
    return _decimal(value.as_fraction())


def _error_text(shown: Value, asked: Value) -> str:
    """Return the difference between the shown and the given value, in ulp of the shown value."""
    if asked.is_nan:
        return "0" if shown.is_nan else "no NaN"
    if asked.kind is Class.INFINITE:
        return "0" if shown.kind is Class.INFINITE else "no infinity"
    if shown.kind is not Class.FINITE:
        return "overflow"
    # decode gives a significand of whole ulps, so that 2**exponent is the ulp, that of the subnormals for a zero.
    error = (shown.as_fraction() - asked.as_fraction()) / Fraction(2) ** shown.exponent
    if error == 0:
        return "0"
    context = Context(prec=4, Emin=-(10**6), Emax=10**6)
    return f"{context.divide(Decimal(error.numerator), Decimal(error.denominator)).normalize():+}".lower()


def _fields(code: int, fmt: FloatFormat) -> list[str]:
    bits, split = f"{code:0{fmt.width}b}", 1 + fmt.exponent_bits
    return [f"{code:#0{2 + (fmt.width + 3) // 4}x}", bits[0], bits[1:split], bits[split:]]


def _row(code: int, asked: Value, fmt: FloatFormat) -> list[str]:
    shown = decode(code, fmt)
    return [fmt.name, *_fields(code, fmt), _value_text(shown), _error_text(shown, asked)]


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _show(given: Value | int, fmt: FloatFormat | None, parser: argparse.ArgumentParser) -> str:
    if isinstance(given, Value):
        rows = [_row(round_value(given, each)[0], given, each) for each in ([fmt] if fmt else FORMATS)]
    elif fmt is None:
        readable = [each for each in FORMATS if not given >> each.width]
        rows = [_row(given, decode(given, each), each) for each in readable]
    else:
        if given >> fmt.width:
            parser.error(f"argument value: got code {given:#x}, must be 0x0 to {(1 << fmt.width) - 1:#x} for {fmt}")
        asked = decode(given, fmt)
        rows = [_row(given if each == fmt else round_value(asked, each)[0], asked, each) for each in FORMATS]
    return _table([["format", "code", "sign", "exponent field", "fraction", "value", "error in ulp"], *rows])


def _formats() -> str:
    rows = [
        ["name", "alias", "s/e/f", "bias", "max finite", "min normal", "min subnormal", "inf", "nan"],
        *(
            [
                fmt.name,
                _ALIAS_OF.get(fmt, "-"),
                f"1/{fmt.exponent_bits}/{fmt.fraction_bits}",
                str(fmt.bias),
                _decimal(decode(fmt.max_finite, fmt).as_fraction()),
                f"2^{fmt.emin}",
                f"2^{fmt.emin - fmt.fraction_bits}",
                _fields(fmt.inf, fmt)[0] if fmt.has_inf else "-",
                _fields(fmt.nan, fmt)[0] if fmt.has_nan else "-",
            ]
            for fmt in FORMATS
        ),
    ]
    return _table(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m golden", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{show,formats}")
    show = commands.add_parser("show", help="show a value or a code in every format")
    show.add_argument("value", type=_parse_value, help=_VALUE_HELP)
    show.add_argument(
        "--format",
        type=_parse_format,
        metavar="NAME",
        help="show a value in this format only; read a code in this format and show its value in every format",
    )
    commands.add_parser("formats", help="print the table of the formats")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments`, by default those of the process; return the exit status.

    Raises
    ------
    SystemExit
        With status 2 and a message on bad input, with status 0 after ``--help``.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    # argparse takes -inf and -1e-40 for options; an argument that contains a space is always a value to it.
    given = [" " + each if re.match(r"-(inf|nan|\.?\d)", each, re.IGNORECASE) else each for each in given]
    parser = _parser()
    parsed = parser.parse_args(given)
    text = _formats() if parsed.command == "formats" else _show(parsed.value, parsed.format, parser)
    try:
        print(text, flush=True)
    except OSError as error:
        parser.error(f"standard output: cannot be written: {error}")
    return 0
