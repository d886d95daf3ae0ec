"""Judges of the kernels' faults: each is compiled, loaded by a process of its own and asked what NumPy answered."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import numpy as np

from golden import kernels
from golden.kernels import library

from ..golden.kernels.build import SOURCE, Builder, files_of
from .battery import answers
from .fault import CAUGHT, NO_BUILD, SAME_CODE, SURVIVED, Fault, Ruling
from .suite import in_child

PATIENCE = 60.0  # seconds until an answer counts as none; a faulty loop may never end
# What each path has of its own, so that one path tells what the fault does; the others stay as they are.
_ONE_UNIT_OF = {
    "generic.h": ["portable.cpp", "avx512.cpp"],
    "generic_steps.h": ["portable.cpp", "avx512.cpp"],
    "vectors.h": ["avx512.cpp"],
    "steps.h": ["avx512.cpp"],
    "chains.h": ["avx512.cpp"],
}


class CppJudge:
    """Compiles once what no fault touches, and keeps NumPy's answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.builder = Builder(folder)
        with kernels.use("numpy"):
            self.wanted = dict(answers())
        self.paths = [path for path in kernels.paths() if path != "numpy"]

    def judge(self, fault: Fault) -> Ruling:
        started = os.times()
        folder = self.folder / fault.name
        result, by = self._judged(fault, folder)
        shutil.rmtree(folder, ignore_errors=True)
        ended = os.times()
        return Ruling(fault, result, by, sum(ended[:4]) - sum(started[:4]))

    def _judged(self, fault: Fault, folder: Path) -> tuple[str, str]:
        file = Path(fault.file).name
        shutil.copytree(SOURCE, folder / "source")
        text = (SOURCE / file).read_text(encoding="utf-8")
        (folder / "source" / file).write_text(fault.applied(text), encoding="utf-8")
        units = _ONE_UNIT_OF.get(file) or [unit for unit in self.builder.units if file in files_of(unit)]
        try:
            objects = self.builder.compiled(folder / "source", units, folder / "objects")
        except AssertionError:
            return NO_BUILD, "the compiler"
        plain = self.builder.plain
        if all(made.read_bytes() == plain[unit].read_bytes() for unit, made in objects.items()):
            return SAME_CODE, "the compiler"
        return self.ask(self.builder.link(folder, objects))

    def ask(self, file: Path) -> tuple[str, str]:
        """Ask a library in a process of its own, which may crash or hang."""
        said = in_child(lambda: self._differences(file), PATIENCE)
        return (CAUGHT, said.text) if said.text else (SURVIVED, "")

    def _differences(self, file: Path) -> str:
        replacement = library.declared(ctypes.CDLL(str(file)))
        library._library = lambda: replacement
        available = [path for path in self.paths if replacement.cbfloat_path_available(library._path_number(path))]
        if available != self.paths:
            return f"the paths that there are: {', '.join(available)}"
        for path in self.paths:
            with kernels.use(path):
                for label, answer in answers():
                    if not np.array_equal(answer, self.wanted[label]):
                        return f"{path}: {label}"
        return ""
