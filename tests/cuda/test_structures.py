"""The arguments of the kernels are the same bytes to Python and to C++."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from golden.cuda import accumulations, arrays, counting, plan, structures
from golden.flags import EVENTS
from tests.cuda.host import SOURCE
from tests.golden.kernels.build import compiler

STRUCTURES = {
    "Target": structures.TargetFields,
    "Source": structures.SourceFields,
    "Packing": structures.Packing,
    "Product": structures.Product,
    "Elementwise": structures.Elementwise,
    "Blocks": structures.Blocks,
    "FusedSum": accumulations.SumFields,
    "AccumulatorRule": accumulations.RuleFields,
    "Accumulation": accumulations.Accumulation,
    "Softmax": structures.Softmax,
    "CountedProduct": counting.CountedProduct,
    "Exponents": counting.Exponents,
}
CONSTANTS = {
    "AXES": structures.AXES,
    "STAGE": structures.STAGE,
    "THREADS": plan.THREADS,
    "PIECE": plan._PACKED_AT_ONCE,
    "PER_BLOCK": arrays._VALUES,
    "SOFTMAX_ROWS": arrays._ROWS,
    "EVENTS": len(EVENTS),
    "SLOTS": counting.SLOTS,
    "HISTOGRAM_VALUES": counting._HISTOGRAM_VALUES,
    "ACCUMULATION_WIDTH": accumulations._TILE,
    "ACCUMULATION_ROWS": accumulations._ROWS,
    "MOST_STAGES": accumulations._MOST_STAGES,
    "MOST_PRODUCTS": accumulations._MOST_PRODUCTS,
}


def _assertions(name: str, fields: type[ctypes.Structure]) -> Iterator[str]:
    yield f"sizeof({name}) == {ctypes.sizeof(fields)}"
    for field, *_ in fields._fields_:
        place = getattr(fields, field)
        yield f"offsetof({name}, {field}) == {place.offset}"
        yield f"sizeof({name}::{field}) == {place.size}"


def _compiles(folder: Path, assertions: list[str]) -> bool:
    lines = [f"static_assert({each});" for each in assertions]
    headers = ("accumulation.h", "blocks.h", "elementwise.h", "softmax.h", "counted.h", "exponents.h")
    text = "\n".join(["#include <cstddef>", *(f'#include "{header}"' for header in headers), *lines])
    (folder / "layout.cpp").write_text(text, encoding="utf-8")
    folders = [f"-I{SOURCE}", f"-I{SOURCE.parents[1] / 'kernels' / 'source'}"]
    command = [compiler(), "-std=c++17", "-fsyntax-only", "-w", *folders, str(folder / "layout.cpp")]
    return subprocess.run(command, capture_output=True, timeout=300).returncode == 0


def test_structures_have_the_same_fields_at_the_same_places(tmp_path: Path) -> None:
    assertions = [line for name, fields in STRUCTURES.items() for line in _assertions(name, fields)]
    assertions += [f"{name} == {value}" for name, value in CONSTANTS.items()]
    assert len(assertions) > 150
    assert _compiles(tmp_path, assertions)


@pytest.mark.parametrize("wrong", ["offsetof(Product, safe) == 0", "STAGE == 8", "sizeof(Packing::halves) == 8"])
def test_structures_of_another_layout_are_noticed(tmp_path: Path, wrong: str) -> None:
    assert not _compiles(tmp_path, [wrong])


def test_parameters_of_a_kernel_fit_where_every_card_takes_them() -> None:
    assert all(ctypes.sizeof(fields) <= 4096 for fields in STRUCTURES.values())
