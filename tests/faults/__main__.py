"""Make faults of `golden`, judge a sample of them, write docs/faults-golden.md."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .cpp_judge import CppJudge
from .cpp_kinds import cpp_faults
from .fault import CAUGHT, NO_BUILD, ROOT, SAME_CODE, SURVIVED, Fault, Verdict, sampled
from .python_judge import PythonJudge
from .python_kinds import python_faults
from .report import write

RESULTS = ROOT / "build" / "golden-faults"

_judge: CppJudge | PythonJudge  # of this process, made before the workers fork


def _judged(fault: Fault) -> Verdict:
    return _judge.judge(fault)


def run(title: str, faults: list[Fault], judge: CppJudge | PythonJudge, jobs: int) -> list[Verdict]:
    """Judge the faults in several processes, showing how far it has come."""
    global _judge
    _judge = judge
    verdicts, counts = [], dict.fromkeys((CAUGHT, SURVIVED, SAME_CODE, NO_BUILD), 0)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool,
        Progress(*columns) as progress,
    ):
        bar = progress.add_task(title, total=len(faults))
        for done in as_completed([pool.submit(_judged, fault) for fault in faults]):
            verdict = done.result()
            verdicts.append(verdict)
            counts[verdict.result] += 1
            progress.update(bar, advance=1, description=f"{title}: {counts[SURVIVED]} survive")
    return sorted(verdicts, key=lambda verdict: (verdict.fault.file, verdict.fault.start, verdict.fault.new))


def keep(part: str, verdicts: list[Verdict], about: dict[str, object]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = {"about": about, "verdicts": [asdict(verdict) for verdict in verdicts]}
    (RESULTS / f"{part}.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def kept(part: str) -> tuple[list[Verdict], dict[str, object]]:
    file = RESULTS / f"{part}.json"
    if not file.is_file():
        return [], {}
    read = json.loads(file.read_text(encoding="utf-8"))
    return [Verdict(**{**each, "fault": Fault(**each["fault"])}) for each in read["verdicts"]], read["about"]


PARTS: dict[str, tuple[Callable[[], list[Fault]], Callable[[Path], CppJudge | PythonJudge], float]] = {
    "C++": (cpp_faults, CppJudge, 0.2),
    "Python": (python_faults, PythonJudge, 0.1),
}


def main() -> int:
    """Judge what was asked for; the exit status is 1 if a fault survives that no reason accounts for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="judge these faults only (default: all)")
    parser.add_argument("--share", type=float, help="share of the faults that are judged (default: 0.2 and 0.1)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="faults judged at once (default: 2)")
    parser.add_argument("--files", default="", help="judge faults of files whose name contains this only; no report")
    parser.add_argument("--report-only", action="store_true", help="write the report from the last run's results")
    given = parser.parse_args()
    for part, (faults, judge, usual) in PARTS.items():
        if given.report_only or (given.part and part not in given.part):
            continue
        every = [fault for fault in faults() if given.files in fault.file]
        share = usual if given.share is None else given.share
        chosen = sampled(every, share, given.seed)
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            verdicts = run(part, chosen, judge(Path(folder)), given.jobs)
        about = {"made": len(every), "seed": given.seed, "seconds": round(time.perf_counter() - started)}
        if given.files:
            for verdict in verdicts:
                print(
                    verdict.result, verdict.fault.file, verdict.fault.line, verdict.fault.old, "->", verdict.fault.new
                )
        else:
            keep(part, verdicts, about)
    return 0 if given.files else write({part: kept(part) for part in PARTS})


if __name__ == "__main__":
    sys.exit(main())
