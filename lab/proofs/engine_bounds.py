"""Proofs that the matrix engine touches nothing outside the matrices of its command, for any values of its registers.

Each part runs beside its own model. The proofs are by induction over cycles, as in `lab.proofs.along_model`, with a
reset in any cycle:

- *checker*: a command that it accepts has matrices that end within memory, and D lies apart from A, B and C. The ends
  are exact integers: ``address + (batches - 1) * batch stride + (rows - 1) * row stride + bytes of a row``.
- *command*: a command that runs was accepted, and keeps its value until all parts have finished.
- *tiler*: lines and blocks come in the order of the contract's loops, each once, and none is left out. A line lies
  within a stored row of its matrix, a block within D.
- *reader*: a burst has only words of the bus that hold a byte of its line, and stays within 4 KiB. So a read takes in
  other bytes only next to the first and the last element of a line, in the same words.
- *placement*: the rows of the tiles of a block lie within the block, and each comes once. Rows beyond its edge are
  dropped.
- *writer*: a burst has only words that hold a byte of its row, and stays within 4 KiB. The strobes are exactly the
  bytes of the row.

Each part assumes of its inputs only properties that the part before it proves of its outputs. Registers and ports have
the sizes of the released engine; reader and writer are proven for both widths of the bus. The other parts assume facts
about products; *arithmetic* proves these facts for small numbers.

The proofs say nothing about values, nor whether a command ever ends: the regression tests both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hdl.catalogue import UNITS
from hdl.matrix_engine.parameters import EngineParameters
from lab.proofs.along_engine.arithmetic import Arithmetic
from lab.proofs.along_engine.checked import Checked
from lab.proofs.along_engine.command import Command
from lab.proofs.along_engine.matrices import Bounds
from lab.proofs.along_engine.placed import Placed
from lab.proofs.along_engine.read import Read
from lab.proofs.along_engine.walk import Walk
from lab.proofs.along_engine.written import Written
from lab.proofs.along_model.induction import induction
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof

__all__ = ["PARTS", "engine_bound_proofs", "parameters_of"]

#: Each part, and whether it depends on the width of the bus.
PARTS: dict[str, tuple[Callable[[EngineParameters], Bounds], bool]] = {
    "arithmetic": (Arithmetic, False),
    "checker": (Checked, False),
    "command": (Command, False),
    "tiler": (Walk, False),
    "reader": (Read, True),
    "placement": (Placed, False),
    "writer": (Written, True),
}
_WIDTHS = (64, 128)
#: The parts only pass flags and values on, so the proofs do without them.
_PLAIN = {"flags": False}


def parameters_of(bus_width: int) -> EngineParameters:
    """Return the parameters of the released engine, with a bus of a width."""
    arguments: dict[str, Any] = {**UNITS["matrix_engine"].arguments, **_PLAIN, "bus_width": bus_width}
    return EngineParameters(**arguments)


def engine_bound_proofs() -> Iterator[Proof]:
    """Yield the proofs of every part."""
    for name, (part, has_width) in PARTS.items():
        for width in _WIDTHS if has_width else _WIDTHS[:1]:
            claim = f"engine/bounds/{name}" + f"/bus_{width}" * has_width
            title = name + f", bus of {width} bits" * has_width
            for engine in (BITWUZLA, Z3_CADICAL):
                build = partial(_build, part, width)
                fast = engine == BITWUZLA and width == _WIDTHS[0]
                yield Proof(claim, "matrix engine: bounds", title, "induction", engine, build, 900, fast)


def _build(part: Callable[[EngineParameters], Bounds], width: int, folder: Path) -> str:
    return induction(part(parameters_of(width)), folder)
