"""Faults of the C++ source, made from its tokens: a compiler says which of them are C++."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .fault import ROOT, Fault, fault_at

SOURCE = "golden/kernels/source"

# What is left alone: comments, strings, preprocessor lines, namespaces, assertions that stop the compiler.
_SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*|static_assert\([^;]*;', re.M | re.S)

# clang-format puts spaces around binary operators but not around template brackets, which distinguishes the two.
_SWAPS = {
    "comparison": {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "},
    "arithmetic": {" + ": " - ", " - ": " + ", " * ": " + ", " / ": " * "},
    "bits": {" & ": " | ", " | ": " & ", " ^ ": " | ", " << ": " >> ", " >> ": " << "},
    "logic": {" && ": " || ", " || ": " && "},
    "rounding": {"Rounding::down": "Rounding::nearest", "Rounding::nearest": "Rounding::down"},
    "direction": {", DOWN)": ", UP)", ", UP)": ", DOWN)"},
    "extreme": {"std::min": "std::max", "std::max": "std::min"},
}
_NUMBER = re.compile(r"(?<![\w.'])(0x[0-9A-Fa-f]+|\d+)(?![\w.'xX])")
_REAL = re.compile(r"(?<![\w.])(\d+\.\d+)(?=f?\b)")
_NOT = re.compile(r"(?<=[(\s=])!(?=[\w(])")
_IF = re.compile(r"\bif \((?!constexpr)")
_STATEMENT = re.compile(
    r"^([ \t]+)((?:[\w.\[\]]+(?:->|::))*[\w.\[\]]+(?:\(| [-+*|&^]?= |\+\+|--)[^;{}\n]*;)[ \t]*$", re.M
)
_PAIR = re.compile(r"\b(\w+)\(([\w\[\].]+), ([\w\[\].]+)(?=[,)])")
_COMMUTES = {
    "multiply",
    "both",
    "either",
    "add",
    "min",
    "max",
    "smaller",
    "larger",
    "swap",
    "both_masks",
    "either_mask",
}


def cpp_faults() -> list[Fault]:
    """Return every fault of the kernels' source, in the order of file and place."""
    found = []
    for path in sorted((ROOT / SOURCE).glob("*.*")):
        text = path.read_text(encoding="utf-8")
        found += _faults(f"{SOURCE}/{path.name}", text)
    return found


def _faults(file: str, text: str) -> Iterator[Fault]:
    code = _SILENT.sub(lambda silent: re.sub(r"[^\n]", "\0", silent[0]), text)

    def fault(start: int, end: int, kind: str, new: str) -> Fault:
        return fault_at(file, text, start, end, kind, new)

    for kind, swaps in _SWAPS.items():
        for old, new in swaps.items():
            for match in re.finditer(re.escape(old), code):
                yield fault(match.start(), match.end(), kind, new)
    for match in _NUMBER.finditer(code):
        value = int(match[0], 0)
        if match[0].startswith("0x"):
            yield fault(match.start(), match.end(), "constant", f"{value ^ (value & -value or 1):#x}")
        else:
            yield fault(match.start(), match.end(), "constant", str(value + 1))
            if value > 1:
                yield fault(match.start(), match.end(), "constant", str(value - 1))
    for match in _REAL.finditer(code):
        yield fault(match.start(1), match.end(1), "constant", f"{float(match[1]) + 1}")
    for match in _NOT.finditer(code):
        yield fault(match.start(), match.end(), "logic", "")
    for match in _IF.finditer(code):
        end = _closing(code, match.end() - 1)
        condition = text[match.end() : end]
        yield fault(match.end(), end, "condition", f"true || ({condition})")
        yield fault(match.end(), end, "condition", f"false && ({condition})")
    for match in _STATEMENT.finditer(code):
        if not match[2].startswith(("return", "using", "static", "const", "template", "case", "break", "delete")):
            yield fault(match.start(2), match.end(2), "statement", ";")
    for match in _PAIR.finditer(code):
        if match[1] not in _COMMUTES and match[2] != match[3]:
            yield fault(match.start(2), match.end(3), "operands", f"{match[3]}, {match[2]}")


def _closing(code: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    raise AssertionError("no closing bracket")
