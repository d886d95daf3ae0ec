"""Which lines of `golden` each test reaches, found once and kept: those that reach its line judge a fault."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import coverage
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .fault import ROOT
from .suite import Cases, forget_imports, in_child, in_session, run_cases

#: Processor seconds of a test that is never asked: many faults are judged in its time.
SLOW = 20.0
#: The name of the lines that are reached while all tests are imported and collected.
AT_IMPORT = "collected"

Lines = dict[str, list[int]]


@dataclass(frozen=True)
class Reached:
    """A test function, all its cases together.

    Parameters
    ----------
    name : str
        As pytest calls it, without the cases.
    seconds : float
        Of processor time.
    lines : dict of str to list of int
        The lines that it reaches, by file from the project's root.
    why_not : str
        Why it judges nothing; empty if it does.
    """

    name: str
    seconds: float
    lines: Lines = field(default_factory=dict)
    why_not: str = ""

    @property
    def file(self) -> str:
        """The test's file."""
        return self.name.partition("::")[0]

    def share(self, file: str) -> float:
        """Return the share of its lines that are in a file."""
        return len(self.lines.get(file, ())) / max(1, sum(map(len, self.lines.values())))


class Reach:
    """The lines that tests reach.

    Parameters
    ----------
    tests : sequence of Reached
    imported : dict of str to list of int
        What is reached before any test runs.
    """

    def __init__(self, tests: Sequence[Reached], imported: Lines) -> None:
        self.tests = [test for test in tests if not test.why_not]
        self.left_out = [test for test in tests if test.why_not]
        self.imported = {file: set(lines) for file, lines in imported.items()}

    def judges_of(self, file: str, lines: Iterable[int]) -> list[Reached]:
        """Return the tests that reach one of some lines, the quickest and those about the file first."""
        wanted = set(lines)
        found = [test for test in self.tests if not wanted.isdisjoint(test.lines.get(file, ()))]
        return sorted(found, key=lambda test: test.seconds / test.share(file))

    def judges_of_module(self, file: str) -> list[Reached]:
        """Return the tests that reach more of a file than its import does."""
        own = {line for test in self.tests for line in test.lines.get(file, ())} - self.imported.get(file, set())
        return self.judges_of(file, own)


def _watched() -> coverage.Coverage:
    return coverage.Coverage(data_file=None, config_file=False, include=[f"{ROOT}/golden/*"])


def _lines_of(watched: coverage.Coverage) -> Lines:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a test that reaches nothing
        data = watched.get_data()
    return {Path(file).relative_to(ROOT).as_posix(): sorted(data.lines(file) or ()) for file in data.measured_files()}


def recorded(tests: str, folder: Path, kept: Path) -> None:
    """Record the lines that every test of a folder reaches, each test in a new process.

    A record stays if neither the test's file nor anything else that it can depend on has changed.

    Parameters
    ----------
    tests : str
        Their folder, such as ``tests/golden``.
    folder : Path
        For temporary files.
    kept : Path
        A file.
    """
    known = {test.name: test for test in _read(kept) if not test.name.endswith(AT_IMPORT)}
    watched = _watched()
    forget_imports()
    watched.start()

    def work(cases: Cases) -> None:
        watched.stop()
        found = [Reached(f"{tests}/{AT_IMPORT}", 0.0, _lines_of(watched), "no test")]
        rest = [name for name in cases if name not in known]
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        with Progress(*columns) as progress:
            for number, name in enumerate(progress.track(rest, description="what tests reach")):
                known[name] = _record(name, cases, folder)
                if number % 50 == 0:
                    _keep([*found, *known.values()], kept)
        _keep([*found, *(known[name] for name in cases)], kept)

    in_session(tests, work)


def _record(name: str, cases: Cases, folder: Path) -> Reached:
    written = folder / "lines.json"
    written.unlink(missing_ok=True)

    def work() -> str:
        watched = _watched()
        watched.start()
        said = run_cases(cases[name], folder / "record")
        watched.stop()
        written.write_text(json.dumps(_lines_of(watched)), encoding="utf-8")
        return said

    said = in_child(work, SLOW)
    if said.text:
        return Reached(name, said.seconds, why_not=said.text)
    return Reached(name, said.seconds, json.loads(written.read_text(encoding="utf-8")))


def _keep(tests: Iterable[Reached], kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"key": _key(test.file), **asdict(test)} for test in tests]
    new = kept.with_suffix(".new")
    new.write_text(json.dumps(rows), encoding="utf-8")
    new.replace(kept)


def _read(kept: Path) -> list[Reached]:
    """Return the records that still hold."""
    rows = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else []
    keys = [row.pop("key") for row in rows]
    tests = [Reached(**row) for row in rows]
    return [test for test, key in zip(tests, keys, strict=True) if key == _key(test.file)]


def read(kept: Path) -> Reach:
    """Return the records that `recorded` has made."""
    tests = _read(kept)
    imported = next(test for test in tests if test.name.endswith(AT_IMPORT))
    return Reach([test for test in tests if test is not imported], imported.lines)


def seconds_of(kept: Path) -> float:
    """Return the processor seconds that the records in a file took; 0 if there is none."""
    rows = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else []
    return sum(row["seconds"] for row in rows)


def _key(file: str) -> str:
    """Return a hash of a test's file, and of the Python source and helpers that it may use."""
    area = "tests/golden" if file.startswith("tests/golden/") else ""
    path = ROOT / file
    return _common(area) + (_hash_of([path]) if path.is_file() else "")


@cache
def _common(area: str) -> str:
    """Return a hash of the files that all tests of an area share; ``tests/golden`` does without PyTorch."""
    source = [path for path in (ROOT / "golden").rglob("*.py")]
    helpers = [
        path for folder in ("golden", "torch") for path in (ROOT / "tests" / folder).rglob("*") if path.is_file()
    ]
    shared = [path for path in helpers if path.suffix != ".pyc" and not path.name.startswith("test_")]
    if area:
        apart = tuple(ROOT / each for each in ("golden/torch", "golden/modelzoo", "tests/torch"))
        source = [path for path in source if not path.is_relative_to(apart[0]) and not path.is_relative_to(apart[1])]
        shared = [path for path in shared if not path.is_relative_to(apart[2])]
    return _hash_of(sorted([*source, *shared]))


def _hash_of(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
