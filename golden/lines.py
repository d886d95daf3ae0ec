"""Words of a line of text: formats and accumulators of other machines, there and back (`golden.Reduction.parse`)."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields
from typing import Any

from golden.accumulator import Accumulator, FusedSum
from golden.formats import FORMATS, FloatFormat, format_named
from golden.grouped_sums import GroupedSums
from golden.machine import Machine, Provenance
from golden.presets import accumulators
from golden.rounding import Rounding

__all__ = ["accumulator_of", "accumulator_text", "format_of", "format_text", "words_of"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")
_STRING = r'"(?:[^"\\]|\\.)*"'
_WORD = re.compile(rf"\s*([a-z_]+)=((?:{_STRING}|[^\s\"])+)(?=\s|$)")
_FORMAT = re.compile(rf"({_STRING}|{_PLAIN.pattern}):(\d+):(\d+):(-?\d+):([a-z]+)(?::(zeros|normal))?")


def words_of(text: str) -> dict[str, str]:
    """Return the ``key=value`` words of a line.

    Raises
    ------
    ValueError
        If something in it is no such word, or a key stands twice.
    """
    words: dict[str, str] = {}
    at = 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        if found is None or found[1] in words:
            problem = "has a key twice" if found else "must be words such as inner=cbfloat16, with blanks between them"
            raise ValueError(f"text: got {text!r}, which at {text[at:].strip()!r} {problem}")
        words[found[1]] = found[2]
        at = found.end()
    return words


def format_text(fmt: FloatFormat) -> str:
    """Return a format as a word: the name of a known one, else name, three numbers and which codes are special.

    Without subnormals, a last part says what exponent field 0 holds: ``zeros``, or ``normal`` numbers, too.
    """
    if fmt in FORMATS:
        return fmt.name
    name = fmt.name if _PLAIN.fullmatch(fmt.name) else json.dumps(fmt.name)
    holds = "" if fmt.subnormals else ":normal" if fmt.normal_zero_field else ":zeros"
    return f"{name}:{fmt.exponent_bits}:{fmt.fraction_bits}:{fmt.bias}:{fmt.specials}{holds}"


def format_of(text: str) -> FloatFormat:
    """Return the format that `format_text` has written.

    Raises
    ------
    ValueError
        If there is none.
    """
    found = _FORMAT.fullmatch(text)
    if found is None:
        return format_named(text)
    name = json.loads(found[1]) if found[1].startswith('"') else found[1]
    return FloatFormat(name, int(found[2]), int(found[3]), int(found[4]), found[5], not found[6], found[6] == "normal")


def accumulator_text(accumulator: Machine) -> str:
    """Return the name of a preset, else a JSON object of what differs from the defaults, without blanks."""
    for name, known in accumulators.items():
        if known is accumulator or (known == accumulator and known.provenance == accumulator.provenance):
            return name
    return json.dumps(_plain(accumulator), separators=(",", ":"))


def _plain(given: Any) -> Any:
    """Return an accumulator, or a part of one, in the types of JSON."""
    match given:
        case Accumulator() | GroupedSums() | FusedSum() | Provenance():
            pairs = ((each, getattr(given, each.name)) for each in fields(given))
            return {
                each.name: _plain(value) for each, value in pairs if each.default is MISSING or value != each.default
            }
        case FloatFormat():
            return format_text(given)
        case Rounding():
            return str(given)
        case tuple():
            return [_plain(each) for each in given]
    return given


def accumulator_of(text: str) -> Machine:
    """Return the accumulator that `accumulator_text` has written.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not text.startswith("{"):
        if text not in accumulators:
            raise ValueError(f"accumulator: got {text!r}, must be one of {', '.join(accumulators)}, or a JSON object")
        return accumulators[text]
    try:
        given = json.loads(text)
        if "provenance" in given:
            about = given["provenance"]
            given["provenance"] = Provenance(**about | {"formats": tuple(about["formats"])})
        if "group" in given:
            return GroupedSums(**given | {name: format_of(given[name]) for name in ("operand", "total")})
        given["join"] = _sum(given["join"])
        given["stages"] = tuple(map(_sum, given.get("stages", ())))
        given["order"] = tuple(given.get("order", ()))
        return Accumulator(**given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"accumulator: got {text!r}, must be as str(reduction) writes it ({error})") from None


def _sum(given: dict[str, Any]) -> FusedSum:
    return FusedSum(**given | {"result": format_of(given["result"])})
