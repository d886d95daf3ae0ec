"""The front page's table of conclusions: one line for each tool, no figure in it that the linked page lacks."""

import importlib
import re

import pytest

from lab.fpga.report import conclusion as conclusion_of_area
from lab.fpga.report import published
from tools.pages import CONCLUSIONS, OLDER, replace_row

from .test_pages import PAGES, ROOT

#: The modules that write the rows.
WRITERS = (
    "tools.evidence", "lab.proofs.report", "sim.run.report", "lab.fpga.report", "lab.pace.report",
    "lab.speed.report",
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
