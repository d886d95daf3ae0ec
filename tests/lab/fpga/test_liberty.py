"""Standard cells: a user's file, the longest path by hand, trees of buffers, and a unit mapped by Yosys and ABC."""

import gzip
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from golden import CBFLOAT16, FP32
from hdl import FloatConverter
from lab.fpga.asic import estimate
from lab.fpga.fanout import spread
from lab.fpga.liberty import Library, StandardCells, read_liberty
from lab.fpga.timing import longest_path
from tests.lab.fpga.liberty_samples import PIN, tiny
from tests.lab.fpga.samples import TOOLS


@pytest.fixture
def library(tmp_path: Path) -> Library:
    (tmp_path / "tiny.lib").write_text(tiny())
    return read_liberty(tmp_path / "tiny.lib")


def _cell(kind: str, **pins: int) -> dict[str, Any]:
    return {"type": kind, "connections": {name: [net] for name, net in pins.items()}}


#: A flip-flop through an inverter and a NAND into another one. Net 2 is the clock.
MODULE: dict[str, Any] = {
    "ports": {"clk": {"direction": "input", "bits": [2]}, "o": {"direction": "output", "bits": [7]}},
    "cells": {
        "first": _cell("DFF", CK=2, D=6, Q=3),
        "invert": _cell("INV", A=3, Y=4),
        "join": _cell("NAND2", A=4, B=3, Y=6),
        "last": _cell("DFF", CK=2, D=6, Q=7),
    },
    "netnames": {
        name: {"bits": [bit], "hide_name": 0} for name, bit in {"start": 3, "inverted": 4, "joined": 6, "o": 7}.items()
    },
}


def test_library_is_read_plain_and_compressed(tmp_path: Path, library: Library) -> None:
    (tmp_path / "tiny.lib.gz").write_bytes(gzip.compress(tiny().encode()))
    packed = read_liberty(tmp_path / "tiny.lib.gz")
    assert (packed.text, packed.cells.keys()) == (library.text, library.cells.keys())
    assert (library.name, library.nand2.name, library.flip_flop.name) == ("tiny", "NAND2", "DFF")
    assert StandardCells.of(library).nand2_area == 4
    # ABC ended in an assertion where the template had seven points and its tables two.
    assert library.text.count("lu_table_template(lacking)") == 1
    assert library.text.count('index_1("0.0, 1.0") ;') == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "must be a file of standard cells"),
        ("nothing", "cannot be read as a liberty file"),
        (tiny()[:-3], "cannot be read as a liberty file"),
        (tiny(without=("NAND2", "NAND2_WIDE")), "without a two-input NAND among 4 cells"),
        (tiny(without=("DFF",)), "without a flip-flop with a rising clock among 5 cells"),
    ],
)
def test_library_that_serves_for_no_estimate_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "some.lib").write_text(text)
    with pytest.raises(ValueError, match=f"liberty: got .*some.lib.*{message}"):
        read_liberty(tmp_path / "some.lib")


def test_longest_path_is_the_one_by_hand(library: Library) -> None:
    # Clock to output with two pins, inverter with one, NAND with two, setup.
    by_hand = (0.4 + 10 * 2 * PIN) + (0.1 + 10 * PIN) + (0.2 + 10 * 2 * PIN) + 0.05
    found = longest_path(MODULE, library)
    assert found.megahertz == round(1000 / by_hand, 1)
    assert (found.path.start, found.path.end, found.path.via, found.path.levels) == ("start", "joined", ["inverted"], 2)


def test_longest_path_without_setup_or_load_would_be_another(library: Library) -> None:
    lighter = deepcopy(MODULE)
    lighter["cells"]["join"]["connections"]["B"] = ["1"]
    assert longest_path(lighter, library).megahertz > longest_path(MODULE, library).megahertz


def test_unmapped_cell_is_an_error(library: Library) -> None:
    module = deepcopy(MODULE)
    module["cells"]["invert"]["type"] = "$_NOT_"
    with pytest.raises(ValueError, match=r"cells: got \$_NOT_, must be cells of tiny"):
        longest_path(module, library)


def test_module_without_registers_on_a_path_is_an_error(library: Library) -> None:
    empty = {"ports": {}, "cells": {}, "netnames": {}}
    with pytest.raises(ValueError, match="no path between two registers"):
        longest_path(empty, library)


@pytest.mark.parametrize(("pins", "buffers"), [(2, 0), (4, 0), (5, 2), (16, 4), (17, 7)])
def test_buffers_leave_no_net_with_too_many_pins(pins: int, buffers: int, library: Library) -> None:
    module = deepcopy(MODULE)
    module["cells"] = {"first": _cell("DFF", CK=2, D=3, Q=3)}
    module["cells"] |= {f"sink{at}": _cell("INV", A=3, Y=100 + at) for at in range(pins - 1)}
    module["netnames"] |= {f"y{at}": {"bits": [100 + at], "hide_name": 0} for at in range(pins)}
    assert spread(module, library, most=4) == buffers
    driven: dict[int, int] = {}
    for cell in module["cells"].values():
        for name, (net,) in cell["connections"].items():
            driven[net] = driven.get(net, 0) + (name in ("A", "D"))
    assert max(driven.values()) <= 4
    assert driven[2] == 0  # the clock is not a data net


def test_buffers_are_refused_without_a_cell_for_them(tmp_path: Path) -> None:
    (tmp_path / "poor.lib").write_text(tiny(without=("BUF",)))
    module = deepcopy(MODULE)
    with pytest.raises(ValueError, match="liberty: got tiny without a buffer"):
        spread(module, read_liberty(tmp_path / "poor.lib"), most=1)


def test_converter_is_mapped_to_the_library(tmp_path: Path, library: Library) -> None:
    build = partial(FloatConverter, source=CBFLOAT16, destination=FP32, stages=1)
    told: list[str] = []
    given: dict[str, Any] = {"library": library, "tools": TOOLS, "folder": tmp_path / "out", "progress": told.append}
    found = estimate("unit", build, **given)
    assert found.cells["FF"] == found.cells["DFF"] == 20
    assert found.square_micrometres == sum(
        count * library.cells[kind].area for kind, count in found.cells.items() if kind in library.cells
    )
    assert 10 < found.megahertz < 1000
    assert not found.cached
    again = estimate("unit", build, **given)
    assert again.cached
    assert again == found
    published = estimate("unit", build, **given, known={"unit": found})
    assert published == found
    assert told[1:] == [f"unit: standard cells, {found.megahertz:.1f} MHz, {how}" for how in
                        ("cached", "unchanged since it was published")]  # fmt: skip
