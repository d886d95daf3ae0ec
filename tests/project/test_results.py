"""No figure without a provenance, and no page that hides that its figures are older than the source."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools import evidence, pages, results
from tools.pages import CONCLUSIONS, OLDER, PROVENANCE, filled, markers
from tools.paths import ROOT
from tools.results import Result

KEPT, JUDGED = results.kept(), evidence.published()
EVERY = {**KEPT, **{f"evidence: {tool}": result for tool, result in JUDGED.items()}}
PAGES = [page for page in pages.pages() if "<!-- results " in page.read_text(encoding="utf-8")]
HEX = set("0123456789abcdef")


@pytest.mark.parametrize("name", EVERY)
def test_figures_say_on_what_they_were_measured(name: str) -> None:
    result = EVERY[name]
    assert result.tool == name.removeprefix("evidence: ")
    assert all(len(known) == 16 and set(known) <= HEX for known in result.sources.values())
    assert result.date.count("-") == 2
    assert result.command.startswith(("make ", "python -m "))


@pytest.mark.parametrize("name", EVERY)
def test_figures_are_those_of_this_tree(name: str) -> None:
    # To be older is no failure, but nobody shall overlook it: pytest lists these at its end.
    if EVERY[name].changed:
        pytest.xfail(EVERY[name].age)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_page_shows_what_is_kept_and_how_old_it_is(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, KEPT, JUDGED) == text, "run: python -m lab.evidence --refresh"


def test_every_table_and_every_picture_has_a_page() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [tool for tool, result in KEPT.items() if result.tables and markers(tool)[0] not in texts] == []
    assert markers(PROVENANCE)[0] in texts
    drawn = {name for result in EVERY.values() for name in result.pictures} | {"evidence.svg"}
    assert drawn == {path.name for path in (ROOT / "docs" / "figures").iterdir()}


def aged(result: Result, area: str) -> Result:
    """Return a result as it would be after a change of the source."""
    return replace(result, sources={**result.sources, area: "0" * 16})


def fresh(result: Result) -> Result:
    """Return a result as it would be if it had been measured on this tree."""
    return replace(result, sources=results.measured("fresh", result.sources).sources)


def test_page_that_hides_an_older_source_is_found() -> None:
    begin, end = markers("fpga")
    text = f"{begin}\n{end}\n"
    now = {"fpga": fresh(KEPT["fpga"])}
    page = filled(text, now, {})
    assert "older" not in page
    after = filled(page, {"fpga": aged(now["fpga"], "hdl")}, {})
    assert after != page
    assert "the code that `hdl` runs has changed since" in after


def test_front_page_that_hides_an_older_source_is_found() -> None:
    begin, end = CONCLUSIONS
    rows = "".join(f"| {subject} | old | link |\n" for subject in ("area and frequency", evidence.SUBJECT))
    text = f"{begin}\n| subject | conclusion | figures |\n|---|---|---|\n{rows}{end}\n"
    now, judged = {"fpga": fresh(KEPT["fpga"])}, {tool: fresh(result) for tool, result in JUDGED.items()}
    page = filled(text, now, judged)
    assert OLDER not in page
    assert filled(page, {"fpga": aged(now["fpga"], "hdl")}, judged).count(OLDER) == 1
    assert filled(page, now, judged | {"sim": aged(judged["sim"], "hdl")}).count(OLDER) == 1
