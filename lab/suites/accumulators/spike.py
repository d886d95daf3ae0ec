"""Spike, the RISC-V simulator: its bulk-normalised dot products, compiled from a checkout."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import golden
from golden.formats import BF16, FLOAT8_E4M3FN, FLOAT8_E5M2, FloatFormat
from lab.suites.accumulators.building import build
from lab.suites.accumulators.cases import Cases

__all__ = ["SPIKE_PRESETS", "Spike"]

SPIKE_PRESETS = {"riscv_zvfwbdota16bf": (BF16,), "riscv_zvfqwbdota8f": (FLOAT8_E4M3FN, FLOAT8_E5M2)}
_SOURCE = Path(__file__).with_name("spike.cpp")
#: What the sum of two float32 values needs of Spike's SoftFloat.
_SOFTFLOAT = (
    "f32_add s_addMagsF32 s_subMagsF32 s_roundPackToF32 s_normRoundPackToF32 s_propagateNaNF32UI s_shiftRightJam32 "
    "s_countLeadingZeros32 s_countLeadingZeros8 softfloat_state softfloat_raiseFlags"
)


@lru_cache(maxsize=1)
def _library(checkout: Path) -> ctypes.CDLL:
    if not (checkout / "riscv/zvbdot.h").is_file():
        raise FileNotFoundError(f"{checkout}: has no riscv/zvbdot.h, must be a checkout of riscv-isa-sim")
    softfloat = [checkout / f"softfloat/{name}.c" for name in _SOFTFLOAT.split()]
    library = build("spike", [_SOURCE, *softfloat], [checkout / "riscv", checkout / "softfloat"])
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    for formats in SPIKE_PRESETS.values():
        for fmt in formats:
            getattr(library, fmt.name).argtypes = [number, number, pointer, pointer, pointer]
    return library


class Spike:
    """One format of Spike's dot products; a case is two blocks."""

    def __init__(self, checkout: Path, name: str, fmt: FloatFormat) -> None:
        self._dot = getattr(_library(checkout), fmt.name)
        self._block = golden.accumulators[name].block
        self.m, self.k, self.n = 16, 2 * self._block, 16

    def results(self, cases: Cases) -> NDArray[np.uint32]:
        """Return the codes in float32 of totals to which the products were added."""
        totals = np.array(cases.totals, np.uint32, order="C")
        shape = *totals.shape, self._block
        for at in range(0, self.k, self._block):
            block = slice(at, at + self._block)
            a = np.ascontiguousarray(np.broadcast_to(cases.a[:, np.newaxis, block], shape))
            b = np.ascontiguousarray(np.broadcast_to(cases.b.T[:, block], shape))
            self._dot(totals.size, self._block, a.ctypes.data, b.ctypes.data, totals.ctypes.data)
        return totals
