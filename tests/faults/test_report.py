"""The report of the faults: its counts, its open survivors, its exit status."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from . import report
from .fault import CAUGHT, NOT_REACHED, SAME_CODE, SURVIVED, Fault, Ruling


def ruling(result: str, by: str, line: int) -> Ruling:
    # No line of this file has a reason. The faults differ by their line.
    return Ruling(Fault("golden/flags.py", 0, 1, "constant", "2", line, "1"), result, by, 30.0)


@pytest.fixture
def published(monkeypatch):
    found = []
    monkeypatch.setattr(report, "publish", found.append)
    return found


def test_report_counts_survivors_that_no_reason_accounts_for_and_ends_with_1(published):
    found = [
        ruling(CAUGHT, "golden/test_flags.py::test_one", 1),
        ruling(SURVIVED, "3 of 9 tests that reach it", 2),
        ruling(NOT_REACHED, "", 3),
        ruling(SAME_CODE, "the compiler", 4),
    ]
    assert report.write("some-faults", {"golden": (100, found)}, 1, 60.0) == 1
    (result,) = published
    assert json.loads(json.dumps(asdict(result)))["data"]["files"]["golden"]["golden/flags.py"][CAUGHT] == 1
    table, survivors = result.tables
    assert table.rows[-1] == ("all", "1", "4", "1", "2", "2", "1", "33.3 %")
    assert [row[-1] for row in survivors.rows] == [
        "**open**: shown to 3 of 9 tests that reach it",
        "**open**: no test reaches it",
    ]
    assert "golden: 4 of 100 faults, in 2.0 processor minutes" in result.note
    assert "took 1.0 processor minutes" in result.note


def test_report_without_open_survivors_ends_with_0(published, monkeypatch):
    monkeypatch.setattr(report, "reason_of", lambda fault: "speed only")
    found = [ruling(CAUGHT, "golden/test_flags.py::test_one", 1), ruling(SURVIVED, "", 2)]
    assert report.write("some-faults", {"golden": (2, found)}, 1, 0.0) == 0
    assert published[0].tables[0].rows[-1] == ("all", "1", "2", "1", "1", "0", "0", "100.0 %")
    assert published[0].tables[1].rows == [("speed only", "flags.py 2", "1")]
    assert [tuple(each) for each in published[0].data["survivors"]] == [
        ("golden/flags.py:2", "constant", "`1` → `2`", "speed only")
    ]


def test_report_says_how_many_faults_the_machine_cannot_judge(published):
    found = {"C++": (100, [ruling(CAUGHT, "portable: flat 1", 1)])}
    report.write("some-faults", found, 1, 0.0, left_out=1234)
    report.write("some-faults", found, 1, 0.0)
    some, none = published
    assert (
        "1,234 more faults are not part of the sample: they are in files of paths that the judging machine" in some.note
    )
    assert "not part of the sample" not in none.note


def test_report_has_a_row_for_each_folder_and_the_lines_of_each_reason_once():
    files = {"golden": {"golden/a.py": {CAUGHT: 3}, "golden/mx/b.py": {SURVIVED: 3}, "golden/mx/c.py": {SURVIVED: 1}}}
    places = "golden/mx/b.py:7", "golden/mx/c.py:1", "golden/mx/b.py:7", "golden/mx/b.py:2"
    table, survivors = report.tables(files, [(place, "", "", "speed only") for place in places])
    assert [row[:5] for row in table.rows] == [
        ("`golden`", "1", "3", "3", "0"), ("`golden/mx`", "2", "4", "0", "4"), ("all", "3", "7", "3", "4")
    ]  # fmt: skip
    assert survivors.columns[1] == "files of `golden/mx`, and lines"
    assert survivors.rows == [("speed only", "b.py 2, 7; c.py 1", "4")]
