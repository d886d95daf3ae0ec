"""Every figure has a provenance, and one that is older than the tree says so."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools import results
from tools.results import Result, Table, keep, kept, measured, read
from tools.sources import unit_source

TABLE = Table(("unit", "MHz"), (("`mac`", "170"), ("`vector`", "131")))
FOUND = {"conclusion": "170 MHz", "note": "Three seeds.", "tables": (TABLE,), "data": {"units": [1, 2]}}


def test_result_written_then_read_is_the_same(tmp_path: Path) -> None:
    result = measured("fpga", ["hdl"], "make fpga", **FOUND)
    assert keep(result, tmp_path) == tmp_path / "fpga.json"
    again = read("fpga", tmp_path)
    assert again.markdown() == result.markdown()
    assert (again.sources, again.data) == (result.sources, result.data)
    assert list(kept(tmp_path)) == ["fpga"]


@pytest.mark.parametrize("name", ["tool", "command", "date", "commit", "machine", "sources"])
def test_result_without_provenance_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: got"):
        replace(measured("fpga", ["hdl"]), **{name: {} if name == "sources" else ""})


def test_result_of_the_tree_as_it_is_hides_nothing() -> None:
    result = measured("fpga", ["hdl", "sim"], "make fpga", **FOUND)
    assert result.changed == []
    assert "older" not in result.markdown()
    assert "`make fpga`" in result.provenance
    assert "| `mac` | 170 |\n" in result.markdown()


def test_result_of_an_older_source_says_so_and_names_it() -> None:
    now = measured("fpga", ["hdl", "sim"], "make fpga")
    older: Result = replace(now, sources={**now.sources, "sim": "0" * 16})
    assert older.changed == ["sim"]
    assert older.markdown().count("**Measured on an older source: the code that `sim` runs has changed since.**") == 1


def test_result_of_units_of_an_older_verilog_names_them() -> None:
    known = dict.fromkeys((unit_source("mac"), unit_source("vector_mac")), "0" * 16)
    older = replace(measured("fpga", ["hdl"], "make fpga"), sources=known)
    assert older.age == "Measured on an older source: the Verilog of `mac`, `vector_mac` has changed since."


def test_result_of_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^sources: got lab.nothing, must be modules that run code of golden or hdl"):
        measured("nothing", ["sim", "lab.nothing"])


def test_result_says_how_long_the_run_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results.time, "monotonic", lambda: results._STARTED + 90.4)
    assert measured("fpga", ["hdl"]).seconds == 90
    assert measured("fpga", ["hdl"], seconds=5).seconds == 5
