"""The glossary's table of who checks what names units, functions, stimulus and proofs that exist."""

import importlib
import importlib.util
import re
from typing import Any

import pytest

from hdl.catalogue import Kind
from lab.proofs.catalogue import proofs

from .test_pages import PAGES

PAGE = "docs/glossary.md"
#: Stimulus of a kind that is not the stimulus of its core.
OWN_STIMULUS = {Kind.ENGINE: "sim.engine.commands"}


def rows() -> list[list[list[str]]]:
    """Return the table of units: for each row the quoted names in its cells."""
    table = PAGES[PAGE].partition("| unit | golden twin | stimulus | proofs |\n")[2].splitlines()[1:]
    lines = [line for line in table[: table.index("")] if line.startswith("|")]
    return [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:-1]] for line in lines]


def named(path: str) -> Any:
    """Return the object of a dotted name."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_every_unit_has_the_twin_of_the_catalogue_and_stimulus_of_its_bench() -> None:
    shown = {named(unit[0]): (twin[0], stimulus[0]) for unit, twin, stimulus, _ in rows()}
    for kind in Kind:
        twin, stimulus = shown[kind.component]
        assert twin == kind.golden_twin, kind
        assert OWN_STIMULUS.get(kind, shown[kind.core.component][1]) == stimulus, kind
        assert importlib.util.find_spec(stimulus), kind
    assert all(callable(named(twin)) for twin, _ in shown.values())


def test_every_proof_of_the_table_exists_and_none_is_left_out() -> None:
    groups = [group for *_, cell in rows() for group in cell]
    ids = [proof.id for proof in proofs()]
    assert [group for group in groups if not any(id.startswith(group) for id in ids)] == []
    assert [id for id in ids if not id.startswith(tuple(groups))] == []


def test_table_has_a_row_for_each_kind_of_unit_and_for_the_step_inside() -> None:
    assert len(rows()) == len(Kind) + 1
    assert all(cell for row in rows() for cell in row)


@pytest.mark.parametrize("path", ["hdl.NoSuchUnit", "golden.no_such_function", "sim.nothing.SCENARIOS"])
def test_name_that_does_not_exist_is_found(path: str) -> None:
    with pytest.raises((AttributeError, ImportError)):
        named(path)
