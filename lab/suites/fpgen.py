"""Files of IBM's FPgen (``.fptest``): ``b32*+ =0 x +1.482D81P-109 -1.6E1281P6 +1.3A28C6P-102 -> -0.000001P-126``.

A line has operation, rounding mode, trapped exceptions if any, operands, result and flags if any. A significand's
fraction is a hexadecimal integer: 7FFFFF is 23 ones. A NaN, Q or S, has no payload; here it is the canonical one, or
the one with the lowest fraction bit.

These files differ from our contract in three points:

- A trapped overflow, underflow or invalid operation has another result, or none: such a line is left out. Traps of
  exceptions that the line does not raise change nothing, nor do traps of inexact results.
- Tininess is detected before rounding: flag u. It differs from tininess after rounding only where an inexact result
  is the smallest normal number, and there the exact result decides.
- A signalling NaN after a quiet NaN as the first operand raises nothing. By IEEE 754-2008, 7.2, every signalling NaN
  raises invalid: such a line is left out, too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import BinaryIO

import numpy as np

from golden import Flag, FloatFormat
from golden.arrays.checks import code_dtype
from golden.reference import Class, decode
from lab.suites.functions import FUNCTIONS, Function, Step, VectorError, Vectors

__all__ = ["read_fpgen"]

_HEADINGS = ("Floating point tests", "Decimal floating point tests")
_LINE = re.compile(
    r"(?P<radix>[bd])(?P<width>\d+)(?:b(?P<to>\d+))?(?P<symbol>\D\S*) +"
    r"(?P<rounding>=0|=\^|0|>|<) +(?:(?P<traps>[xuozi]+) +)?"
    r"(?P<operands>\S+(?: +\S+)*) +-> +(?P<result>\S+)(?: +(?P<raised>[xuvwozi]+))?"
)
_FORM = "operation, rounding mode, traps if any, operands, '->', result, flags if any"
_OPERATIONS = {"+": "add", "-": "sub", "*": "mul", "*+": "mulAdd"}
_RAISED = {"x": Flag.INEXACT, "u": Flag.UNDERFLOW, "o": Flag.OVERFLOW, "i": Flag.INVALID}
_CHANGES_THE_RESULT = {"u": "underflow", "o": "overflow", "i": "invalid operation"}


def read_fpgen(stream: BinaryIO, name: str, left_out: Counter[str], translated: Counter[str]) -> Iterator[Vectors]:
    """Yield the vectors of a file that our operations can express, by function.

    Parameters
    ----------
    stream : binary file
    name : str
        Of the file, for messages.
    left_out : Counter
        Counts the vectors that are not yielded, by the reason.
    translated : Counter
        Counts, by function, the vectors that are tiny only before rounding; they are yielded without the flag.

    Raises
    ------
    VectorError
        If a line does not fit the format.
    """
    found: defaultdict[str, list[tuple[list[int], int, int, int]]] = defaultdict(list)
    in_heading = False
    for number, raw in enumerate(stream, 1):
        text = raw.decode("ascii", "backslashreplace").strip()
        if number == 1 and text.startswith(_HEADINGS):
            in_heading = True
        if not text:
            in_heading = False
        if in_heading or not text:
            continue
        line = _LINE.fullmatch(text)
        if not line:
            raise VectorError(name, number, text, _FORM)
        function = _function(line)
        reason = _reason_to_leave_out(line, function)
        if function is None or reason:
            left_out[str(reason)] += 1
            continue
        try:
            codes, expected, flags = _numbers(line, function)
        except ValueError as error:
            raise VectorError(name, number, text, f"{_FORM}; {error}") from None
        if _is_tiny_before_rounding_only(function, codes, expected, flags):
            flags &= ~Flag.UNDERFLOW
            translated[function.name] += 1
        found[function.name].append((codes, expected, int(flags), number))
    for each, rows in found.items():
        yield _vectors(FUNCTIONS[each], rows)


def _function(line: re.Match[str]) -> Function | None:
    width, to, symbol = line["width"], line["to"], line["symbol"]
    return FUNCTIONS.get(f"f{width}_to_f{to}" if to else f"f{width}_{_OPERATIONS.get(symbol)}")


def _reason_to_leave_out(line: re.Match[str], function: Function | None) -> str | None:
    if line["radix"] == "d":
        return "decimal"
    if function is None:
        if line["to"]:
            return f"conversion from binary{line['width']} to binary{line['to']}"
        return f"binary{line['width']}" if line["symbol"] in _OPERATIONS else f"operation {line['symbol']}"
    if line["rounding"] != "=0":
        return f"rounding mode {line['rounding']}"
    for letter, exception in _CHANGES_THE_RESULT.items():
        if letter in (line["traps"] or "") and letter in (line["raised"] or ""):
            return f"trapped {exception}"
    if line["result"] == "#":
        return "no result given"
    if "S" in line["operands"].split() and "i" not in (line["raised"] or ""):
        return "signalling NaN that raises nothing"
    return None


def _numbers(line: re.Match[str], function: Function) -> tuple[list[int], int, Flag]:
    """Return operands, result and flags.

    Raises
    ------
    ValueError
        If the function has no such flag.
    """
    operands, raised = line["operands"].split(), line["raised"] or ""
    if len(operands) != len(function.given):
        raise ValueError(f"{len(operands)} operands, {function.name} has {len(function.given)}")
    if unknown := set(raised) - _RAISED.keys():
        raise ValueError(f"flag {min(unknown)!r} is none of {function.name}")
    flags = Flag(0)
    for letter in raised:
        flags |= _RAISED[letter]
    codes = [_code(word, fmt) for word, fmt in zip(operands, function.given, strict=True)]
    return codes, _code(line["result"], function.unit.result), flags


def _code(word: str, fmt: FloatFormat) -> int:
    """Return the code of an operand or result.

    Raises
    ------
    ValueError
        If it is not a value of the format.
    """
    if word in ("Q", "S"):
        return fmt.nan if word == "Q" else fmt.inf | 1
    digits = -(-fmt.fraction_bits // 4)
    number = re.fullmatch(rf"([+-])(?:(Inf)|(Zero)|([01])\.([0-9A-F]{{{digits}}})P(-?\d+))", word)
    if not number:
        raise ValueError(f"{word!r} is no number of {fmt}")
    sign, infinite, zero, leading, fraction, power = number.groups()
    code = fmt.sign_mask if sign == "-" else 0
    if infinite:
        return code | fmt.inf
    if zero:
        return code
    exponent, stored = int(power), int(fraction, 16)
    is_in_range = fmt.emin <= exponent <= fmt.emax if leading == "1" else exponent == fmt.emin
    if not is_in_range or stored >> fmt.fraction_bits:
        raise ValueError(f"{word!r} is no number of {fmt}")
    exponent_field = exponent + fmt.bias if leading == "1" else 0
    return code | exponent_field << fmt.fraction_bits | stored


def _is_tiny_before_rounding_only(function: Function, codes: list[int], expected: int, flags: Flag) -> bool:
    """Return whether a result that the file calls tiny would be normal with an unbounded exponent."""
    step, fmt = function.unit, function.unit.result
    if not isinstance(step, Step) or Flag.UNDERFLOW not in flags or expected & ~fmt.sign_mask != fmt.min_normal:
        return False
    arguments = function.arguments(
        *(np.array(code, code_dtype(each)) for code, each in zip(codes, function.given, strict=True))
    )
    a, b = (decode(int(code), step.operand) for code in arguments[:2])
    acc = decode(int(arguments[2]), step.accumulator)
    if any(value.kind is not Class.FINITE for value in (a, b, acc)):
        return False
    exact = abs(a.as_fraction() * b.as_fraction() + acc.as_fraction())
    smallest_normal = Fraction(2) ** fmt.emin
    # Below it, numbers with an unbounded exponent are half an ulp apart; within half of that, they round up to it.
    return smallest_normal * (1 - Fraction(1, 2 ** (fmt.precision + 1))) <= exact < smallest_normal


def _vectors(function: Function, rows: list[tuple[list[int], int, int, int]]) -> Vectors:
    codes, results, flags, lines = zip(*rows, strict=True)
    given = [
        np.array(each, code_dtype(fmt)) for each, fmt in zip(zip(*codes, strict=True), function.given, strict=True)
    ]
    return Vectors(
        function,
        given,
        np.array(results, code_dtype(function.unit.result)),
        np.array(flags, np.uint8),
        np.array(lines),
    )
