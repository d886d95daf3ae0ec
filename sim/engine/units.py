"""The engines that the regression simulates: arguments of `hdl.MatrixEngine` by name."""

from __future__ import annotations

from typing import Any

from golden.formats import BF16, CBFLOAT16, FP16
from golden.rounding import Rounding
from hdl.catalogue import UNITS as CATALOGUE
from hdl.catalogue import Kind

__all__ = ["COMPARED", "UNITS"]

#: A file in the folder of a run, with a line for each command that was as expected: the number of its results.
COMPARED = "compared.txt"

UNITS: dict[str, dict[str, Any]] = {
    **{unit.name: dict(unit.arguments) for unit in CATALOGUE.values() if unit.kind is Kind.ENGINE},
    "plain": {"rows": 2, "columns": 2, "registers": 4, "levels": (2,), "depth": 16, "conversions": False},
    "full": {
        "rows": 2, "columns": 4, "depth": 8, "operands": (CBFLOAT16, FP16, BF16),
        "roundings": (Rounding.NEAREST_EVEN, Rounding.DOWN), "reads": 4,
    },
    "flush": {"rows": 2, "columns": 4, "registers": 4, "depth": 32, "subnormals": "flush"},
    "without_c": {"rows": 1, "columns": 16, "depth": 16, "levels": (1,), "initial": False},
    "wide": {
        "rows": 4, "columns": 1, "registers": 4, "bus_width": 128, "depth": 16, "levels": (0, 1), "conversions": False,
    },
}  # fmt: skip
