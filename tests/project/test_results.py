"""Figures and sizes on pages are this tree's, each with a provenance, and no page hides that one is older."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools import evidence, pages, results
from tools.pages import CONCLUSIONS, OLDER, PROVENANCE, filled, markers
from tools.paths import ROOT
from tools.results import Result
from tools.size import MARKERS, PAGE, room_of, table

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
    # An older result is not a failure, but must not be overlooked: pytest lists these at its end.
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


#: How far a row may be off: a share, or a number of lines.
SHARE, LINES = 0.02, 100


def rows(text: str) -> dict[str, tuple[int, ...]]:
    cells = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    return {name: tuple(int(number.replace(",", "")) for number in numbers) for name, *numbers in cells}


def outdated(said: str, now: str) -> list[str]:
    """Return the rooms whose size on a page is wrong; whole parts may be off only by a share."""
    old, new = rows(said), rows(now)
    return [
        name
        for name in old.keys() | new.keys()
        if name not in old
        or name not in new
        or abs(old[name][0] - new[name][0]) > max(SHARE * new[name][0], 0 if "**" in name else LINES)
    ]


def test_sizes_on_the_page_are_those_of_the_tree() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("sizes are counted from what git tracks")
    said = PAGE.read_text(encoding="utf-8").partition(MARKERS[0])[2].partition(MARKERS[1])[0].strip()
    assert outdated(said, table().markdown()) == [], "run: make size ARGS=--update-docs"


def test_size_that_is_off_or_of_a_room_that_is_gone_is_found() -> None:
    head = "| room | lines | files |\n|---|---:|---:|\n"
    said = f"{head}| **product** | 50,000 | 9 |\n| `hdl` | 1,000 | 9 |\n| `golden` | 49,000 | 9 |\n"
    assert outdated(said, said.replace("50,000", "50,900").replace("1,000", "1,090")) == []
    assert outdated(said, said.replace("50,000", "51,100")) == ["**product**"]
    assert outdated(said, said.replace("1,000", "1,101")) == ["`hdl`"]
    assert sorted(outdated(said, said.replace("hdl", "rtl"))) == ["`hdl`", "`rtl`"]


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("golden/formats.py", ("product", "golden")),
        ("golden/kernels/source/plan.h", ("product", "golden/kernels")),
        ("golden/torch/training/trainer.py", ("product", "golden/torch/training")),
        ("golden/torch/instruments/report/template/page.html.jinja", ("product", "golden/torch/instruments")),
        ("hdl/cores/product.py", ("product", "hdl/cores")),
        ("lab/speed/modes.py", ("evidence", "lab")),
        ("docs/index.md", ("", "")),
        ("README.md", ("", "")),
    ],
)
def test_room_of_a_file_is_its_folder(path: str, room: tuple[str, str]) -> None:
    assert room_of(path) == room
