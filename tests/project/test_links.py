"""Links between the pages of the project lead somewhere: to a file that exists, and to a heading that it has."""

import re
from pathlib import Path

import pytest

from .test_pages import PAGES, ROOT

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
