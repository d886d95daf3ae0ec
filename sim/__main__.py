"""``python -m sim``: the whole regression, or a part of it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hdl.catalogue import Unit
from sim.run.compiled import Engine
from sim.run.coverage import write_coverage
from sim.run.options import parse
from sim.run.outcome import Outcome
from sim.run.pool import run_all
from sim.run.report import SUBJECT, conclusion, figures, print_outcome, print_table, write_junit
from sim.run.simulate import Job
from sim.run.simulators import MissingSimulator, check_simulator
from sim.scenario import NAMES, matching
from sim.units import UNITS, is_behind_a_bus, part_of, select
from tools.evidence import Means, Part, Record, note
from tools.pages import publish
from tools.results import measured

__all__ = ["main"]


def _evidence(outcomes: Sequence[Outcome]) -> list[Record]:
    """Return the number of compared vectors for each kind of unit; a vector of an accumulating unit is a reduction."""
    records = []
    for part in dict.fromkeys(map(part_of, UNITS)):
        its = [one for one in outcomes if part_of(one.unit) is part]
        noun = "vectors" if part is Part.CONVERTERS else "reductions"
        count, wrong = sum(one.vectors for one in its), sum(not one.passed for one in its)
        records.append(Record(part, Means.SAMPLED, count, noun, wrong))
    return records


def _units(count: int) -> str:
    return f"{count} unit{'s' if count != 1 else ''}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the regression; return 0 if every unit passed, 1 if not, 2 if it cannot start or write, 130 on Ctrl-C."""
    about = "Compare the generated Verilog with the golden model. Each failure ends with the command that repeats it."
    given = parse(arguments, "python -m sim", about)
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        check_simulator(given.sim)
        units = select(given.units)
        for name in filter(None, given.scenarios.split(",")):
            matching(name, NAMES)
    except (ValueError, MissingSimulator) as error:
        print(f"sim: {error}", file=sys.stderr)
        return 2
    folder = given.folder / "sim"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _regression(given, units, folder, console)
    except OSError as error:
        print(f"sim: --folder: got {given.folder}, where nothing can be written: {error}", file=sys.stderr)
        return 2


def _regression(given: argparse.Namespace, units: Sequence[Unit], folder: Path, console: Console) -> int:
    """Run the units and write the findings; return the status."""
    in_simulator = {*given.share.of(units), *filter(is_behind_a_bus, units)}
    simulator = given.sim if given.share.is_whole else f"{given.sim} for {len(in_simulator)} of them"
    console.print(f"seed {given.seed}, {_units(len(units))}, {given.jobs} at a time, {simulator}", highlight=False)
    jobs = [
        Job(
            unit.name,
            given.seed,
            folder / unit.name,
            given.sim,
            given.waves,
            given.scenarios,
            given.effort,
            engines=tuple(Engine) if unit in in_simulator else (Engine.COMPILED,),
        )
        for unit in units
    ]
    ended: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        ended.append(outcome)
        print_outcome(console, outcome, len(ended), len(jobs))

    started = time.perf_counter()
    try:
        outcomes = run_all(jobs, given.jobs, report)
    except KeyboardInterrupt:
        said = f"stopped by Ctrl-C: {len(ended)} of {_units(len(jobs))} ended, nothing is kept of this run"
        print(f"sim: {said}; --seed {given.seed} repeats it", file=sys.stderr)
        return 130
    seconds = time.perf_counter() - started
    vectors = sum(outcome.vectors for outcome in outcomes)
    failed = [outcome.unit for outcome in outcomes if not outcome.passed]
    print_table(console, outcomes, f"{vectors:,} vectors in {seconds:.0f} s, seed {given.seed}")
    heading = f"{vectors:,} vectors in {seconds:.0f} s, {given.jobs} units at a time, {simulator}, seed {given.seed}"
    (folder / "table.md").write_text(f"{heading}:\n\n{figures(outcomes).markdown()}", encoding="utf-8")
    write_coverage(outcomes, heading, folder / "coverage.html")
    write_junit(outcomes, {job.unit: job.folder / "results.xml" for job in jobs}, folder / "results.xml")
    console.print(f"coverage page: {folder / 'coverage.html'}", highlight=False, soft_wrap=True)
    for waveform in sorted(path for job in jobs for path in job.folder.rglob("*.fst")):
        console.print(f"waveform: {waveform}", highlight=False, soft_wrap=True)
    if len(units) == len(UNITS) and not given.scenarios and given.share.is_whole:
        note("sim", _evidence(outcomes), ["sim"])
    if given.update_docs:
        publish(
            measured(
                "regression",
                ["sim"],
                subject=SUBJECT,
                conclusion=conclusion(outcomes),
                note=f"{heading}.",
                tables=(figures(outcomes),),
            )
        )
    if failed:
        console.print(f"FAILED: {', '.join(failed)} (seed {given.seed})", style="bold red", highlight=False)
        return 1
    passed = f"{outcomes[0].unit} passes" if len(outcomes) == 1 else f"all {len(outcomes)} units pass"
    console.print(f"{passed} (seed {given.seed})", style="green", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
