"""Imports point one way: no module imports another that imports it, be it by way of others."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

from tests.project.test_layout import ROOT, python_files


def name_of(path: Path) -> str:
    """Return the name by which a file is imported."""
    return ".".join(path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts)


def imports(path: Path, text: str, known: set[str]) -> Iterator[str]:
    """Yield the imports of a module: at its top, within functions, and for type checkers only.

    ``from package import module`` is an import of the module; the package has it from there, too.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = resolve_name("." * node.level + (node.module or ""), ".".join(path.parent.parts))
            for alias in node.names:
                module = f"{package}.{alias.name}"
                yield module if module in known else package


def circle(sources: Mapping[Path, str]) -> list[str]:
    """Return modules, each of which imports the next, until the first one returns; none if there is no circle."""
    known = {name_of(path) for path in sources}
    graph = {name_of(path): known.intersection(imports(path, text, known)) for path, text in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [*reversed(error.args[1])]
    return []


def test_modules_import_each_other_in_no_circle() -> None:
    files = python_files("golden", "hdl", "tools", "sim", "lab")
    found = circle({path: (ROOT / path).read_text(encoding="utf-8") for path in files})
    assert not found, f"{' imports '.join(found)}; move what both need into a module of its own"


@pytest.mark.parametrize(
    "back",
    [
        "from a.b import thing",
        "import a.b",
        "from a import b",
        "from . import b",
        "from .b import thing",
        "def late():\n    from a.b import thing",
        "class Late:\n    def method(self):\n        import a.b as other",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.b import Thing",
        "try:\n    from a.b import thing\nexcept ImportError:\n    thing = None",
    ],
)
def test_circle_of_imports_is_found(back: str) -> None:
    sources = {
        "a/__init__.py": "",
        "a/b.py": "import numpy\nfrom a.d import thing",
        "a/c.py": back,
        "a/d.py": "import a.c",
    }
    found = circle({Path(name): text for name, text in sources.items()})
    assert found[0] == found[-1]
    assert "a.b a.d a.c a.b" in " ".join(found + found[1:])


def test_module_that_imports_from_its_package_what_comes_from_it_is_a_circle() -> None:
    assert circle({Path("a/__init__.py"): "from a.b import thing", Path("a/b.py"): "from a import thing"})


def test_package_and_its_modules_are_no_circle() -> None:
    sources = {
        "a/__init__.py": "from a import b\nfrom a.c import thing",
        "a/b.py": "from a import c",
        "a/c.py": "import b",
    }
    assert circle({Path(name): text for name, text in sources.items()}) == []
