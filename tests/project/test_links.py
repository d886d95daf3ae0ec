"""Pages agree with the project: links and citations lead somewhere, and conclusions have their figures."""

import importlib
import re
from pathlib import Path

import pytest

from lab.fpga.report import conclusion as conclusion_of_area
from lab.fpga.report import published
from tools.pages import CONCLUSIONS, OLDER, replace_row

from .test_layout import ROOT, project_files
from .test_pages import PAGES

LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = ("http://", "https://", "mailto:")


def anchors(text: str) -> set[str]:
    """Return the anchors that headings get: lower case, without punctuation, hyphens for spaces."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: str, text: str) -> list[str]:
    """Return the links of a page that lead nowhere."""
    dead = []
    for link in LINK.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)):
        if link.startswith(OUTSIDE):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        found = target.is_file()
        if found and anchor:
            found = anchor in anchors(target.read_text(encoding="utf-8"))
        if not found:
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    assert dead_links(page, PAGES[page]) == []


@pytest.mark.parametrize("link", ["no-such-page.md", "numerics.md#12-nothing", "#nothing", "../golden/nothing.py"])
def test_link_that_leads_nowhere_is_found(link: str) -> None:
    assert dead_links("docs/verification.md", f"text [words]({link}) text") == [link]


def test_link_to_a_heading_is_followed() -> None:
    assert dead_links(str(Path("docs/verification.md")), "see [one](numerics.md#1-formats)") == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/extending.md", "docs/verification.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    quoted = {
        name for name in re.findall(r"`([\w./-]+)`", PAGES[page]) if "/" in name and not name.startswith("build/")
    }
    assert quoted
    assert [name for name in sorted(quoted) if not (ROOT / name).exists()] == []


CONTRACT = "docs/numerics.md"
# "NUMERICS section 5", "NUMERICS sections 4 and 5", "NUMERICS sections 8 to 11"; a line may break anywhere in it.
CITATION = re.compile(r"NUMERICS`?[\s#*/]+sections?[\s#*/]+(\d+(?:[\s#*/]*(?:,|and|or|to)[\s#*/]+\d+)*)")


def cited(text: str) -> set[int]:
    """Return the numbers of the sections that a text cites; "8 to 11" cites its two ends."""
    return {int(number) for citation in CITATION.findall(text) for number in re.findall(r"\d+", citation)}


def sections(text: str) -> set[int]:
    """Return the numbers of the sections that a contract has."""
    return {int(number) for number in re.findall(r"^## (\d+)\. \S", text, re.MULTILINE)}


def unresolved(text: str) -> set[int]:
    """Return the cited sections that docs/numerics.md lacks."""
    return cited(text) - sections((ROOT / CONTRACT).read_text(encoding="utf-8"))


def test_contract_has_its_sections_in_order() -> None:
    text = (ROOT / CONTRACT).read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^## (\d+)\. \S", text, re.MULTILINE)] == [*range(1, 15)]


def test_every_citation_resolves() -> None:
    found = 0
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a binary file
            continue
        if path.name == "test_links.py":  # the wrong citations below
            continue
        found += len(CITATION.findall(text))
        assert not unresolved(text), path.relative_to(ROOT)
    assert found > 30, "the pattern must find the citations that there are"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("as NUMERICS section 15 has it", {15}),
        ("(NUMERICS sections 4 and 50)", {50}),
        ("// NUMERICS\n// section 99", {99}),
        ("NUMERICS sections 8 to 11", set()),
        ("`NUMERICS` section 0", {0}),
    ],
)
def test_citation_of_a_missing_section_is_found(text: str, wrong: set[int]) -> None:
    assert unresolved(text) == wrong


#: The modules that write the rows.
WRITERS = (
    "tools.evidence", "lab.proofs.report", "sim.run.report", "lab.fpga.report", "lab.pace.report",
    "lab.speed.report", "lab.engine.__main__", "lab.devices.__main__", "lab.gpu.whole",
)  # fmt: skip
FIGURE = re.compile(r"\d[\d,.]*\d(?: [GM]\b)?|\d+(?: [GM]\b)?")


def rows() -> dict[str, list[str]]:
    """Return conclusion and link of every row, by its subject."""
    begin, end = CONCLUSIONS
    lines = PAGES["README.md"].partition(begin)[2].partition(end)[0].strip().splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {row[0]: row[1:] for row in cells}


def missing_figures(conclusion: str, page: str) -> list[str]:
    """Return the figures of a conclusion that a page does not have, parameters in the names of units aside."""
    return [each for each in FIGURE.findall(re.sub(r"`[^`]+`|level \d", "", conclusion)) if each not in page]


def test_every_tool_has_its_row() -> None:
    assert list(rows()) == [importlib.import_module(writer).SUBJECT for writer in WRITERS]


@pytest.mark.parametrize("subject", [subject for subject in rows() if subject != "evidence"])
def test_figures_of_a_conclusion_are_on_its_page(subject: str) -> None:
    conclusion, link = rows()[subject]
    (name,) = re.findall(r"\]\(([^)#]+)", link)
    assert missing_figures(conclusion, (ROOT / name).read_text(encoding="utf-8")) == []


def test_figure_that_the_page_lacks_is_found() -> None:
    page = (ROOT / "docs/results/speed.md").read_text(encoding="utf-8")
    assert missing_figures("level 0: 9876 G", page) == ["9876 G"]


def test_conclusions_of_kept_measurements_are_made_from_them() -> None:
    assert rows()["area and frequency"][0].removesuffix(OLDER) == conclusion_of_area(published())


def test_row_is_replaced_and_a_missing_one_is_an_error() -> None:
    begin, end = CONCLUSIONS
    text = f"{begin}\n| subject | conclusion | figures |\n|---|---|---|\n| speed | 1 | a |\n| area | 2 | b |\n{end}\n"
    assert replace_row(text, "area", "3") == text.replace("| 2 |", "| 3 |")
    with pytest.raises(ValueError, match="got no row 'pace'"):
        replace_row(text, "pace", "3")
