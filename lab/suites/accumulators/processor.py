"""The bfloat16 instructions of an x86 processor, through a small program that the machine's own compiler builds."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.suites.accumulators.building import build
from lab.suites.accumulators.cases import Cases

__all__ = ["PROCESSOR_PRESETS", "Processor", "is_available"]

#: Preset and instruction.
PROCESSOR_PRESETS = {"x86_vdpbf16ps": "vdpbf16ps", "x86_tdpbf16ps": "tdpbf16ps"}
_SOURCE = Path(__file__).with_name("processor.cpp")


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    library = build("processor", [_SOURCE], [])
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    library.vdpbf16ps.argtypes = [number, number, pointer, pointer, pointer]
    library.tdpbf16ps.argtypes = [pointer, pointer, pointer]
    return library


def is_available(name: str) -> bool:
    """Tell whether this machine has the instruction of a preset, and a compiler for it."""
    try:
        return bool(getattr(_library(), f"has_{PROCESSOR_PRESETS[name]}")())
    except (OSError, RuntimeError):
        return False


class Processor:
    """One instruction of this machine."""

    def __init__(self, name: str) -> None:
        self.instruction = PROCESSOR_PRESETS[name]
        if not getattr(_library(), f"has_{self.instruction}")():
            raise RuntimeError(
                f"this processor has no {self.instruction.upper()}, or the system does not let it be used"
            )
        self.m, self.n = 16, 16
        self.k = 6 if self.instruction == "vdpbf16ps" else 32

    def results(self, cases: Cases) -> NDArray[np.uint32]:
        """Return the codes in float32 of totals to which the products were added."""
        totals = np.array(cases.totals, np.uint32, order="C")
        m, k, n = len(cases.a), cases.a.shape[1], cases.b.shape[1]
        if self.instruction == "tdpbf16ps":
            a = np.ascontiguousarray(cases.a)
            b = np.ascontiguousarray(cases.b.reshape(k // 2, 2, n).swapaxes(1, 2))
            _library().tdpbf16ps(a.ctypes.data, b.ctypes.data, totals.ctypes.data)
            return totals
        shape = m, n, k
        a = np.ascontiguousarray(np.broadcast_to(cases.a[:, np.newaxis], shape))
        b = np.ascontiguousarray(np.broadcast_to(cases.b.T, shape))
        _library().vdpbf16ps(m * n, k // 2, a.ctypes.data, b.ctypes.data, totals.ctypes.data)
        return totals
