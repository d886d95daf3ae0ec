"""CXXRTL's C++ with plain integers in place of its templates: a compiler is done with it in half the time.

CXXRTL writes every operation as a call of a template, and a compiler needs a second to fold the thousands of calls of a
unit into a few kilobytes of code. Here each expression of up to 64 bits is written as integers. Wider and
unknown operations stay as they are: both forms understand each other.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

from hdl.simulation.integer_operations import LONGEST, Value, cut, operation

__all__ = ["with_integers"]

_WORD = 32
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|0x[0-9a-f]+u|\d+u?|.)")
_MEMBER = re.compile(r"^\t(?:/\*\w+\*/ )?(value|wire)<(\d+)> (\w+)", re.MULTILINE)
_LOCAL = re.compile(r"value<(\d+)> (\w+);")
_INITIALISED = re.compile(r"value<(\d+)> (\w+) = ")
_INDEX = re.compile(r"(auto \w+ = memory_index\()(.*)(, \d+, \d+\);)")
_UPDATED = re.compile(r"(\w+\.update\(\w+\.index, )(.*)(, \d+\);)")
_ASSIGNED = re.compile(r"(?P<target>[^=]*?[\w)]) = (?P<value>.*);")
_PLACE = re.compile(r"(\w+)(\.next)?(?:\.slice<(\d+)(?:,(\d+))?>\(\))?")
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
#: Zeros, with which registers start anyway. Nobody calls CXXRTL's reset() again.
_CLEARED = re.compile(r"^\t\w+ = wire<\d+>\{0u(?:,0u)*\};\n", re.MULTILINE)


class _Unknown(Exception):
    """Not an expression of up to 64 bits."""


@dataclass
class _Names:
    """The known names.

    Parameters
    ----------
    places : dict of str to (bool, int)
        Values that CXXRTL's classes hold: whether it is a register, and its width.
    integers : dict of str to int
        Widths of variables that are integers here.
    """

    places: dict[str, tuple[bool, int]]
    integers: dict[str, int] = field(default_factory=dict)


class _Parser:
    """Reads one expression."""

    def __init__(self, text: str, names: _Names) -> None:
        self._tokens = [*_TOKEN.findall(text), ""]
        self._at = 0
        self._names = names

    def read(self) -> Value:
        """Return the only expression."""
        (value,) = self.read_all(1)
        return value

    def read_all(self, count: int) -> list[Value]:
        """Return `count` expressions between commas."""
        values = [self._expression()]
        while self._is_next(","):
            values.append(self._expression())
        if self._tokens[self._at] or len(values) != count:
            raise _Unknown
        return values

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            if self._next() != token:
                raise _Unknown

    def _is_next(self, token: str) -> bool:
        if self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _number(self) -> int:
        token = self._next()
        try:
            return int(token.removesuffix("u"), 0)
        except ValueError:
            raise _Unknown from None

    def _argument(self) -> int:
        self._expect("<")
        number = self._number()
        self._expect(">")
        return number

    def _expression(self) -> Value:
        if self._is_next("("):
            value = self._choice()
        else:
            name = self._next()
            if name == "value":
                value = self._constant()
            elif self._tokens[self._at] == "<":
                value = self._operation(name)
            else:
                return self._parts_of(name)
        return self._further(value)

    def _choice(self) -> Value:
        value = self._expression()
        if self._is_next("?"):
            one = self._expression()
            self._expect(":")
            other = self._expression()
            if one.width != other.width:
                raise _Unknown
            value = Value(f"({value.text} ? {one.text} : {other.text})", one.width)
        self._expect(")")
        return value

    def _constant(self) -> Value:
        width = self._argument()
        self._expect("{")
        value, place = 0, 0
        while not self._is_next("}"):
            value |= self._number() << place
            place += _WORD
            self._is_next(",")
        if not 0 < width <= LONGEST or value >> width:
            raise _Unknown
        return Value(f"{value:#x}ull", width)

    def _operation(self, name: str) -> Value:
        width = self._argument()
        self._expect("(")
        given = [self._expression()]
        while self._is_next(","):
            given.append(self._expression())
        self._expect(")")
        made = operation(name, self._short(width), given)
        if made is None:
            raise _Unknown
        return made

    def _parts_of(self, name: str) -> Value:
        if name in self._names.integers:
            return self._further(Value(name, self._names.integers[name]))
        if name not in self._names.places:
            raise _Unknown
        is_register, width = self._names.places[name]
        if is_register:
            self._expect(".", "curr")
            name += ".curr"
        if width > LONGEST:
            self._expect(".", "slice")
            high, low = self._span()
            return self._further(Value(f"{name}.slice<{high},{low}>().val().integer()", self._short(high - low + 1)))
        text = f"uint64_t({name}.data[0])" if width <= _WORD else f"{name}.integer()"
        return self._further(Value(text, self._short(width)))

    def _short(self, width: int) -> int:
        if not 0 < width <= LONGEST:
            raise _Unknown
        return width

    def _span(self) -> tuple[int, int]:
        self._expect("<")
        high = low = self._number()
        if self._is_next(","):
            low = self._number()
        self._expect(">", "(", ")")
        return high, low

    def _further(self, value: Value) -> Value:
        while self._is_next("."):
            match self._next():
                case "val":
                    self._expect("(", ")")
                case "slice":
                    high, low = self._span()
                    if high >= value.width:
                        raise _Unknown
                    moved = f"({value.text} >> {low})" if low else value.text
                    value = Value(cut(moved, high - low + 1) if high + 1 < value.width else moved, high - low + 1)
                case "concat":
                    self._expect("(")
                    low_part = self._expression()
                    self._expect(")")
                    width = self._short(value.width + low_part.width)
                    value = Value(f"({value.text} << {low_part.width} | {low_part.text})", width)
                case "repeat":
                    width = self._short(self._argument())
                    self._expect("(", ")")
                    if value.width != 1:
                        raise _Unknown
                    value = Value(cut(f"(0ull - {value.text})", width), width)
                case _:
                    raise _Unknown
        return value


def _assigned(target: str, value: Value, names: _Names) -> str:
    """Return an assignment to the C++ place `target`."""
    place = _PLACE.fullmatch(target)
    if not place or place[1] not in names.integers:
        return f"{target} = value<{value.width}>::of({value.text});"
    name, width = place[1], names.integers[place[1]]
    if place[3] is None:
        if value.width != width:
            raise _Unknown
        return f"{name} = {value.text};"
    high, low = int(place[3]), int(place[4] or place[3])
    if value.width != high - low + 1:
        raise _Unknown
    kept = ((1 << width) - 1) & ~(((1 << value.width) - 1) << low)
    return f"{name} = ({name} & {kept:#x}ull) | {value.text} << {low};"


def _statement(line: str, names: _Names) -> str:
    """Return a statement with integers, as far as it can be."""
    if (local := _LOCAL.fullmatch(line)) and local[2] in names.integers:
        return f"uint64_t {local[2]} = 0;"
    if (assigned := _ASSIGNED.fullmatch(line)) and " " not in (target := assigned["target"]):
        try:
            return _assigned(target, _Parser(assigned["value"], names).read(), names)
        except _Unknown:
            whole = _with_values(assigned["value"], names)
            if not (place := _PLACE.fullmatch(target)) or place[1] not in names.integers:
                return f"{target} = {whole};"
            high, low = (int(place[4] or place[3]), int(place[3])) if place[3] else (names.integers[place[1]] - 1, 0)
            return _assigned(target, Value(f"({whole}).val().integer()", abs(high - low) + 1), names)
    for pattern, count in ((_INDEX, 1), (_UPDATED, 2)):
        if call := pattern.fullmatch(line):
            with contextlib.suppress(_Unknown):
                given = _Parser(call[2], names).read_all(count)
                return call[1] + ", ".join(f"value<{one.width}>::of({one.text})" for one in given) + call[3]
    return _with_values(line, names)


def _with_values(text: str, names: _Names) -> str:
    """Return C++ with only its integer variables rewritten."""

    def value(name: re.Match[str]) -> str:
        width = names.integers.get(name[0])
        return f"value<{width}>::of({name[0]})" if width else name[0]

    return _NAME.sub(value, text)


def with_integers(source: str, top: str) -> str:
    """Return CXXRTL's C++ with integers where values of up to 64 bits are computed.

    Parameters
    ----------
    source : str
        What ``write_cxxrtl -g0`` wrote.
    top : str
        The module whose evaluation is rewritten.
    """
    head = f"bool p_{top}::eval(performer *performer) {{\n"
    start = source.index(head) + len(head)
    end = source.index("\n}\n", start)
    lines = [line for each in source[start:end].splitlines() if (line := each.strip()) and not line.startswith("//")]
    declared = source[source.index(f"struct p_{top} : public module {{") : start]
    names = _Names({name: (kind == "wire", int(width)) for kind, width, name in _MEMBER.findall(declared)})
    joined = set()
    for line in lines:
        if made := _INITIALISED.match(line):
            names.places[made[2]] = (False, int(made[1]))
        elif (assigned := _ASSIGNED.fullmatch(line)) and ".concat(" in assigned["target"]:
            joined |= set(_NAME.findall(assigned["target"]))
    for line in lines:
        if local := _LOCAL.fullmatch(line):
            width = int(local[1])
            if 0 < width <= LONGEST and local[2] not in joined:
                names.integers[local[2]] = width
            else:
                names.places[local[2]] = (False, width)
    body = "\n".join(f"\t{_statement(line, names)}" for line in lines)
    return _CLEARED.sub("", source[:start] + body + source[end:])
