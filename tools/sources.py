"""A hash of what figures were measured on: of a model's code, and of the Verilog that the RTL generates.

It changes with the code, not with comments and docstrings; that of the RTL changes when a released unit does, and that
of a unit that is measured on an FPGA when its own Verilog does.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Iterator
from functools import cache

from tools.paths import ROOT

__all__ = ["AREAS", "MEASURED", "RELEASED", "code_of", "hash_of", "is_area", "unit_area"]

#: What figures are measured on, by name: a folder of the repository, and what there does not count, or a file. What
#: `hdl` generates is in a file, which a test compares with the code (tests/hdl/test_released_verilog.py).
AREAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "golden": ("golden", ("golden/cuda", "golden/torch", "golden/modelzoo")),
    "golden.cuda": ("golden/cuda", ()),
    "golden.torch": ("golden/torch", ()),
    "hdl": ("hdl/released.json", ()),
}
#: The hash of the Verilog of every released unit, header included; a test compares it.
RELEASED = ROOT / "hdl" / "released.json"
#: The hash of the Verilog of every unit that is measured on an FPGA; a test compares it, too.
MEASURED = ROOT / "hdl" / "measured.json"
_UNIT = "hdl:"
_SUFFIXES = (".py", ".cpp", ".cu", ".h", ".json")
_CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def unit_area(unit: str) -> str:
    """Return the name of the area that is one unit of `MEASURED`."""
    return f"{_UNIT}{unit}"


def is_area(area: str) -> bool:
    """Tell whether `hash_of` knows an area. Any unit is one: there may be none of that name any more."""
    return area in AREAS or area.startswith(_UNIT)


def hash_of(area: str) -> str:
    """Return the hash of an area's code.

    Parameters
    ----------
    area : str
        A name of `AREAS`, or of `unit_area`.

    Returns
    -------
    str
        16 hexadecimal digits: of the files' paths and of what `code_of` leaves of them. Of a unit, that of its Verilog;
        empty if there is no such unit.

    Raises
    ------
    ValueError
        If there is no such area.
    """
    if area.startswith(_UNIT):
        known: dict[str, str] = json.loads(MEASURED.read_text(encoding="utf-8"))
        return known.get(area.removeprefix(_UNIT), "")
    if area not in AREAS:
        raise ValueError(f"area: got {area!r}, must be one of {', '.join(AREAS)}")
    folder, apart = AREAS[area]
    digest = hashlib.sha256()
    for path, text in sorted(_files(folder)):
        if path.endswith(_SUFFIXES) and not path.startswith(tuple(f"{each}/" for each in apart)):
            digest.update(f"{path}\0{code_of(path, text)}\0".encode())
    return digest.hexdigest()[:16]


@cache
def code_of(path: str, text: str) -> str:
    """Return the lines of a file that are code: without comments, docstrings, empty lines and blanks at the end."""
    lines = _CPP_COMMENT.sub("", text).splitlines() if path.endswith((".cpp", ".cu", ".h")) else text.splitlines()
    if path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                at, column = token.start
                lines[at - 1] = lines[at - 1][:column]
        for first, last in _docstrings(ast.parse(text)):
            lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Give the first and last lines of texts that stand alone: docstrings, and those behind an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.end_lineno or node.lineno


def _files(folder: str) -> Iterator[tuple[str, str]]:
    """Give the files of a folder, or the one file, with their texts."""
    for path in [ROOT / folder, *(ROOT / folder).rglob("*")]:
        if path.suffix in _SUFFIXES:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
