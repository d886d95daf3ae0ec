"""The step classes over one lane, built for this machine from a copy of the source, with a fault in it on demand."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from golden import FloatFormat, Rounding
from golden.cuda.compiling import FOLDERS
from golden.kernels.library import format_number
from lab.mutants.table import Edit

from ...golden.kernels.build import compiler, run
from ...golden.kernels.switches import DEFINITION, choose, put_into

SINGLE, PLAIN, LIMITED, FLOAT16, BFLOAT16 = range(5)
_POINTER = ctypes.c_void_p


class Steps:
    """The steps of one mode."""

    def __init__(self, file: Path, numbers: Mapping[str, int] | None = None) -> None:
        self._library, self._numbers = ctypes.CDLL(str(file)), numbers or {}
        integer, number, real = ctypes.c_int, ctypes.c_int64, ctypes.c_float
        self._library.step.argtypes = [integer, number, real, integer, number, *[_POINTER] * 5]
        self._library.round_floats.argtypes = [number, real, number, _POINTER, _POINTER]
        self._library.round_doubles.argtypes = [number, ctypes.c_double, number, _POINTER, _POINTER]

    def with_fault(self, name: str | None) -> Steps:
        """Turn one of the faults on that are in the source, and the others off."""
        choose(self._library, self._numbers[name] if name else 0)
        return self

    def step(
        self,
        kind: int,
        fmt: FloatFormat,
        limit: float,
        a: np.ndarray,
        b: np.ndarray,
        acc: np.ndarray,
        words: np.ndarray | None = None,
        random_bits: int = 16,
    ) -> np.ndarray:
        """Return a step of each triple: floats, or codes of the card's own formats; `words` have random bits on top."""
        given = [np.ascontiguousarray(array) for array in (a, b, acc)]
        assert len({(array.dtype, array.size) for array in given}) == 1
        random = np.zeros(1, np.uint32) if words is None else np.ascontiguousarray(words, np.uint32)
        result = np.empty_like(given[0])
        pointers = [array.ctypes.data for array in (*given, random, result)]
        self._library.step(kind, format_number(fmt), limit, random_bits, result.size, *pointers)
        return result

    def rounded(self, fmt: FloatFormat, factor: float, values: np.ndarray) -> np.ndarray:
        """Return float32 or float64 values times a factor, rounded at the format's last place."""
        function = self._library.round_floats if values.dtype == np.float32 else self._library.round_doubles
        result = np.empty(values.size, np.float32)
        function(format_number(fmt), factor, values.size, values.ctypes.data, result.ctypes.data)
        return result


def built(folder: Path) -> Path:
    """Return the library that `build` makes in a folder."""
    return folder / "steps.so"


def build(folder: Path, mode: Rounding, *changes: Edit) -> Steps:
    """Build the steps of a mode in a new folder."""
    _copy(folder)
    for change in changes:
        change.apply(folder)
    _compile(folder, mode)
    return Steps(built(folder))


def build_switched(folder: Path, mode: Rounding, faults: Mapping[str, Edit]) -> Steps:
    """Build the steps of a mode in a new folder, with all faults in them and none of them on."""
    _copy(folder)
    put_into([folder], {name: [fault] for name, fault in faults.items()})
    (folder / "chosen.h").write_text(DEFINITION, encoding="utf-8")
    _compile(folder, mode, "-include", str(folder / "chosen.h"))
    return Steps(built(folder), {name: number for number, name in enumerate(faults, 1)})


def _copy(folder: Path) -> None:
    folder.mkdir(parents=True)
    for source in FOLDERS:
        for header in source.glob("*.h"):
            shutil.copyfile(header, folder / header.name)


def _compile(folder: Path, mode: Rounding, *more: str) -> None:
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fPIC", "-shared", f"-DCBFLOAT_MODE={mode.value}", *more]
    source = str(Path(__file__).with_name("steps.cpp"))
    run([compiler(), *options, f"-I{folder}", source, "-o", str(built(folder))])
