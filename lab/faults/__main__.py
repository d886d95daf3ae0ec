"""Put thousands of faults into the units, one by one, and report which of them a check catches."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace

from rich.console import Console

from lab.faults.campaign import TARGETS, Batch, Judged, Target, batches
from lab.faults.proofs import judge_batch
from lab.faults.report import figures, summary, survivors, unexpected, write_json
from lab.netlists.errors import ToolError
from tools.errors import ToolFailed
from tools.interrupts import end_with_parent, ended_by_interrupts, ending_on_interrupt, unheard_interrupts
from tools.pages import publish
from tools.paths import ROOT
from tools.results import measured, read

__all__ = ["main"]

PAGE = "docs/faults.md"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.faults", description=__doc__)
    names = [target.unit for target in TARGETS]
    parser.add_argument("units", nargs="*", metavar="UNIT", help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--count", type=int, help="most faults in each unit (default: as published)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: processors)")
    parser.add_argument(
        "--proof-seconds", type=int, default=180, help="for each; 0: none is asked (default %(default)s)"
    )
    parser.add_argument("--update-docs", action="store_true", help="write docs/faults.md")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.units if name not in names]:
        parser.error(f"UNIT: got {', '.join(unknown)}, must be of {', '.join(names)}")
    if given.count is not None and given.count < 1:
        parser.error(f"--count: got {given.count}, must be at least 1")
    if given.proof_seconds < 0:
        parser.error(f"--proof-seconds: got {given.proof_seconds}, must be 0 or more")
    if given.jobs < 1:
        parser.error(f"--jobs: got {given.jobs}, must be at least 1")
    if given.update_docs and (given.count or not given.proof_seconds):
        parser.error("--update-docs: must be given without --count and with proofs")
    return given


def _targets(given: argparse.Namespace) -> list[Target]:
    chosen = [target for target in TARGETS if not given.units or target.unit in given.units]
    return [replace(target, count=min(target.count, given.count or target.count)) for target in chosen]


@ending_on_interrupt("lab.faults", "what it has judged is kept, the next run goes on")
def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all faults.

    Returns
    -------
    int
        0 if all that survive are known and have a reason, 1 if others survive, 2 if tools or units fail, 130 on Ctrl-C.
    """
    given = _parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150)
    started = time.monotonic()
    todo = list(batches(_targets(given)))
    results: dict[Batch, list[Judged]] = {}
    cycles, seconds = 0, 0.0
    try:
        processes = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(given.jobs, processes, end_with_parent) as pool, ended_by_interrupts(pool):
            with unheard_interrupts():
                futures = {pool.submit(judge_batch, batch, proof_seconds=given.proof_seconds): batch for batch in todo}
            for future in as_completed(futures):
                batch = futures[future]
                results[batch], more, spent = future.result()
                cycles, seconds = cycles + more, seconds + spent
                line = f"[{len(results)}/{len(todo)}] {time.monotonic() - started:4.0f} s {batch.target.unit}"
                console.print(f"{line}: {summary(results[batch])}", highlight=False, soft_wrap=True)
    except (ToolError, ToolFailed, RuntimeError, ValueError) as error:
        print(f"lab.faults: {error}", file=sys.stderr)
        return 2
    judged = [one for batch in todo for one in results[batch]]
    if not judged:
        print("lab.faults: no fault was judged: nothing is said", file=sys.stderr)
        return 2
    write_json(judged, ROOT / "build" / "faults" / "results.json")
    console.print(f"{summary(judged)}; {cycles:,} cycles of 511 copies, {seconds:.0f} processor seconds")
    if given.update_docs:
        facts = f"{_facts(given.units, cycles, seconds)}\n\n**{summary(judged)}.**"
        tables, lines = figures(judged), survivors(judged)
        publish(measured("faults", ["lab.faults"], note=facts, tables=tables, data={"survivors": lines}))
    return _tell(console, unexpected(judged, read("faults").data["survivors"]))


def _facts(units: Sequence[str], cycles: int, seconds: float) -> str:
    missing = [target.unit for target in TARGETS if units and target.unit not in units]
    return (
        f"The run took {seconds:,.0f} processor seconds on {platform.machine()} ({os.cpu_count()} processors), with "
        f"{cycles:,} cycles, in each of which up to 511 faulty copies of a unit were simulated."
    ) + (f" Left out were the faults of {', '.join(missing)}." if missing else "")


def _tell(console: Console, lines: Sequence[str]) -> int:
    if not lines:
        console.print(f"all that survive are in {PAGE}, with a reason", style="green", highlight=False)
        return 0
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    said = f"FAILED: {len(lines)} faults survive that {PAGE} does not list with a reason"
    console.print(said, style="bold red", highlight=False)
    return 1


if __name__ == "__main__":
    sys.exit(main())
