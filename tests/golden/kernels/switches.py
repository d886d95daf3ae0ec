"""Many faults in one build: each stands behind a switch, so that the compiler runs once for all of them.

The faulty text stands beside the right one, and a number chooses between the two when the program runs. With the number
0 every text is the right one.
"""

from __future__ import annotations

import ctypes
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from golden import kernels
from lab.mutants.table import Edit

from .build import SOURCE, Builder, Replacement, files_of

#: The paths that this machine runs.
RUN = [path for path in ("avx512", "avx2", "portable") if path in kernels.paths()]
#: The number of the fault that is on, or 0.
CHOSEN = "chosen_fault"
DECLARATION = f'extern "C" int {CHOSEN};\n'
DEFINITION = f'extern "C" {{ __attribute__((visibility("default"))) int {CHOSEN} = 0; }}\n'


@dataclass(frozen=True)
class Place:
    """A range of a file, and the text that a fault puts there."""

    start: int
    end: int
    number: int
    new: str


def with_switches(text: str, changes: Sequence[tuple[int, Edit]]) -> str:
    """Return a source text with all changes in it, each where its number is chosen.

    The text that a change replaces must be a whole expression, or whole statements that end in a semicolon.
    """
    places = []
    for number, change in changes:
        start, end = change.span(text)
        places.append(Place(start, end, number, change.replace))
    # A place within another comes after it.
    return _between(text, 0, len(text), sorted(places, key=lambda place: (place.start, -place.end)))


def _between(text: str, start: int, end: int, places: list[Place]) -> str:
    made, at = "", start
    while places:
        first, *rest = places
        assert first.end <= end, f"two faults overlap: {text[first.start : first.end]}"
        here = [first, *(each for each in rest if (each.start, each.end) == (first.start, first.end))]
        inner = [each for each in rest if each.start < first.end and each not in here]
        places = [each for each in rest if each.start >= first.end]
        made += text[at : first.start]
        made += _chosen(here, text[first.start : first.end], _between(text, first.start, first.end, inner))
        at = first.end
    return made + text[at:end]


def _chosen(here: list[Place], old: str, otherwise: str) -> str:
    is_statement = old.rstrip().endswith(";")
    for place in here:
        chosen = f"{CHOSEN} == {place.number}"
        if is_statement:
            otherwise = f"{{ if ({chosen}) {{ {place.new} }} else {{ {otherwise} }} }}"
        else:
            otherwise = f"({chosen} ? ({place.new}) : ({otherwise}))"
    return otherwise


def put_into(folders: Sequence[Path], faults: Mapping[str, Sequence[Edit]]) -> set[str]:
    """Put all faults into a copy of a source, numbered from 1; return the names of the files that change.

    Every file that changes declares the number; somebody has to define it.
    """
    by_file: dict[str, list[tuple[int, Edit]]] = {}
    for number, changes in enumerate(faults.values(), 1):
        for change in changes:
            by_file.setdefault(change.file_name, []).append((number, change))
    for file, numbered in by_file.items():
        path = next(folder / file for folder in folders if (folder / file).is_file())
        text = path.read_text(encoding="utf-8")
        path.write_text(DECLARATION + with_switches(text, numbered), encoding="utf-8")
    return set(by_file)


def build(
    builder: Builder,
    folder: Path,
    faults: Mapping[str, Sequence[Edit]],
    units: set[str],
    given: Sequence[Edit | Replacement] = (),
) -> None:
    """Build one library with all faults in an empty folder, and with changes that are always there, in some units."""
    source = folder / "source"
    shutil.copytree(SOURCE, source)
    for change in given:
        change.apply(source)
    changed = put_into([source], faults) | {change.file_name for change in given}
    (source / "chosen.cpp").write_text(DEFINITION, encoding="utf-8")
    units = {unit for unit in units if changed & files_of(unit)} | {"chosen.cpp"}
    builder.link(folder, builder.compiled(source, sorted(units), folder / "objects"))


def choose(library: ctypes.CDLL, number: int) -> None:
    """Turn a fault on, or with 0 all off."""
    ctypes.c_int.in_dll(library, CHOSEN).value = number


class Switched:
    """A library that `build` has made."""

    def __init__(self, file: Path, faults: Mapping[str, Sequence[Edit]]) -> None:
        self.file, self.numbers = file, {name: number for number, name in enumerate(faults, 1)}

    def loaded(self, fault: str | None, folder: Path) -> ctypes.CDLL:
        """Load a copy, because the library's state after its first use may depend on the fault; turn the fault on."""
        name = re.sub(r"\W+", "-", fault or "none")
        library = ctypes.CDLL(str(shutil.copyfile(self.file, folder / f"{name}.so")))
        choose(library, self.numbers[fault] if fault else 0)
        return library


def differences(results, wanted):
    """Return how many numbers of all arrays that `results()` gives differ."""
    return sum(int(np.count_nonzero(got != want)) for got, want in zip(results(), wanted, strict=True))


def is_seen(results, wanted):
    """Return whether any array differs; the first that does ends the comparison."""
    return any((got != want).any() for got, want in zip(results(), wanted, strict=True))
