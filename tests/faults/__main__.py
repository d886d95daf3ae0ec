"""Make faults of `golden`, judge a sample of them, write docs/faults-golden.md."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .cpp_judge import CppJudge, is_compiled
from .fault import CAUGHT, ROOT, SURVIVED, Fault, Ruling, sampled
from .kinds import cpp_faults, python_faults
from .python_judge import ELSEWHERE, Fresh, Patching, without
from .reach import read, recorded, seconds_of
from .report import is_open, write
from .suite import Cases, aside, in_session

RESULTS = ROOT / "build" / "golden-faults"


class Judge(Protocol):
    """Rules on a fault."""

    def judge(self, fault: Fault) -> Ruling:
        """Return the ruling."""


_judge: Judge  # of this process, made before the workers fork


def _judged(fault: Fault) -> Ruling:
    return _judge.judge(fault)


def run(title: str, faults: list[Fault], judge: Judge, jobs: int, before: list[Ruling]) -> None:
    """Judge the faults in several processes, showing how far it has come, and keep every verdict."""
    global _judge
    _judge = judge
    verdicts, survivors = list(before), 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool,
        Progress(*columns) as progress,
    ):
        bar = progress.add_task(title, total=len(faults))
        for done in as_completed([pool.submit(_judged, fault) for fault in faults]):
            verdict = done.result()
            verdicts.append(verdict)
            survivors += verdict.result == SURVIVED
            progress.update(bar, advance=1, description=f"{title}: {survivors} survive")
            keep(title, verdicts)


def keep(part: str, verdicts: list[Ruling]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    new = RESULTS / f"{part}.new"
    new.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1), encoding="utf-8")
    new.replace(RESULTS / f"{part}.json")


def kept(part: str) -> list[Ruling]:
    file = RESULTS / f"{part}.json"
    read = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    rulings = [Ruling(**{**each, "fault": Fault(**each["fault"])}) for each in read]
    return [ruling for ruling in rulings if can_be_judged(part, ruling.fault)]


def can_be_judged(part: str, fault: Fault) -> bool:
    """Return whether this machine has a path that compiles the file of a fault, which matters to C++ alone."""
    return part != "C++" or is_compiled(fault.file)


def run_cpp(part: str, faults: list[Fault], before: list[Ruling], folder: Path, given: argparse.Namespace) -> None:
    """Judge faults of the kernels' source."""
    run(part, faults, CppJudge(folder), given.jobs, before)


#: The parts of each result.
_TOOLS = {"golden-faults": ("C++",), "golden-faults-python": ("golden", "golden.torch")}
#: The tests that judge the faults of a part.
_TESTS = {"golden": "tests/golden", "golden.torch": "tests/torch"}


def _records(part: str) -> Path:
    return RESULTS / f"reach of {part}.json"


def run_python(part: str, faults: list[Fault], before: list[Ruling], folder: Path, given: argparse.Namespace) -> None:
    """Judge faults of Python source: faults in functions first, then faults that act at import."""
    tests, records = _TESTS[part], _records(part)
    aside(lambda: recorded(tests, folder, records))
    reach = read(records)

    def in_functions(cases: Cases) -> None:
        run(part, faults, Patching(folder, reach, given.seconds, cases), given.jobs, before)

    aside(lambda: in_session(tests, in_functions))
    found = kept(part)
    rest = [ruling.fault for ruling in found if ruling.result == ELSEWHERE]
    judge = Fresh(folder, reach, given.seconds)
    for fault in rest:
        ruling = judge.judge(without(fault))
        assert ruling.result != CAUGHT, f"the tests of {fault.file} fail without a fault: {ruling.by}"
        if ruling.result == SURVIVED:
            break
    run(part, rest, judge, given.jobs, [ruling for ruling in found if ruling.result != ELSEWHERE])


Runner = Callable[[str, list[Fault], list[Ruling], Path, argparse.Namespace], None]
# The generator and the judge of each part, the share of a usual run, and whether it has every kind of every file.
PARTS: dict[str, tuple[Callable[[], list[Fault]], Runner, float, bool]] = {
    "C++": (cpp_faults, run_cpp, 0.1, True),
    "golden": (partial(python_faults, "golden"), run_python, 0.06, False),
    "golden.torch": (partial(python_faults, "golden/torch"), run_python, 0.01, False),
}


def main() -> int:
    """Run the command line; the exit status is 1 if a fault survives that no reason accounts for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="judge these faults only (default: all)")
    usual = ", ".join(f"{share} of {part}" for part, (_, _, share, _) in PARTS.items())
    parser.add_argument("--share", type=float, help=f"share of the faults that are judged (default: {usual})")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="faults judged at once (default: 2)")
    parser.add_argument("--files", default="", help="judge faults of files whose name contains this only")
    parser.add_argument("--go-on", action="store_true", help="keep the verdicts of the last run, judge the others")
    parser.add_argument(
        "--survivors", action="store_true", help="judge the open ones of the last run once more, no others"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of tests that a Python fault is shown to (default: %(default)s)"
    )
    parser.add_argument("--report-only", action="store_true", help="write the report from the last run's results")
    given = parser.parse_args()
    made, left_out = {}, {}
    for part, (faults, runner, usual_share, every_kind) in PARTS.items():
        found = [fault for fault in faults() if given.files in fault.file]
        every = [fault for fault in found if can_be_judged(part, fault)]
        made[part], left_out[part] = len(every), len(found) - len(every)
        if given.report_only or (given.part and part not in given.part):
            continue
        share = usual_share if given.share is None else given.share
        chosen = sampled(every, share, given.seed, every_kind=every_kind)
        before = [verdict for verdict in kept(part) if given.go_on and verdict.fault in chosen]
        if given.survivors:
            before = [verdict for verdict in kept(part) if not is_open(verdict)]
            chosen = [verdict.fault for verdict in kept(part)]
        rest = [fault for fault in chosen if fault not in {verdict.fault for verdict in before}]
        with tempfile.TemporaryDirectory() as folder:
            runner(part, rest, before, Path(folder), given)
    status = 0
    for tool, parts in _TOOLS.items():
        rulings = {part: (made[part], kept(part)) for part in parts}
        if (given.report_only or not given.part or set(given.part) & set(parts)) and any(
            part[1] for part in rulings.values()
        ):
            recording = sum(seconds_of(_records(part)) for part in parts if part in _TESTS)
            status |= write(tool, rulings, given.seed, recording, sum(left_out[part] for part in parts))
    return status


if __name__ == "__main__":
    sys.exit(main())
