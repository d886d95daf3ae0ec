"""Hashes of the sources of figures: of the model's files that a program runs, and of the Verilog of the RTL.

The files are the closure of the program's imports, at the top of a file or inside a function, with the C++ and
templates beside them. The program's own files do not count, nor do comments and docstrings. For the RTL, its generated
Verilog counts: the hash changes with the Verilog of any released unit, or of the one unit measured on an FPGA. If a
program runs only converters and arithmetic cores, their files count instead, as it may run formats that no unit has.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import resolve_name
from itertools import chain
from pathlib import Path

from tools.paths import ROOT

__all__ = ["MEASURED", "RELEASED", "code_of", "files_of", "hash_of", "unit_of", "unit_source", "unparsed"]

#: The hash of the Verilog of every released unit, header included; a test compares it.
RELEASED = ROOT / "hdl" / "released.json"
#: The hash of the Verilog of every unit that is measured on an FPGA; a test compares it, too.
MEASURED = ROOT / "hdl" / "measured.json"
_UNIT = "hdl:"
_DIGITS = 16
#: Arithmetic without state; and the modules that make or run netlists of it, which do not count by themselves.
_ARITHMETIC = ("hdl.converter", "hdl.cores.", "hdl.float_shape")
_MAKERS = ("hdl.definitions", "hdl.parameters", "hdl.pipeline", "hdl.simulation.", "hdl.verilog")
_ON_THE_WAY = ("hdl/", "hdl.cores/")
_PROJECT = {"golden", "hdl", "lab", "sim", "tests", "tools"}
_C = (".cpp", ".cu", ".h")
_BESIDE = (*_C, ".css", ".jinja", ".js", ".json", ".yaml")
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def unit_source(unit: str) -> str:
    """Return the name for `hash_of` of one unit of `MEASURED` or `RELEASED`."""
    return f"{_UNIT}{unit}"


def unit_of(source: str) -> str:
    """Return the unit whose Verilog a source names; empty for a program."""
    return source.removeprefix(_UNIT) if source.startswith(_UNIT) else ""


@cache
def hash_of(source: str, root: Path = ROOT) -> str:
    """Return the hash of a source.

    Parameters
    ----------
    source : str
        A module, as after ``python -m``; ``golden.*`` for every module of a package; or a name from `unit_source`.
        Imports by a name in a string are not followed: such a module is a separate source.
    root : Path
        The repository.

    Returns
    -------
    str
        16 hexadecimal digits; empty if there is no such module or unit.
    """
    if unit := unit_of(source):
        known: dict[str, str] = {}
        for file in (RELEASED, MEASURED):  # a unit that is both is known by its Verilog without the header
            known |= json.loads((root / file.relative_to(ROOT)).read_text(encoding="utf-8"))
        return known.get(unit, "")[:_DIGITS]
    files = files_of(source, root)
    digest = hashlib.sha256()
    for path, code in sorted(files.items()):
        digest.update(f"{path}\0{code}\0".encode())
    return digest.hexdigest()[:_DIGITS] if files else ""


@cache
def files_of(source: str, root: Path = ROOT) -> Mapping[str, str]:
    """Return the code of the files that `hash_of` hashes, by path."""
    package = source.removesuffix(".*")
    if package != source:
        paths = (root / package.replace(".", "/")).rglob("*.py")
        todo = [".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    else:
        todo = [f"{source}.__main__" if _path(f"{source}.__main__", root) else source]
    reached, files = set[str](), dict[str, str]()
    while todo:
        if (module := todo.pop()) not in reached and _path(module.rstrip("/"), root):
            reached.add(module)
            todo += _reached_from(module, root)
    # A whole package comes after the same package on the way to a module: it has more code.
    for module in sorted(reached, key=lambda module: not module.endswith("/")):
        files |= _files(module, root)
    verilog = RELEASED.relative_to(ROOT).as_posix()
    return {name: code for name, code in files.items() if name == verilog or verilog not in files or name[:3] != "hdl"}


@cache
def _path(module: str, root: Path) -> Path | None:
    """Return the file of a module; None if there is none."""
    path = root.joinpath(*module.split("."))
    return next((each for each in (path / "__init__.py", path.with_suffix(".py")) if each.is_file()), None)


@cache
def _reached_from(module: str, root: Path) -> frozenset[str]:
    """Return the modules that a module imports, and with a slash at the end the packages on the way to it.

    Such a package is run, but the names that it re-exports count only where they are used.
    """
    path = _path(module.rstrip("/"), root)
    if path is None or (module.startswith("hdl") and not module.startswith(_ARITHMETIC)):
        return frozenset()
    if module.endswith("/"):
        about = [node for node in _tree(path).body if _is_about(node)]
        handed_on = {each.value for node in about for each in ast.walk(node) if isinstance(each, ast.Constant)}
        imports = _imports(path, module.rstrip("/"))
        return frozenset(_definer(name, root) for local in imports.keys() - handed_on for name in imports[local])
    parts = module.split(".")
    on_the_way = (f"{'.'.join(parts[:count])}/" for count in range(1, len(parts)))
    return frozenset([*on_the_way, *(_definer(name, root) for name in _names(path, module))])


@cache
def _files(module: str, root: Path) -> Mapping[str, str]:
    """Return the code of a module that counts: none for a program, the Verilog for the RTL."""
    is_unit = module.startswith("hdl") and not module.startswith(_ARITHMETIC)
    path = root / RELEASED.relative_to(ROOT) if is_unit else _path(module.rstrip("/"), root)
    if path is None or not module.startswith(("golden", "hdl")) or module.startswith((*_MAKERS, *_ON_THE_WAY)):
        return {}
    if module.endswith("/"):
        apart = (ast.Import, ast.ImportFrom, ast.Expr)
        own = [unparsed(node) for node in _tree(path).body if not isinstance(node, apart) and not _is_about(node)]
        return {path.relative_to(root).as_posix(): "\n".join(own)} if own else {}
    paths = [path, *(_beside(path.parent) if module.startswith("golden") else ())]
    names = {each.relative_to(root).as_posix(): each for each in paths}
    return {name: code_of(name, each.read_text(encoding="utf-8")) for name, each in names.items()}


def unparsed(node: ast.stmt) -> str:
    """Return the code of a statement, the same from every version of Python."""
    text = ast.unparse(node)
    # Python 3.12 chooses other quotation marks around a formatted text than 3.11.
    return text.replace('"', "'") if any(isinstance(each, ast.JoinedStr) for each in ast.walk(node)) else text


@cache
def _definer(name: str, root: Path) -> str:
    """Return the module that defines a dotted name, which packages may re-export; a package if it names one."""
    module, *names = name.split(".")
    while names and (path := _path(module, root)) and path.name == "__init__.py":
        if _path(f"{module}.{names[0]}", root):
            module = f"{module}.{names.pop(0)}"
        elif len(origins := _imports(path, module).get(names[0], ())) == 1:
            return _definer(".".join([*origins, *names[1:]]), root)
        else:
            break
    # A file that asks only for a package's version does not depend on everything the package exports.
    return f"{module}/" if names and names[0].startswith("__") else module


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _beside(package: Path) -> tuple[Path, ...]:
    """Return the files of a package that are not Python, without files of packages below it."""

    def home(path: Path) -> Path:
        return next(folder for folder in path.parents if (folder / "__init__.py").is_file())

    return tuple(path for path in package.rglob("*") if path.suffix in _BESIDE and home(path) == package)


@cache
def _imports(path: Path, module: str) -> Mapping[str, set[str]]:
    """Return the full names that imports of the project bind, by local name; functions may share a local name."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = defaultdict[str, set[str]](set)
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name].add(alias.name)
                if not alias.asname:
                    top = alias.name.partition(".")[0]
                    found[top].add(top)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                found[alias.asname or alias.name].add(f"{origin}.{alias.name}")
    inside = {local: {name for name in names if name.split(".")[0] in _PROJECT} for local, names in found.items()}
    return {local: names for local, names in inside.items() if names}


@cache
def _names(path: Path, module: str) -> frozenset[str]:
    """Return the full names of the project that a file uses, such as ``golden.matmul`` and not all of `golden`."""
    imports = _imports(path, module)
    used = set(_used(_tree(path), imports))
    unused = {name for name in chain(*imports.values()) if not any(f"{each}.".startswith(f"{name}.") for each in used)}
    return frozenset(used | unused)


def _used(node: ast.AST, imports: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the longest dotted names below a node that begin with an import."""
    names, inner = list[str](), node
    while isinstance(inner, ast.Attribute):
        names.insert(0, inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        for name in imports.get(inner.id, ()):
            yield ".".join([name, *names])
    else:
        for child in ast.iter_child_nodes(node):
            yield from _used(child, imports)


def _is_about(node: ast.stmt) -> bool:
    """Return whether a statement sets a name such as ``__all__``."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__")


@cache
def code_of(path: str, text: str) -> str:
    """Return the lines of code in a file: no comments, docstrings, empty lines or trailing blanks."""
    lines = _C_COMMENT.sub("", text).splitlines() if path.endswith(_C) else text.splitlines()
    if path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                at, column = token.start
                lines[at - 1] = lines[at - 1][:column]
        for first, last in _docstrings(ast.parse(text)):
            lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines of strings that stand alone: docstrings, also of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.end_lineno or node.lineno
