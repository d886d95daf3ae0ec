"""The tools' findings are kept as they are, drawn, and agree with what the documentation says elsewhere."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from lab.evidence.__main__ import main
from lab.evidence.picture import draw
from lab.evidence.publish import PICTURE
from lab.mutants.faults import MUTANTS
from tools.evidence import Means, Part, Record, collect, conclusion, note, published, records_of, said
from tools.results import kept, measured

PROOFS = Record(Part.STEP, Means.PROVEN, 12, "proofs", 1, "up to 6 beats")
VECTORS = Record(Part.MAC, Means.SAMPLED, 2_500_000, "vectors")
ROOT = Path(__file__).resolve().parents[2]


def test_evidence_written_then_read_is_the_same(tmp_path: Path) -> None:
    note("formal", [PROOFS], folder=tmp_path)
    assert {tool: records_of(result) for tool, result in kept(tmp_path).items()} == {"formal": [PROOFS]}


def test_evidence_of_a_new_run_replaces_what_was_published_of_that_tool_alone(tmp_path: Path) -> None:
    published = {tool: measured(tool, ["hdl"], data=[asdict(VECTORS)]) for tool in ("formal", "sim")}
    note("formal", [PROOFS], folder=tmp_path)
    found = collect(tmp_path, published)
    assert {tool: records_of(result) for tool, result in found.items()} == {"formal": [PROOFS], "sim": [VECTORS]}


@pytest.mark.parametrize("at", [0, 1, 2])
def test_evidence_conclusion_counts_what_is_wrong_in_any_record(at: int) -> None:
    means = (Means.PROVEN, Means.PROVEN, Means.FAULTS)
    records = [Record(Part.STEP, kind, 10 + place, "things", 7 * (place == at)) for place, kind in enumerate(means)]
    assert conclusion(records) == "21 proofs for every input, 12 deliberate faults tried: 7 wrong"
    assert conclusion(records[:at]).endswith(": none wrong")


def test_evidence_picture_shows_counts_limits_and_what_is_wrong(tmp_path: Path) -> None:
    draw([PROOFS, VECTORS], tmp_path / "evidence.svg")
    text = (tmp_path / "evidence.svg").read_text(encoding="utf-8")
    for shown in ("12 proofs", "1 wrong", "up to 6 beats", "2.5 M vectors", *Part):
        assert shown.split("-")[0] in text, shown
    assert "#c0392b" in text


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
    rows = [line.split("|") for line in page.splitlines() if re.match(r"\| .*(mulAdd`|FPgen)", line)]
    counts = [int(row[6].replace(",", "")) for row in rows if len(row) == 9]
    (kept,) = (record for record in records_of(published()["suites"]) if record.unit is Part.STEP)
    assert len(counts) == 3
    assert kept.count == sum(counts)


def test_evidence_of_faults_counts_each_once() -> None:
    parts = {mutant.name: mutant.part for mutant in MUTANTS}
    assert len(parts) == len(MUTANTS)
    assert {parts["tiny_before_rounding"], parts["tiny_before_rounding_in_step"]} == {Part.CONVERTERS, Part.STEP}
    assert parts["hazards_ignored"] is Part.MAC
