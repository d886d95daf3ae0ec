"""The outside judges of accumulators: MMA-Sim, Spike, QEMU, and the instructions of this machine's processor.

The processor's instructions and Spike's dot products are called through small C++ programs, built for the run.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import golden
from golden.formats import BF16, FLOAT8_E4M3FN, FLOAT8_E5M2, FloatFormat
from lab.suites.accumulators.cases import Cases
from lab.suites.accumulators.mma_sim import INSTRUCTIONS, MmaSim
from lab.suites.accumulators.qemu import QEMU_PRESETS, Qemu

__all__ = ["JUDGES", "PROCESSOR_PRESETS", "Judge", "Processor", "Spike", "is_available", "judge_of"]

#: The x86 instruction of each preset.
PROCESSOR_PRESETS = {"x86_vdpbf16ps": "vdpbf16ps", "x86_tdpbf16ps": "tdpbf16ps"}
#: The presets of each judge, with their operand formats.
JUDGES: Mapping[str, Mapping[str, tuple[FloatFormat, ...]]] = {
    "mma-sim": {name: instruction.formats for name, instruction in INSTRUCTIONS.items()},
    "spike": {"riscv_zvfwbdota16bf": (BF16,), "riscv_zvfqwbdota8f": (FLOAT8_E4M3FN, FLOAT8_E5M2)},
    "qemu": QEMU_PRESETS,
    "processor": dict.fromkeys(PROCESSOR_PRESETS, (BF16,)),
}
_SOURCES = Path(__file__).parent
#: The files of Spike's SoftFloat that add two float32 values.
_SOFTFLOAT = (
    "f32_add s_addMagsF32 s_subMagsF32 s_roundPackToF32 s_normRoundPackToF32 s_propagateNaNF32UI s_shiftRightJam32 "
    "s_countLeadingZeros32 s_countLeadingZeros8 softfloat_state softfloat_raiseFlags"
)


def _build(name: str, sources: Sequence[Path], folders: Sequence[Path]) -> ctypes.CDLL:
    """Compile sources into a library and load it.

    Parameters
    ----------
    name : str
    sources : sequence of Path
        C and C++ files.
    folders : sequence of Path
        Where headers are found.

    Raises
    ------
    RuntimeError
        If there is no compiler, or it refuses.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    if compiler is None:
        raise RuntimeError("no C++ compiler: install g++, or name one in CXX")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.h").touch()  # SoftFloat includes it
        objects = []
        for number, source in enumerate(sources):
            language = "c" if source.suffix == ".c" else "c++"
            includes = [f"-I{each}" for each in (*folders, folder)]
            made = Path(folder) / f"{number}.o"
            _run([compiler, "-x", language, "-O2", "-w", "-fPIC", *includes, "-c", str(source), "-o", str(made)])
            objects.append(str(made))
        library = Path(folder) / f"{name}.so"
        _run([compiler, "-shared", *objects, "-o", str(library)])
        return ctypes.CDLL(str(library))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


@lru_cache(maxsize=1)
def _instructions() -> ctypes.CDLL:
    library = _build("processor", [_SOURCES / "processor.cpp"], [])
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    library.vdpbf16ps.argtypes = [number, number, pointer, pointer, pointer]
    library.tdpbf16ps.argtypes = [pointer, pointer, pointer]
    return library


def is_available(name: str) -> bool:
    """Return whether this machine has the instruction of a preset, and a compiler for it."""
    try:
        return bool(getattr(_instructions(), f"has_{PROCESSOR_PRESETS[name]}")())
    except (OSError, RuntimeError):
        return False


class Processor:
    """One instruction of this machine."""

    def __init__(self, name: str) -> None:
        self.instruction = PROCESSOR_PRESETS[name]
        if not getattr(_instructions(), f"has_{self.instruction}")():
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
            _instructions().tdpbf16ps(a.ctypes.data, b.ctypes.data, totals.ctypes.data)
            return totals
        shape = m, n, k
        a = np.ascontiguousarray(np.broadcast_to(cases.a[:, np.newaxis], shape))
        b = np.ascontiguousarray(np.broadcast_to(cases.b.T, shape))
        _instructions().vdpbf16ps(m * n, k // 2, a.ctypes.data, b.ctypes.data, totals.ctypes.data)
        return totals


@lru_cache(maxsize=1)
def _spike(checkout: Path) -> ctypes.CDLL:
    if not (checkout / "riscv/zvbdot.h").is_file():
        raise FileNotFoundError(f"{checkout}: has no riscv/zvbdot.h, must be a checkout of riscv-isa-sim")
    softfloat = [checkout / f"softfloat/{name}.c" for name in _SOFTFLOAT.split()]
    library = _build("spike", [_SOURCES / "spike.cpp", *softfloat], [checkout / "riscv", checkout / "softfloat"])
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    for formats in JUDGES["spike"].values():
        for fmt in formats:
            getattr(library, fmt.name).argtypes = [number, number, pointer, pointer, pointer]
    return library


class Spike:
    """One format of Spike's dot products; a case is two blocks."""

    def __init__(self, checkout: Path, name: str, fmt: FloatFormat) -> None:
        self._dot = getattr(_spike(checkout), fmt.name)
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


Judge: TypeAlias = MmaSim | Spike | Qemu | Processor


def judge_of(kind: str, path: Path | None, name: str, fmt: FloatFormat) -> Judge:
    """Return the judge of a preset in one format.

    Parameters
    ----------
    kind : str
        One of `JUDGES`.
    path : Path, optional
        Its checkout, or the file qemu-aarch64; the processor needs none.
    name : str
    fmt : FloatFormat
    """
    if kind == "processor":
        return Processor(name)
    assert path is not None, f"{kind} needs a path"
    made: dict[str, type[MmaSim] | type[Spike] | type[Qemu]] = {"mma-sim": MmaSim, "spike": Spike, "qemu": Qemu}
    return made[kind](path, name, fmt)
