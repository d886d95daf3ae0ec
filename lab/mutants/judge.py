"""Put bugs into the RTL, one at a time, and require that the regression catches each."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console
from rich.table import Table

from golden.nearest import did_you_mean
from hdl.verilog import to_verilog
from lab.mutants.table import Fault, hdl_with, rtl_faults
from sim.run.compiled import Engine
from sim.run.generate import generate
from sim.run.options import parse
from sim.run.pool import fresh_processes
from sim.run.simulate import Job, run_unit
from sim.run.simulators import MissingSimulator, check_simulator
from sim.units import UNITS
from tools.evidence import Means, Record, note
from tools.interrupts import end_with_parent, ended_by_interrupts, ending_on_interrupt
from tools.yosys import loaded_yosys

__all__ = ["MUTANTS", "BrokenMutant", "Trial", "judge_mutant", "main", "mutate"]

#: The faults that the regression must catch.
MUTANTS = rtl_faults(simulated=True)


class BrokenMutant(Exception):
    """The mutant itself is unusable: its edit does not fit, or gives no Verilog that could be tested."""


@dataclass(frozen=True)
class Trial:
    """The outcome of a mutant.

    Parameters
    ----------
    name, unit : str
    result : str
        ``caught``, ``survived`` or ``broken``; ``passed`` or ``broken`` for the unmutated unit.
    seconds : float
    remark : str
        The first line of the failure.
    """

    name: str
    unit: str
    result: str
    seconds: float
    remark: str

    @property
    def is_good(self) -> bool:
        """Whether this is as it should be."""
        return self.result in ("caught", "passed")


def mutate(mutant: Fault, folder: Path, original: str) -> Path:
    """Put the fault into a copy of `hdl`, and return the Verilog of the faulty unit.

    Parameters
    ----------
    mutant : Fault
    folder : Path
        It is emptied first.
    original : str
        The Verilog of the unit as it is.

    Raises
    ------
    BrokenMutant
        If the edit does not match exactly once, nothing is generated, or the Verilog is the same as before.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        hdl_with(mutant, folder)
    except ValueError as error:
        raise BrokenMutant(str(error)) from None
    mutated = folder / f"{mutant.unit}.v"
    try:
        generate(mutant.unit, folder, mutated)
    except (RuntimeError, BrokenProcessPool) as error:
        raise BrokenMutant(f"{mutant.unit}: no Verilog: {error}") from None
    if mutated.read_text(encoding="utf-8") == original:
        raise BrokenMutant(f"{mutant.file}: the edit does not change the Verilog of {mutant.unit}")
    return mutated


def verilog_of(unit: str) -> str:
    """Return the Verilog of a unit as it is."""
    with loaded_yosys():
        return to_verilog(UNITS[unit].build(), unit)


def judge_mutant(mutant: Fault, job: Job, original: str) -> Trial:
    """Test a mutated unit; only wrong results count as caught."""
    started = time.perf_counter()
    try:
        verilog = mutate(mutant, job.folder, original)
    except BrokenMutant as error:
        return Trial(mutant.name, mutant.unit, "broken", time.perf_counter() - started, str(error))
    outcome = run_unit(replace(job, verilog=verilog, folder=job.folder / "run"))
    remark = outcome.failures[0].splitlines()[0] if outcome.failures else "nothing failed"
    result = "broken" if outcome.is_broken else "survived" if outcome.passed else "caught"
    return Trial(mutant.name, mutant.unit, result, time.perf_counter() - started, remark)


def _judge_unmutated(job: Job) -> Trial:
    started = time.perf_counter()
    outcome = run_unit(job)
    remark = outcome.failures[0].splitlines()[0] if outcome.failures else "as it should"
    result = "passed" if outcome.passed else "broken"
    return Trial(
        f"unmutated, {job.scenarios or 'all scenarios'}", job.unit, result, time.perf_counter() - started, remark
    )


def _select(names: str) -> list[Fault]:
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if not any(fnmatchcase(mutant.name, name) for mutant in MUTANTS):
            known = [mutant.name for mutant in MUTANTS]
            meant = did_you_mean(name, known)
            raise ValueError(
                f"mutants: got {name!r}, must be some of {', '.join(known)} (* stands for anything){meant}"
            )
    return [mutant for mutant in MUTANTS if not wanted or any(fnmatchcase(mutant.name, name) for name in wanted)]


def _every_stimulus(mutants: Sequence[Fault]) -> list[Fault]:
    """Return mutants whose unmutated units together run, once each, every scenario that judges a fault."""
    scenarios: dict[Fault, set[str]] = {}
    first: dict[tuple[str, float, bool], Fault] = {}
    for mutant in mutants:
        alike = first.setdefault((mutant.unit, mutant.effort, mutant.simulator), mutant)
        scenarios.setdefault(alike, set()).add(mutant.scenarios)
    # An empty name means all scenarios.
    return [
        replace(mutant, scenarios="" if "" in names else ",".join(sorted(names))) for mutant, names in scenarios.items()
    ]


def _evidence(verdicts: Sequence[Trial]) -> list[Record]:
    """Return the numbers of faults in each unit, and of those that were not caught."""
    results = {verdict.name: verdict for verdict in verdicts}
    parts = {mutant.part: [results[each.name] for each in MUTANTS if each.part is mutant.part] for mutant in MUTANTS}
    return [
        Record(part, Means.FAULTS, len(its), "by simulation", sum(not one.is_good for one in its))
        for part, its in parts.items()
    ]


@ending_on_interrupt("lab.mutants", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run all mutants; return 0 if each one was caught, 1 if not, 2 if it could not start, 130 on Ctrl-C."""
    given = parse(arguments, "python -m lab.mutants", __doc__ or "", mutants=True)
    console = Console(width=None if sys.stdout.isatty() else 150)
    try:
        check_simulator(given.sim)
        mutants = given.share.of(_select(given.mutants))
    except (ValueError, MissingSimulator) as error:
        print(f"lab.mutants: {error}", file=sys.stderr)
        return 2
    folder = given.folder / "mutants"
    console.print(f"seed {given.seed}, {len(mutants)} mutants, {given.jobs} at a time, {given.sim}", highlight=False)

    def job(mutant: Fault, name: str) -> Job:
        return Job(
            mutant.unit,
            given.seed,
            folder / name,
            simulator=given.sim,
            scenarios=mutant.scenarios,
            effort=mutant.effort * given.effort,
            engines=(Engine.SIMULATOR if mutant.simulator else Engine.COMPILED,),
            stops_early=True,
        )

    verdicts: list[Trial] = []
    processes = fresh_processes("lab.mutants.judge", "sim.run.loaded")
    with ProcessPoolExecutor(given.jobs, processes, end_with_parent) as pool, ended_by_interrupts(pool):
        units = sorted({mutant.unit for mutant in mutants})
        originals = dict(zip(units, pool.map(verilog_of, units), strict=True))
        futures = [
            pool.submit(_judge_unmutated, job(mutant, f"unmutated_{at}"))
            for at, mutant in enumerate(_every_stimulus(mutants))
        ]
        futures += [
            pool.submit(judge_mutant, mutant, job(mutant, mutant.name), originals[mutant.unit]) for mutant in mutants
        ]
        for future in as_completed(futures):
            verdict = future.result()
            verdicts.append(verdict)
            progress = f"[{len(verdicts)}/{len(futures)}] {verdict.result:<8}"
            line = f"{progress} {verdict.name} ({verdict.unit}): {verdict.remark}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    verdicts.sort(key=lambda verdict: (verdict.result in ("caught", "passed"), verdict.result, verdict.name))
    table = Table(title=f"{len(mutants)} mutants, seed {given.seed}")
    for column in ("mutant", "unit", "result", "seconds"):
        table.add_column(column, justify="right" if column == "seconds" else "left")
    for verdict in verdicts:
        style = None if verdict.is_good else "bold red"
        table.add_row(verdict.name, verdict.unit, verdict.result, f"{verdict.seconds:.1f}", style=style)
    console.print(table)
    if len(mutants) == len(MUTANTS):
        note("mutants", _evidence(verdicts), ["lab.mutants"])
    bad = [verdict.name for verdict in verdicts if not verdict.is_good]
    if bad:
        console.print(f"FAILED: {', '.join(bad)} (seed {given.seed})", style="bold red", highlight=False)
        return 1
    console.print(f"all {len(mutants)} mutants are caught (seed {given.seed})", style="green", highlight=False)
    return 0
