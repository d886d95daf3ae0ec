"""Functions take few parameters: what belongs together travels as one value."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

from .test_layout import parsed, python_files

MOST = 7
#: Public packages, whose functions and classes have keyword forms.
PUBLIC = ("", ".reference", ".mx", ".torch", ".torch.amp", ".torch.mx", ".torch.optim", ".torch.optim.lr_scheduler")
#: Functions with the arguments of a public one: PyTorch's own, which are found by name, and the search of `advise`.
FORWARDERS = {
    ("convolution.py", "run"),
    ("convolution.py", "convolution"),
    ("search.py", "Search.__init__"),
}


def public_names() -> set[tuple[str, str]]:
    """Return file and qualified name of the functions, and of the methods of classes, that users call."""
    found = set()
    for package in PUBLIC:
        module = importlib.import_module(f"golden{package}")
        for name in module.__all__:
            each = inspect.unwrap(getattr(module, name)) if callable(getattr(module, name)) else None
            if inspect.isfunction(each):
                found.add((_file_of(each.__module__), each.__qualname__))
            elif inspect.isclass(each):
                found |= {
                    (_file_of(base.__module__), f"{base.__name__}.{method}")
                    for base in each.__mro__
                    if base.__module__.startswith("golden.")
                    for method in vars(base)
                    if not method.startswith("_") or method == "__init__"
                }
    return found


def _file_of(module: str) -> str:
    path = Path(*module.split("."))
    return f"{path}.py" if Path(f"{path}.py").is_file() else f"{path}/__init__.py"


def long_signatures(tree: ast.AST, around: str = "") -> Iterator[str]:
    """Yield the qualified names of functions with more parameters than `MOST`; overloads are of the last form."""
    for node in ast.iter_child_nodes(tree):
        name = f"{around}{getattr(node, 'name', '')}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            count = len(given) - (given[:1] in (["self"], ["cls"], ["ctx"]))
            is_overload = any(ast.unparse(each) == "overload" for each in node.decorator_list)
            if count > MOST and not is_overload:
                yield name
            yield from long_signatures(node)
        else:
            yield from long_signatures(node, f"{name}." if isinstance(node, ast.ClassDef) else around)


def test_functions_inside_golden_have_at_most_seven_parameters() -> None:
    long = {(str(path), name) for path in python_files("golden") for name in long_signatures(parsed(path))}
    inside = {(Path(path).name, name) for path, name in long - public_names()}
    assert inside - FORWARDERS == set()
    assert inside == FORWARDERS, "an entry of FORWARDERS is not needed any more"


def test_long_signatures_are_found_in_classes_functions_and_conditions() -> None:
    eight = "a, b, c, d, *, e, f, g, h"
    source = (
        f"def one({eight}): ...\nclass Two:\n def three(self, {eight}): ...\n"
        " def four(self, a, b, c, d, e, f, g): ...\n"
        f"if x:\n async def five({eight}):\n  def six({eight}): ...\n@overload\ndef seven({eight}): ...\n"
    )
    assert sorted(long_signatures(ast.parse(source))) == ["Two.three", "five", "one", "six"]
