"""The tools' findings are kept as they are, drawn, and agree with the documentation."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lab.evidence.__main__ import main
from lab.evidence.publish import PICTURE, draw
from lab.evidence.stale import Run, listed, renew, stale
from lab.mutants.judge import MUTANTS
from tools.evidence import Means, Part, Record, collect, conclusion, note, published, records_of, said
from tools.results import Result, kept, measured
from tools.sources import unit_source

PROOFS = Record(Part.STEP, Means.PROVEN, 12, "proofs", 1, "up to 6 beats")
VECTORS = Record(Part.MAC, Means.SAMPLED, 2_500_000, "vectors")
ROOT = Path(__file__).resolve().parents[2]


def test_evidence_written_then_read_is_the_same(tmp_path: Path) -> None:
    note("formal", [PROOFS], ["hdl"], tmp_path)
    assert {tool: records_of(result) for tool, result in kept(tmp_path).items()} == {"formal": [PROOFS]}


def test_evidence_of_a_new_run_replaces_what_was_published_of_that_tool_alone(tmp_path: Path) -> None:
    published = {tool: measured(tool, ["hdl"], data=[asdict(VECTORS)]) for tool in ("formal", "sim")}
    note("formal", [PROOFS], ["hdl"], tmp_path)
    found = collect(tmp_path, published)
    assert {tool: records_of(result) for tool, result in found.items()} == {"formal": [PROOFS], "sim": [VECTORS]}


@pytest.mark.parametrize("at", [0, 1, 2])
def test_evidence_conclusion_counts_what_is_wrong_in_any_record(at: int) -> None:
    means = (Means.PROVEN, Means.PROVEN, Means.FAULTS)
    records = [Record(Part.STEP, kind, 10 + place, "things", 7 * (place == at)) for place, kind in enumerate(means)]
    assert conclusion(records) == "21 proofs for every input, 12 deliberate faults judged: 7 wrong results"
    assert conclusion(records[:at]).endswith(": no wrong results")


def test_evidence_picture_shows_counts_limits_and_what_is_wrong(tmp_path: Path) -> None:
    draw([PROOFS, VECTORS], tmp_path / "evidence.svg")
    text = (tmp_path / "evidence.svg").read_text(encoding="utf-8")
    for shown in ("12 proofs", "1 wrong", "up to 6 beats", "2.5 M vectors", *Part):
        assert shown.split("-")[0] in text, shown
    assert "#c0392b" in text


def aged(result: Result, *sources: str) -> Result:
    """Return a result as it would be after a change of the measured code."""
    return replace(result, sources={**result.sources, **dict.fromkeys(sources, "0" * 16)})


def test_stale_results_are_listed_by_the_command_that_renews_them() -> None:
    proofs = measured("proofs", ["hdl"], "python -m lab.proofs", seconds=2400)
    units = dict.fromkeys(map(unit_source, ("mac", "vector_mac", "gone")), "0" * 16)
    known = {
        "proofs": aged(proofs, "hdl"),
        "speed": measured("speed", ["hdl"], "python -m lab.speed", seconds=60),
        "fpga": replace(proofs, tool="fpga", sources=units),
        "evidence: formal": aged(replace(proofs, seconds=2500), "hdl"),
        "evidence: suites": aged(replace(proofs, command="python -m lab.suites FILE...", seconds=0), "hdl"),
    }
    runs = stale(known)
    assert [(run.command, run.results, run.seconds) for run in runs] == [
        ("python -m lab.proofs", ("proofs", "evidence: formal"), 2500),
        ("python -m lab.fpga mac vector_mac --update-docs", ("fpga",), 2400),
        ("python -m lab.suites FILE...", ("evidence: suites",), 0),
    ]
    assert list(listed(runs).columns[2].cells) == ["41.7", "40.0", "by hand"]


def test_refresh_of_stale_results_runs_what_is_short_and_publishes_its_evidence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kept_of: list[list[str]] = []
    monkeypatch.setattr("lab.evidence.stale.publish", kept_of.append)
    runs = [
        Run("python -m platform", ("regression", "evidence: sim"), 100),
        Run("python -m platform --long", ("proofs",), 101),
        Run("python -m platform --unknown", ("figures",), 0),
        Run("python -m platform FILE...", ("suites",), 1),
    ]
    assert renew(runs, 100) == 0
    assert kept_of == [["sim"]]
    said = capfd.readouterr().out.splitlines()
    assert said[0] == "==> python -m platform"
    assert [line for line in said if line.startswith("left out")] == [f"left out: {run.command}" for run in runs[1:]]
    assert renew([Run("python -m no_such_module", ("evidence: sim",), 1), runs[0]], 100) == 1
    assert kept_of == [["sim"], ["sim"]]


def test_evidence_command_fails_if_something_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for records, status in (([PROOFS], 1), ([VECTORS], 0)):
        found = {"formal": measured("formal", ["hdl"], data=[asdict(record) for record in records])}
        monkeypatch.setattr("lab.evidence.__main__.collect", lambda found=found: found)
        assert main(["-o", str(tmp_path / "evidence.svg")]) == status


def test_evidence_in_the_documentation_has_nothing_wrong_and_is_what_the_picture_shows() -> None:
    records = [record for result in published().values() for record in records_of(result)]
    assert records
    assert not any(record.wrong for record in records)
    shown = PICTURE.read_text(encoding="utf-8")
    for record in records:
        assert f"{said(record.count)} {record.noun}" in shown, record


def test_evidence_of_outside_suites_is_what_their_page_says() -> None:
    page = (ROOT / "docs" / "outside-suites.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if re.match(r"\| .*(TestFloat|FPgen|isac)", line)]
    counts = [int(row[6].replace(",", "")) for row in rows if len(row) == 10]
    assert len(counts) == 5
    assert sum(record.count for record in records_of(published()["suites"])) == sum(counts)


def test_evidence_of_faults_counts_each_once() -> None:
    parts = {mutant.name: mutant.part for mutant in MUTANTS}
    assert len(parts) == len(MUTANTS)
    assert {parts["tiny_before_rounding"], parts["tiny_before_rounding_in_step"]} == {Part.CONVERTERS, Part.STEP}
    assert parts["hazards_ignored"] is Part.MAC
