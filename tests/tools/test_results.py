"""Every figure has a provenance, and one that is older than the tree says so."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools import sources
from tools.results import Result, Table, keep, kept, measured, read
from tools.sources import AREAS, code_of, hash_of

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
    result = measured("fpga", ["hdl", "golden"], "make fpga", **FOUND)
    assert result.changed == []
    assert "older" not in result.markdown()
    assert "`make fpga`" in result.provenance
    assert "| `mac` | 170 |\n" in result.markdown()


def test_result_of_an_older_source_says_so_and_names_it() -> None:
    now = measured("fpga", ["hdl", "golden"], "make fpga")
    older: Result = replace(now, sources={**now.sources, "golden": "0" * 16})
    assert older.changed == ["golden"]
    assert older.markdown().count("**Measured on an older source: the code of `golden` has changed since.**") == 1


@pytest.mark.parametrize("area", AREAS)
def test_hash_of_an_area_changes_with_any_line_of_code(area: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(sources._files(AREAS[area][0]))
    assert files
    before = hash_of(area)
    (path, text) = next(file for file in files if file[0].endswith(("__init__.py", ".json")))
    changed = [(path, text + "\nMORE = 1\n"), *(file for file in files if file[0] != path)]
    monkeypatch.setattr(sources, "_files", lambda folder: iter(changed))
    assert hash_of(area) != before


def test_hash_of_unknown_area_is_an_error() -> None:
    with pytest.raises(ValueError, match="area: got 'sim', must be one of golden"):
        hash_of("sim")


def test_code_of_python_has_no_comments_and_docstrings() -> None:
    text = '"""Say."""\n\nX = "# no comment"  # one\n\n\ndef f():\n    """Say.\n\n    More.\n    """\n'
    text += '    return """text"""\n'
    assert code_of("a.py", text) == 'X = "# no comment"\ndef f():\n    return """text"""'


def test_code_of_cpp_has_no_comments() -> None:
    assert code_of("a.h", "int a; // one\n/* two\n lines */\nint b;\n") == "int a;\nint b;"
