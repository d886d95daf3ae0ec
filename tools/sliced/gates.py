"""Gates in the order in which `planes.h` evaluates them, from the JSON that Yosys writes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.compiled import library

__all__ = [
    "KINDS",
    "ONE",
    "ZERO",
    "Cells",
    "Circuit",
    "cells_of",
    "circuit",
    "compiled",
    "driver",
    "in_order",
    "planes",
]

#: The inputs of each kind of gate, in the order of planes.h.
KINDS = {
    "$_AND_": "AB", "$_OR_": "AB", "$_XOR_": "AB", "$_XNOR_": "AB", "$_NOT_": "A", "$_MUX_": "ABS",
    "$_NAND_": "AB", "$_NOR_": "AB", "$_ANDNOT_": "AB", "$_ORNOT_": "AB", "$_BUF_": "A",
}  # fmt: skip
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
#: The planes of the constants.
ZERO, ONE = 0, 1

#: Kind and inputs of the gate that drives each net.
Cells = dict[Any, tuple[str, list[Any]]]


class Circuit(ctypes.Structure):
    """The struct of planes.h, on arrays that it keeps alive."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("nets", "first_gate", "runs")),
        *((name, ctypes.c_void_p) for name in ("pins", "run")),
    ]

    def evaluate(self, values: NDArray[np.uint64]) -> None:
        """Compute the planes of all gates from the others, in `planes`."""
        driver().evaluate(ctypes.byref(self), ctypes.c_void_p(values.ctypes.data))


@dataclass(frozen=True)
class Ordered:
    """The nets in the order of their planes.

    Parameters
    ----------
    number : dict
        The plane of each net, and of the constants "0" and "1".
    rows : array of (kind, A, B, S)
        One for each gate; the gates are the last nets.
    """

    number: dict[Any, int]
    rows: NDArray[np.uint32]


def cells_of(module: dict[str, Any]) -> tuple[Cells, list[tuple[str, str, dict[str, Any]]]]:
    """Return the gates of a module, and name, type and pins of every other cell."""
    gates: Cells = {}
    others = []
    for name, cell in module["cells"].items():
        kind, pins = cell["type"], {pin: bits[0] for pin, bits in cell["connections"].items()}
        if kind in KINDS:
            gates[pins["Y"]] = kind, [pins[pin] for pin in KINDS[kind]]
        else:
            others.append((name, kind, pins))
    return gates, others


def in_order(cells: Cells, sources: Sequence[Any]) -> Ordered:
    """Number the nets: constants, sources, gates.

    Raises
    ------
    graphlib.CycleError
        If gates form a loop.
    KeyError
        If a gate needs a net that neither a source nor a gate drives.
    """
    levels: dict[Any, int] = {}
    for net in TopologicalSorter({net: pins for net, (_, pins) in cells.items()}).static_order():
        levels[net] = 1 + max((levels.get(pin, 0) for pin in cells[net][1]), default=0) if net in cells else 0
    # Independent gates of one kind are neighbours: one loop in C++ evaluates all of them.
    order = sorted(cells, key=lambda net: (levels[net], cells[net][0], net))
    number: dict[Any, int] = {"0": ZERO, "1": ONE}
    for net in [*dict.fromkeys(sources), *order]:
        number[net] = len(number)
    rows = [[_NUMBERS[cells[net][0]], *(number[pin] for pin in cells[net][1])] for net in order]
    return Ordered(number, np.array([row + [ZERO] * (4 - len(row)) for row in rows], np.uint32).reshape(-1, 4))


def circuit(nets: int, rows: NDArray[np.uint32]) -> Circuit:
    """Return the gates in the form that planes.h takes."""
    pins = np.ascontiguousarray(rows[:, 1:], np.uint32)
    bounds = np.flatnonzero(np.diff(rows[:, 0].astype(np.int64), prepend=-1, append=-1))
    runs = np.stack([rows[bounds[:-1], 0], bounds[:-1], bounds[1:]], axis=1) if len(rows) else rows[:, 1:]
    runs = np.ascontiguousarray(runs, np.uint32)
    made = Circuit(nets, nets - len(rows), len(runs), pins.ctypes.data, runs.ctypes.data)
    made.kept = pins, runs
    return made


def planes(nets: int) -> NDArray[np.uint64]:
    """Return planes for `nets` nets, all 0 except the constant 1: rows of 8 words, aligned."""
    room = np.zeros(8 * nets + 8, np.uint64)
    first = -room.ctypes.data % 64 // 8
    made = room[first : first + 8 * nets].reshape(nets, 8)
    made[ONE] = ~np.uint64(0)
    return made


@cache
def driver() -> Any:
    """Return the compiled driver.cpp."""
    return compiled(Path(__file__).with_name("driver.cpp"))


def compiled(source: Path) -> Any:
    """Return the shared library of a C++ file behind planes.h."""
    text = Path(__file__).with_name("planes.h").read_text("utf-8") + source.read_text("utf-8")
    return ctypes.CDLL(str(library(text, options=("-O3", "-march=native", "-Wno-psabi", "-std=c++17"))))
