"""Standard cells in a liberty file: areas, capacitances, and tables of delays."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Arc", "Cell", "Library", "Lookup", "Pin", "StandardCells", "read_liberty"]

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\\\n", re.DOTALL)
_TOKEN = re.compile(r'"(?P<text>[^"]*)"|(?P<word>[^\s(){}:;,"]+)|(?P<mark>[(){}:;,])', re.DOTALL)
# The usual order of the variables, for a table whose template the file lacks.
_USUAL = {"constraint": ("related_pin_transition", "constrained_pin_transition")}
_DELAYS = ("input_net_transition", "total_output_net_capacitance")


@dataclass
class _Group:
    """``name(arguments) { ... }``: attributes by name, and the groups inside."""

    kind: str
    arguments: list[str]
    attributes: dict[str, list[str]] = field(default_factory=dict)
    groups: list[_Group] = field(default_factory=list)

    def those(self, *kinds: str) -> Iterator[_Group]:
        return (group for group in self.groups if group.kind in kinds)

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, [default])[0]


@dataclass(frozen=True)
class Lookup:
    """A table of two variables, interpolated between its points and extrapolated beyond them from the last pair."""

    axes: tuple[Any, ...]
    values: Any
    variables: tuple[str, ...]

    def __call__(self, **given: float) -> float:
        """Return the value for the variables, in the file's units; a variable that the table lacks is ignored."""
        found = self.values
        for axis, variable in zip(self.axes, self.variables, strict=True):
            if len(axis) == 1:
                found = found[0]
                continue
            at = int(np.clip(np.searchsorted(axis, given[variable]) - 1, 0, len(axis) - 2))
            part = (given[variable] - axis[at]) / (axis[at + 1] - axis[at])
            found = found[at] + part * (found[at + 1] - found[at])
        return float(found)


@dataclass(frozen=True)
class Arc:
    """A path through a cell, or a constraint between two of its pins: tables by their names in the file."""

    related: str
    sense: str
    kind: str
    tables: dict[str, Lookup]


@dataclass(frozen=True)
class Pin:
    """A pin of a cell."""

    is_output: bool
    capacitance: float
    function: str
    arcs: tuple[Arc, ...]


@dataclass(frozen=True)
class Cell:
    """A cell; ``area`` in square micrometres."""

    name: str
    area: float
    pins: dict[str, Pin]
    is_flip_flop: bool
    is_usable: bool

    @property
    def is_nand2(self) -> bool:
        """Whether it is a NAND of two inputs."""
        outputs = [pin for pin in self.pins.values() if pin.is_output]
        inputs = sorted(name for name, pin in self.pins.items() if not pin.is_output)
        if len(outputs) != 1 or len(inputs) != 2:
            return False
        text = re.sub(r"\s+", "", outputs[0].function)
        both = [f"{a}{mark}{b}" for mark in "*&" for a, b in (inputs, inputs[::-1])]
        either = [f"({mark}{a}){sign}({mark}{b})" for mark in "!" for sign in "+|" for a, b in (inputs, inputs[::-1])]
        plain = [f"!{a}{sign}!{b}" for sign in "+|" for a, b in (inputs, inputs[::-1])]
        wrapped = [form for each in both for form in (f"!({each})", f"({each})'", f"(!({each}))")]
        return text in {*wrapped, *either, *plain, *(f"({each})" for each in plain)}

    @property
    def clocks(self) -> set[str]:
        """The clock pins to which its setup times refer."""
        return {arc.related for pin in self.pins.values() for arc in pin.arcs if arc.kind.startswith("setup_")}

    @property
    def is_buffer(self) -> bool:
        """Whether it passes its only input on, and may be used."""
        inputs = [name for name, pin in self.pins.items() if not pin.is_output]
        functions = [pin.function.strip("() ") for pin in self.pins.values() if pin.is_output]
        has_delay = all(arc.tables for pin in self.pins.values() for arc in pin.arcs)
        return self.is_usable and len(inputs) == 1 and functions == inputs and has_delay

    def delay(self, load: float) -> float:
        """Return the longest delay from any pin for a load, for a steep edge."""
        tables = (table for pin in self.pins.values() for arc in pin.arcs for kind, table in arc.tables.items()
                  if kind.startswith("cell_"))  # fmt: skip
        given = {"total_output_net_capacitance": load}
        return max(table(**dict.fromkeys(table.variables, 0.0) | given) for table in tables)


@dataclass(frozen=True)
class Library:
    """The cells of a file that a user names.

    Parameters
    ----------
    name : str
        The library's name in the file.
    cells : dict
    nanoseconds : float
        The unit of time.
    digest : str
        16 hexadecimal digits of the file's hash.
    text : str
        The file, with templates for the tables whose templates it lacks.
    """

    name: str
    cells: dict[str, Cell]
    nanoseconds: float
    digest: str
    text: str

    @property
    def nand2(self) -> Cell:
        """The smallest NAND of two inputs."""
        return min((cell for cell in self.cells.values() if cell.is_nand2), key=lambda cell: cell.area)

    @property
    def flip_flop(self) -> Cell:
        """The smallest flip-flop with a rising clock."""
        return min((cell for cell in self.cells.values() if _is_plain(cell)), key=lambda cell: cell.area)


def _is_plain(cell: Cell) -> bool:
    kinds = {arc.kind for pin in cell.pins.values() for arc in pin.arcs}
    return cell.is_flip_flop and cell.is_usable and {"rising_edge", "setup_rising"} <= kinds


@dataclass(frozen=True, kw_only=True)
class StandardCells:
    """A library in a report: its name, its digest, and the name and area of its NAND, in square micrometres."""

    family: str = "asic"
    library: str
    digest: str
    nand2: str
    nand2_area: float

    @classmethod
    def of(cls, library: Library) -> StandardCells:
        """Return the entry for a library that has been read."""
        nand2 = library.nand2
        return cls(library=library.name, digest=library.digest, nand2=nand2.name, nand2_area=nand2.area)

    def __str__(self) -> str:
        return f"standard cells {self.library}, before layout"


def read_liberty(path: Path) -> Library:
    """Read a liberty file, plain or compressed by gzip.

    Raises
    ------
    ValueError
        If it is not a liberty file, or lacks a two-input NAND or a flip-flop with a rising clock and tables of delays.
    """
    if not path.is_file():
        raise ValueError(f"liberty: got {path}, must be a file of standard cells (.lib or .lib.gz)")
    raw = path.read_bytes()
    try:
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8", "replace")
        top = _parse(text)
    except (OSError, EOFError, IndexError, ValueError) as error:
        raise ValueError(f"liberty: got {path}, which cannot be read as a liberty file: {error}") from None
    templates = {
        group.arguments[0]: tuple(group.get(f"variable_{at}") for at in (1, 2, 3) if group.get(f"variable_{at}"))
        for group in top.those("lu_table_template")
    }
    cells = {cell.name: cell for group in top.those("cell") if (cell := _cell(group, templates)).name}
    library = Library(
        top.arguments[0],
        cells,
        _nanoseconds(top),
        hashlib.sha256(raw).hexdigest()[:16],
        _completed(text, top, templates),
    )
    for what, test in (("two-input NAND", lambda cell: cell.is_nand2), ("flip-flop with a rising clock", _is_plain)):
        if not any(map(test, cells.values())):
            raise ValueError(f"liberty: got {path} without a {what} among {len(cells)} cells, must have one")
    return library


def _nanoseconds(top: _Group) -> float:
    number, unit = re.fullmatch(r"([\d.]+)\s*(ns|ps)", top.get("time_unit", "1ns")).groups()  # type: ignore[union-attr]
    return float(number) * {"ns": 1, "ps": 1e-3}[unit]


def _parse(text: str) -> _Group:
    """Return the group at the top: the library."""
    stack = [_Group("", [])]
    words: list[str] = []
    for token in _TOKEN.finditer(_COMMENT.sub(" ", text)):
        mark = token["mark"]
        if mark is None:
            words.append(token["text"] if token["word"] is None else token["word"])
        elif mark == "{":
            stack.append(_Group(words[0], words[1:]))
            words = []
        elif mark == "}":
            group = stack.pop()
            stack[-1].groups.append(group)
            words = []
        elif mark == ";" and words:
            stack[-1].attributes[words[0]] = words[1:]
            words = []
        elif mark == ")" and words and token.string[token.end() :].lstrip(" \t")[:1] == "\n" and len(words) > 1:
            # In some files such an attribute ends with the line.
            stack[-1].attributes[words[0]] = words[1:]
            words = []
    if len(stack) != 1 or not stack[0].groups or stack[0].groups[0].kind != "library":
        raise ValueError("it has no group `library` that ends")
    return stack[0].groups[0]


def _cell(group: _Group, templates: dict[str, tuple[str, ...]]) -> Cell:
    pins = {}
    for pin in group.those("pin"):
        arcs = tuple(_arc(timing, templates) for timing in pin.those("timing"))
        capacitance = float(pin.get("capacitance", "0"))
        pins[pin.arguments[0]] = Pin(pin.get("direction") == "output", capacitance, pin.get("function"), arcs)
    is_usable = group.get("dont_use", "false") != "true"
    return Cell(group.arguments[0] if group.arguments else "", float(group.get("area", "0")), pins,
                any(group.those("ff")), is_usable)  # fmt: skip


def _arc(timing: _Group, templates: dict[str, tuple[str, ...]]) -> Arc:
    tables = {}
    for group in timing.groups:
        if "values" in group.attributes:
            usual = next((order for kind, order in _USUAL.items() if kind in group.kind), _DELAYS)
            tables[group.kind] = _lookup(group, templates.get(group.arguments[0] if group.arguments else "", usual))
    kind = timing.get("timing_type", "combinational")
    return Arc(timing.get("related_pin"), timing.get("timing_sense", "non_unate"), kind, tables)


def _numbers(texts: list[str]) -> Any:
    return np.array([float(number) for text in texts for number in text.replace(",", " ").split()])


def _lookup(group: _Group, variables: tuple[str, ...]) -> Lookup:
    axes = tuple(_numbers(group.attributes[f"index_{at}"]) for at in (1, 2) if f"index_{at}" in group.attributes)
    values = _numbers(group.attributes["values"])
    if not axes:
        return Lookup((np.zeros(1),), values[:1], ("",))
    return Lookup(axes, values.reshape([len(axis) for axis in axes]), variables[: len(axes)])


def _completed(text: str, top: _Group, templates: dict[str, tuple[str, ...]]) -> str:
    """Return the file with a template for each table of delays that has none: ABC refuses it otherwise."""
    tables = (
        table
        for cell in top.those("cell") for pin in cell.those("pin") for timing in pin.those("timing")
        for table in timing.those("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    )  # fmt: skip
    lacking = {name: table for table in tables for name in table.arguments if name not in templates | {"scalar": ()}}
    made = ""
    for name, table in sorted(lacking.items()):
        # ABC requires as many points in a template as in its tables.
        points = {
            f"index_{at}": variable for at, variable in enumerate(_DELAYS, 1) if f"index_{at}" in table.attributes
        }
        inside = "".join(f" variable_{index[-1]} : {variable} ;" for index, variable in points.items())
        inside += "".join(f' {index}("{", ".join(map(str, _numbers(table.attributes[index])))}") ;' for index in points)
        made += f"  lu_table_template({name}) {{{inside} }}\n"
    found = re.search(r"^\s*cell\s*\(", text, re.MULTILINE)
    return text if not made or not found else text[: found.start()] + "\n" + made + text[found.start() :]
