"""Faults of golden's source: small changes, made from the syntax tree of Python and from the tokens of C++.

A compiler says which changes of C++ are C++.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from itertools import accumulate

from .fault import ROOT, Fault, fault_at

_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
#: Folders below each area that are judged elsewhere, only hand on names, or need a device.
_APART = {
    "golden": ("golden/torch/", "golden/modelzoo/", "golden/cuda/"),
    "golden/torch": ("golden/torch/products/gpu/",),
}


def python_faults(area: str) -> list[Fault]:
    """Return every fault below a folder, such as ``golden/torch``, in the order of file and place."""
    found: list[Fault] = []
    for path in sorted((ROOT / area).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if not file.startswith(_APART.get(area, ())):
            found += _PythonFaults(file, path.read_text(encoding="utf-8")).all()
    return sorted(found, key=lambda fault: (fault.file, fault.start, fault.new))


class _PythonFaults:
    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        lines = text.splitlines(keepends=True)
        assert text.isascii() or all(line.isascii() or '"""' in line or "#" in line or '"' in line for line in lines)
        self.lines = [0, *accumulate(map(len, lines))]
        self.encoded = [line.encode() for line in lines]

    def all(self) -> list[Fault]:
        return [fault for node in self._nodes(ast.parse(self.text)) for fault in self._of(node)]

    def _nodes(self, node: ast.AST) -> Iterator[ast.AST]:
        """Give the nodes that compute: no docstrings, annotations and their imports, decorators, texts of messages or
        lists of names."""
        left_out = isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
        is_overload = isinstance(node, ast.FunctionDef) and "overload" in map(ast.unparse, node.decorator_list)
        is_of_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse
        if left_out or is_overload or is_of_types:
            return
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._nodes(child)

    def _place(self, line: int, column: int) -> int:
        return self.lines[line - 1] + len(self.encoded[line - 1][:column].decode())

    def _fault(self, node: ast.expr | ast.stmt, kind: str, new: ast.AST | str) -> Fault:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._place(node.lineno, node.col_offset)
        end = self._place(node.end_lineno, node.end_col_offset)
        text = new if isinstance(new, str) else ast.unparse(new)
        return fault_at(self.file, self.text, start, end, kind, text if kind == "statement" else f"({text})")

    def _of(self, node: ast.AST) -> Iterator[Fault]:
        changed = copy.copy(node)
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
                changed.ops = [_COMPARISONS[type(operator)]()]
                yield self._fault(node, "comparison", changed)
            case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
                changed.op = _OPERATORS[type(operator)]()
                yield self._fault(node, "arithmetic", changed)
            case ast.BoolOp(op=operator):
                changed.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
                yield self._fault(node, "logic", changed)
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
                yield self._fault(node, "logic", node.operand)
            case ast.Constant(value=bool(value)):
                yield self._fault(node, "constant", str(not value))
            case ast.Constant(value=int(value) | float(value)):
                yield self._fault(node, "constant", str(value + 1))
            case ast.IfExp():
                yield self._fault(node, "condition", node.body)
                yield self._fault(node, "condition", node.orelse)
            case ast.If(test=test) | ast.While(test=test):
                yield self._fault(test, "condition", f"False and ({ast.unparse(test)})")
                if isinstance(node, ast.If):
                    yield self._fault(test, "condition", f"True or ({ast.unparse(test)})")
            case ast.Raise():
                yield self._fault(node, "statement", "pass")
            case ast.Expr(value=ast.Call()) | ast.AugAssign():
                yield self._fault(node, "statement", "pass")
            case ast.Call(args=[first, second, *rest]) if ast.unparse(first) != ast.unparse(second):
                # Swapped, the arguments of these give an error at once, or the same.
                known = isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "getattr", "zip")
                if not known and not any(isinstance(each, ast.Starred) for each in (first, second)):
                    changed.args = [second, first, *rest]
                    yield self._fault(node, "operands", changed)


# -- C++

_KERNELS = "golden/kernels/source"
# Comments, strings, preprocessor lines, namespaces and assertions that stop the compiler get no faults.
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
    for path in sorted((ROOT / _KERNELS).glob("*.*")):
        text = path.read_text(encoding="utf-8")
        found += _cpp_faults(f"{_KERNELS}/{path.name}", text)
    return found


def _cpp_faults(file: str, text: str) -> Iterator[Fault]:
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
