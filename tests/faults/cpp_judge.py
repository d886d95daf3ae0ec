"""The judge of the kernels' faults: a new process loads the faulty library and must get the answers of NumPy."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np

from golden import kernels
from golden.arrays import by_numpy
from golden.kernels import library

from ..golden.kernels.build import SOURCE, UNITS, Builder, files_of
from . import battery
from .fault import CAUGHT, NO_BUILD, SAME_CODE, SURVIVED, Fault, Ruling
from .suite import in_child

#: Processor seconds until an answer counts as none: all paths answer everything in 7, and a faulty loop may never end.
#: On the clock it is ten times as long, for machines that have other work.
PATIENCE = 16.0
#: Compiles in half the time of -O1, and the code is about as fast.
OPTIMISATION = "-Og"
#: Only the units for accumulators of other machines compute these parts.
_ACCUMULATORS = battery.other_machines, battery.members
_PRODUCTS = tuple(part for part in battery.PARTS if part not in _ACCUMULATORS)
#: What a file is asked first whose name contains a word.
_FIRST = {"count": battery.counted, "windows": battery.planes}


@dataclass(frozen=True)
class Stage:
    """Units that are compiled together, and their questions: parts of the battery, on paths."""

    units: tuple[str, ...]
    paths: tuple[str, ...]
    parts: tuple[battery.Part, ...]


def stages_of(file: str, paths: Sequence[str] = library.COMPILED_PATHS) -> list[Stage]:
    """Return the stages that judge a fault in a file, in this order, until one catches it.

    Each path compiles its own copy of a header that only paths include, so it is asked alone: portable, which compiles
    in a third of the time, before the others. Every other file is compiled into all of its units at once.

    Parameters
    ----------
    file : str
        A file of the kernels' source, without its folder.
    paths : sequence of str
        Those that this machine runs, fastest first.
    """
    units = tuple(unit for unit in UNITS if file in files_of(unit))
    parts = _ACCUMULATORS if all(unit.startswith("accumulate") for unit in units) else _PRODUCTS
    for word, part in _FIRST.items():
        if word in file:
            parts = (part, *(other for other in parts if other is not part))
    of_paths = [(path, unit) for path in reversed(library.COMPILED_PATHS) for unit in units if _is_of(unit, path)]
    if len(of_paths) < len(units):
        return [Stage(units, tuple(paths), parts if parts is _ACCUMULATORS else (*parts, *_ACCUMULATORS))]
    stages = []
    for path, unit in of_paths:
        # AVX-512 with float16 has the code of AVX-512, too.
        asked = [each for each in reversed(paths) if each.startswith(path)]
        stages += [Stage((unit,), tuple(asked), parts)] if asked else []
    return stages


@cache
def is_compiled(file: str, paths: tuple[str, ...] | None = None) -> bool:
    """Return whether some path of this machine compiles a file of the kernels' source: else no question reaches it."""
    return bool(stages_of(Path(file).name, paths_here() if paths is None else paths))


def paths_here() -> tuple[str, ...]:
    """Return the compiled paths that this machine runs, fastest first."""
    return tuple(path for path in kernels.paths() if path != "numpy")


def _refused(*_: object) -> NoReturn:
    """Stand for the accumulators on NumPy, whose right answers would hide a library that does not serve."""
    raise AssertionError("NumPy serves what the library should")


def _is_of(unit: str, path: str) -> bool:
    return unit in (f"{path}.cpp", f"accumulate_{path}.cpp")


class CppJudge:
    """Compiles the unchanged units once, and keeps NumPy's answers.

    Raises
    ------
    AssertionError
        If the library without a fault answers anything else than NumPy.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.builder = Builder(folder, OPTIMISATION)
        with kernels.use("numpy"):
            self.wanted = dict(battery.answers())
        self.paths = paths_here()
        result, by = self.ask(self.builder.unchanged(), self.paths)
        assert result == SURVIVED, f"without a fault, this differs from NumPy: {by}"

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
        stages = stages_of(file, self.paths)
        assert stages, f"{file}: no path of this machine compiles it"
        verdict = SAME_CODE, "the compiler"
        for number, stage in enumerate(stages):
            place = folder / str(number)
            place.mkdir()
            try:
                objects = self.builder.compiled(folder / "source", [*stage.units], place / "objects")
            except AssertionError:
                return NO_BUILD, "the compiler"
            if all(made.read_bytes() == self.builder.plain[unit].read_bytes() for unit, made in objects.items()):
                continue
            verdict = self.ask(self.builder.link(place, objects), stage.paths, stage.parts)
            if verdict[0] == CAUGHT:
                break
        return verdict

    def ask(self, file: Path, paths: Sequence[str], parts: Sequence[battery.Part] = battery.PARTS) -> tuple[str, str]:
        """Ask a library in a new process, which may crash or hang; the first difference ends it."""
        said = in_child(lambda: self._difference(file, paths, parts), PATIENCE, 10 * PATIENCE)
        return (CAUGHT, said.text) if said.text else (SURVIVED, "")

    def _difference(self, file: Path, paths: Sequence[str], parts: Sequence[battery.Part]) -> str:
        replacement = library.declared(ctypes.CDLL(str(file)))
        library._library = lambda: replacement
        by_numpy.accumulate_codes = _refused
        number = library._path_number
        available = [path for path in library.COMPILED_PATHS if replacement.cbfloat_path_available(number(path))]
        if available != [*self.paths]:
            return f"the paths that there are: {', '.join(available)}"
        for path in paths:
            with kernels.use(path):
                for label, answer in battery.answers(parts):
                    if not np.array_equal(answer, self.wanted[label]):
                        return f"{path}: {label}"
        return ""
