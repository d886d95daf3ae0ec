"""The command line: show a value or a code in every format, explain a sum, identify a device, print all formats."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from golden.decimals import decimal_text, table, value_text
from golden.explanation import check_rows, explain
from golden.explanation_plot import check_picture
from golden.formats import ALIASES, FORMATS, FloatFormat, format_named
from golden.identification.files import kinds, read_results, write_probes
from golden.identification.identify import all_probes, concluded
from golden.reduction import DEFAULT_CHUNK, LEVELS, Reduction
from golden.reference import Class, Value, decode, round_value
from golden.rounding import Rounding

__all__ = ["main"]

_MOST_TIMES = 10**6
_ALIAS_OF = {fmt: alias for alias, fmt in ALIASES.items()}
_WIDEST = max(fmt.width for fmt in FORMATS)
_VALUE_HELP = "a decimal value (1.5, -0.0, 1e-40), a quotient (1/3), inf, nan, or a code (0x5900)"
# 10**9999 is far outside every format, and the exact rational of a larger power would take unbounded time to build.
_EXPONENT_LIMIT = 9999


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


def _parse_values(text: str) -> list[Value | int]:
    values: list[Value | int] = []
    for each in text.split(","):
        value, times, count = each.strip(), "", "1"
        if not value.lower().startswith(("0x", "x")):
            value, times, count = value.partition("x")
        if times and not (count.isdecimal() and 0 < int(count) <= _MOST_TIMES):
            raise argparse.ArgumentTypeError(f"got {each!r}, must have a number from 1 to {_MOST_TIMES} behind the x")
        values += [_parse_value(value)] * (int(count) if times else 1)
    return values


def _parse_format(name: str) -> FloatFormat:
    try:
        return format_named(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("name: ")) from None


def _parse_reduction(line: str) -> Reduction:
    try:
        return Reduction.parse(line)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("text: ")) from None


def _error_text(shown: Value, asked: Value) -> str:
    """Return the difference between the shown and the given value, in ulp of the shown value."""
    if asked.is_nan:
        return "0" if shown.is_nan else "no NaN"
    if asked.kind is Class.INFINITE:
        return "0" if shown.kind is Class.INFINITE else "no infinity"
    if shown.kind is not Class.FINITE:
        return "overflow"
    # decode gives a significand of whole ulps, so 2**exponent is the ulp; a zero has the ulp of the subnormals.
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
    return [fmt.name, *_fields(code, fmt), value_text(shown), _error_text(shown, asked)]


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
    return table([["format", "code", "sign", "exponent field", "fraction", "value", "error in ulp"], *rows])


def _codes(given: Sequence[Value | int], fmt: FloatFormat, argument: str, parser: argparse.ArgumentParser) -> list[int]:
    for each in given:
        if isinstance(each, int) and each >> fmt.width:
            parser.error(f"argument {argument}: got code {each:#x}, must be 0x0 to {(1 << fmt.width) - 1:#x} for {fmt}")
    return [each if isinstance(each, int) else round_value(each, fmt)[0] for each in given]


def _explain(given: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    ones: list[Value | int] = [Value(Class.FINITE, 0, 1)]
    factors = {"a": given.a, "b": given.b or ones * len(given.a)}
    if len(factors["a"]) != len(factors["b"]):
        parser.error(f"got {len(given.a)} factors and then {len(given.b)}, must be equally many, or the first alone")
    operand, line = given.operand, given.reduction
    if line is not None and (given.level is not None or given.chunk is not None):
        parser.error("argument --reduction: must come without --level and --chunk, which the line has in itself")
    if operand is None and line is not None:
        operand = line.operand
    if operand is None:
        parser.error("the following arguments are required: --operand, or a --reduction with operand=")
    chunk = DEFAULT_CHUNK if given.chunk is None else given.chunk
    if chunk < 0:
        parser.error(f"argument --chunk: got {chunk}, must be 1 or more, or 0 for one chunk of any length")
    options = {name: getattr(given, name) for name in ("reduction", "rounding", "seed")}
    options |= {"operand": operand, "level": 1 if given.level is None else given.level, "chunk": chunk or None}
    try:
        # A million steps take a minute, so the other arguments are checked first.
        check_rows(given.rows)
        if given.picture:
            check_picture(given.picture)
        codes = [_codes(values, operand, argument, parser) for argument, values in factors.items()]
        explained = explain(*codes, **options)
        parts = [f"{explained.text(given.rows)}\nreduction {explained.reduction}"]
        parts += [str(explained.alternatives())] if given.alternatives else []
        if given.picture:
            explained.plot(given.picture)
    except (TypeError, ValueError, ImportError) as error:
        parser.error(str(error).replace("file: got", "argument --picture: got", 1))
    except OSError as error:
        parser.error(f"argument --picture: cannot write {given.picture}: {error.strerror}")
    return "\n\n".join(parts)


def _formats() -> str:
    rows = [
        ["name", "alias", "s/e/f", "bias", "max finite", "min normal", "min subnormal", "inf", "nan"],
        *(
            [
                fmt.name,
                _ALIAS_OF.get(fmt, "-"),
                f"1/{fmt.exponent_bits}/{fmt.fraction_bits}",
                str(fmt.bias),
                decimal_text(decode(fmt.max_finite, fmt).as_fraction()),
                f"2^{fmt.emin}" + f" + 2^{fmt.emin - fmt.fraction_bits}" * fmt.normal_zero_field,
                f"2^{fmt.emin - fmt.fraction_bits}" if fmt.subnormals else "-",
                _fields(fmt.inf, fmt)[0] if fmt.has_inf else "-",
                _fields(fmt.nan, fmt)[0] if fmt.has_nan else "-",
            ]
            for fmt in FORMATS
        ),
    ]
    return table(rows)


def _identify(given: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    if bool(given.write) == bool(given.read):
        parser.error("must have --write FILE or --read FILE, and not both")
    if given.write and given.result is not None:
        parser.error(f"argument --result: got {given.result} beside --write, must be given with --read")
    if given.seed < 0:
        parser.error(f"argument --seed: got {given.seed}, must be 0 or more")
    try:
        asked = all_probes(given.operand, given.seed, given.initial)
        if given.write:
            write_probes(given.write, asked)
            return (
                f"{len(asked)} products of {given.operand} are in {given.write}: a0 times b0, a1 times b1, and so on.\n"
                f"Write their results as r0, r1, ... into one file, and read it with --read and --result.\n"
                + ("Where a product has c0, c1, ..., it is added to that, otherwise to +0.\n" if given.initial else "")
                + "Kinds of products: "
                + "; ".join(f"{name} {where}" for name, where in kinds(asked).items())
            )
        if given.result is None:
            parser.error("argument --result: must be given with --read: the format of the results")
        results = read_results(given.read, asked, given.result)
        return concluded(
            list(zip(asked, results, strict=True)), given.operand, given.result, initial=given.initial
        ).text()
    except (TypeError, ValueError) as error:
        argument = "--write" if given.write else "--read"
        parser.error(re.sub("^path:", f"argument {argument}:", str(error)))
    except OSError as error:
        parser.error(f"{given.write or given.read}: {error.strerror or error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m golden",
        description=__doc__,
        epilog="examples:\n"
        "  %(prog)s show 0.1                                        # its code in every format\n"
        "  %(prog)s show 0x5900 --format cb16                       # the value of a code\n"
        "  %(prog)s explain 1024,1x40 --operand cbfloat16 --level 2 # 1024 + 40 ones, step by step",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="{show,explain,identify,formats}")
    show = commands.add_parser("show", help="show a value or a code in every format")
    show.add_argument("value", type=_parse_value, help=_VALUE_HELP)
    show.add_argument(
        "--format",
        type=_parse_format,
        metavar="NAME",
        help="show a value in this format only; read a code in this format and show its value in every format",
    )
    _add_explain(commands.add_parser("explain", help="explain a sum of products, step by step"))
    _add_identify(commands.add_parser("identify", help="find out what a device computes, by files"))
    commands.add_parser("formats", help="print the table of the formats")
    return parser


def _add_explain(explain: argparse.ArgumentParser) -> None:
    several: dict[str, Any] = {"type": _parse_values, "metavar": "VALUES"}
    explain.add_argument("a", help=f"comma-separated factors, each {_VALUE_HELP}; 1x32 stands for 32 ones", **several)
    explain.add_argument("b", nargs="?", help="the other factors, as many (default: all 1)", **several)
    explain.add_argument("--operand", type=_parse_format, metavar="NAME", help="format of the factors")
    explain.add_argument("--level", type=int, choices=LEVELS, help="precision level (default 1)")
    explain.add_argument("--chunk", type=int, help=f"products in a chunk, 0 for any length (default {DEFAULT_CHUNK})")
    explain.add_argument(
        "--reduction",
        type=_parse_reduction,
        metavar="LINE",
        help="all of it in one line, as the output ends with it: 'operand=cb16 inner=cb16 chunk=8 outer=float32'",
    )
    explain.add_argument("--rounding", choices=[str(mode) for mode in Rounding], help="default nearest_even")
    explain.add_argument("--seed", type=int, help="of stochastic rounding (default 0)")
    explain.add_argument("--rows", type=int, default=24, help="steps to show at most (default %(default)s)")
    explain.add_argument("--alternatives", action="store_true", help="do the same sum in other ways, too")
    explain.add_argument("--picture", metavar="FILE", help="draw it, too: a file of type .svg, .png or .pdf")


def _add_identify(identify: argparse.ArgumentParser) -> None:
    file = {"type": Path, "metavar": "FILE"}
    identify.add_argument("--write", help="write the products to be run on the device: .npz or .csv", **file)  # type: ignore[arg-type]
    identify.add_argument("--read", help="read their results: .npz or .csv", **file)  # type: ignore[arg-type]
    identify.add_argument("--operand", type=_parse_format, required=True, metavar="NAME", help="format of the factors")
    identify.add_argument("--result", type=_parse_format, metavar="NAME", help="format of the results, for --read")
    identify.add_argument(
        "--initial",
        type=_parse_format,
        metavar="NAME",
        help="format of the values to which the device adds the product",
    )
    identify.add_argument("--seed", type=int, default=0, help="of the products (default %(default)s)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments` (default: ``sys.argv[1:]``) and return the exit status.

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
    match parsed.command:
        case "formats":
            text = _formats()
        case "explain":
            text = _explain(parsed, parser)
        case "identify":
            text = _identify(parsed, parser)
        case _:
            text = _show(parsed.value, parsed.format, parser)
    try:
        print(text, flush=True)
    except OSError as error:
        parser.error(f"standard output: cannot be written: {error}")
    return 0
