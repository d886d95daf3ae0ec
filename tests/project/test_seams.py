"""Nothing outside `hdl` patches its hardware or finds its registers by the order in which they were made."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.test_layout import ROOT, python_files

#: No hardware: command lines, in which tests may stand in for what takes long, and the translation of netlists to C++.
NO_HARDWARE = ("hdl.cli", "hdl.__main__", "hdl.simulation")
PATCHES = {"patch", "setattr", "delattr", "setitem", "object", "dict", "multiple"}


def bound_to_hdl(tree: ast.AST) -> set[str]:
    """Return the names that a file gives to things of `hdl`, and to subclasses and instances made of them there."""
    names = {"hdl"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hdl":
            if node.module not in NO_HARDWARE:
                names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname for alias in node.names if alias.asname and alias.name.split(".")[0] == "hdl"}
    return names


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def name_of(node: ast.AST) -> str:
    """Return a dotted name, as far as there is one."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def patches(text: str) -> Iterator[str]:
    """Yield each place where a file changes something of `hdl`, or uses a private name there."""
    tree = ast.parse(text)
    names = bound_to_hdl(tree)

    def is_hardware(node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            return str(node.value).startswith("hdl.") and not str(node.value).startswith(NO_HARDWARE)
        name = name_of(node)
        return name.split(".")[0] in names and not name.startswith(NO_HARDWARE)

    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = name_of(node.func).rpartition(".")[2]
            # Tables of patches give their targets in tuples, so any such string beside a patch counts.
            if called in PATCHES and any(is_hardware(argument) for argument in node.args[:1]):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = getattr(node, "targets", None) or [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and is_hardware(target):
                    yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Attribute) and is_hardware(node) and is_private(node.attr):
            yield f"line {node.lineno}: {ast.unparse(node)}"
    if {"mock", "patch"} & {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
        for part in (*(getattr(node, "module", "") or "").split("."), alias.name)
    }:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_hardware(node):
                yield f"line {node.lineno}: {node.value!r} beside a mock"


def orders(text: str) -> Iterator[str]:
    """Give each place where a file stands in for what makes signals, memories or queues, to see them made."""
    tree = ast.parse(text)
    imported = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    makers = {
        alias.asname or alias.name
        for node in imported
        for alias in node.names
        if (node.module or "").split(".")[0] == "amaranth" and alias.name in ("Signal", "Memory", "SyncFIFO", "Module")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and makers & {name_of(base) for base in node.bases}:
            yield f"line {node.lineno}: class {node.name} notes what is made"
        elif isinstance(node, ast.Call):
            texts = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
            is_patch = name_of(node.func).rpartition(".")[2] in PATCHES
            if is_patch and any(each.startswith("amaranth.") for each in texts):
                yield f"line {node.lineno}: {ast.unparse(node)}"


def knows_of_hardware(path: Path) -> bool:
    return any(word in (ROOT / path).read_text(encoding="utf-8") for word in ("hdl", "amaranth"))


OUTSIDE = [path for path in python_files("tools", "sim", "lab", "tests", "golden") if knows_of_hardware(path)]


@pytest.mark.parametrize("path", OUTSIDE, ids=str)
def test_file_outside_hdl_neither_patches_hardware_nor_looks_for_registers(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not [*patches(text), *orders(text)], "use a part's ports, named state, or a subclass with another part"


@pytest.mark.parametrize(
    "text",
    [
        "from unittest.mock import patch\nwith patch('hdl.mac.multiply_accumulate.Lane', None): pass",
        "from unittest.mock import patch\ntable = (('hdl.mac.chunks.Memory', None),)\nfor each in table: patch(*each)",
        "from hdl.mac.issue import Issue\ndef test(monkeypatch): monkeypatch.setattr(Issue, 'recent', None)",
        "def test(monkeypatch): monkeypatch.setattr('hdl.mac.issue.Signal', None)",
        "import hdl.mac.issue\nhdl.mac.issue.Signal = None",
        "from hdl.mac.issue import Issue\nIssue.recent = None",
        "from hdl.mac.issue import Issue\nseen = Issue._decode",
        "from amaranth.lib.memory import Memory\nclass Seen(Memory): pass",
        "from unittest import mock\nmock.patch('amaranth.lib.fifo.Memory', None)",
    ],
)
def test_patch_of_hardware_is_found(text: str) -> None:
    assert [*patches(text), *orders(text)]


def test_part_of_a_subclass_is_no_patch() -> None:
    text = (
        "from hdl.mac.multiply_accumulate import MultiplyAccumulate\nclass Open(MultiplyAccumulate): lane_type = None"
    )
    assert not [*patches(text), *orders(text)]
