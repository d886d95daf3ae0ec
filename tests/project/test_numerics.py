"""docs/numerics.md holds every section of the contract that the source cites."""

import re

import pytest

from .test_layout import ROOT, project_files

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


def test_contract_has_its_eleven_sections_in_order() -> None:
    text = (ROOT / CONTRACT).read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^## (\d+)\. \S", text, re.MULTILINE)] == list(range(1, 12))


def test_every_citation_resolves() -> None:
    found = 0
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a binary file
            continue
        if path.name == "test_numerics.py":  # the wrong citations below
            continue
        found += len(CITATION.findall(text))
        assert not unresolved(text), path.relative_to(ROOT)
    assert found > 30, "the pattern must find the citations that there are"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("as NUMERICS section 12 has it", {12}),
        ("(NUMERICS sections 4 and 50)", {50}),
        ("// NUMERICS\n// section 99", {99}),
        ("NUMERICS sections 8 to 11", set()),
        ("`NUMERICS` section 0", {0}),
    ],
)
def test_citation_of_a_missing_section_is_found(text: str, wrong: set[int]) -> None:
    assert unresolved(text) == wrong
