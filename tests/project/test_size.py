"""The table of sizes in the contributors' page fits the tree within two percent."""

import pytest

from tests.project.test_layout import ROOT
from tools.size import MARKERS, PAGE, room_of, table

#: How far a row may be off: a share, or so many lines.
SHARE, LINES = 0.02, 100


def rows(text: str) -> dict[str, tuple[int, ...]]:
    cells = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    return {name: tuple(int(number.replace(",", "")) for number in numbers) for name, *numbers in cells}


def outdated(said: str, now: str) -> list[str]:
    """Return the rooms of which a page does not tell the size; whole parts may be off by a share only."""
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
