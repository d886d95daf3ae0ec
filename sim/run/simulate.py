"""Testing one unit: generate, prepare, build, simulate, judge."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hdl.catalogue import Unit
from hdl.verilog import to_verilog
from sim.bench.findings import Context
from sim.bench.shell import TOP, shell
from sim.kinds import bench_of
from sim.port import ALWAYS_LAST
from sim.run.compiled import Engine, run_compiled
from sim.run.judge import judge
from sim.run.outcome import Outcome
from sim.run.simulators import concatenate_plainly, get_runner
from sim.scenario import NAMES, Scenario, matching
from sim.units import UNITS, core_of, port_of
from tools.paths import ROOT
from tools.yosys import loaded_yosys

__all__ = ["Job", "prepare", "run_unit"]


@dataclass(frozen=True)
class Job:
    """One unit to test, and how.

    Parameters
    ----------
    unit : str
        Name in `UNITS`.
    seed : int
    folder : Path
        Output folder of this run; it is emptied first.
    simulator : str
        ``icarus`` or ``verilator``.
    waves : bool
        Write a waveform: of all `scenarios` if given, otherwise of all but the long ones, which run as machine code
        only.
    scenarios : str
        Comma-separated scenarios to run, with ``*`` as a wildcard; all if empty.
    effort : float
        Factor on the unit's own effort.
    verilog : Path, optional
        The design; it is generated if this is missing.
    engines : tuple of Engine
    stops_early : bool
        End with the first scenario that fails as machine code.
    """

    unit: str
    seed: int
    folder: Path
    simulator: str = "icarus"
    waves: bool = False
    scenarios: str = ""
    effort: float = 1.0
    verilog: Path | None = None
    engines: tuple[Engine, ...] = tuple(Engine)
    stops_early: bool = False


def run_unit(job: Job) -> Outcome:
    """Test a unit. Any error becomes its outcome, so that the other units still run."""
    outcome = Outcome(job.unit)
    collects = gc.isenabled()
    # Garbage collection among millions of products takes as long as making them, and finds nothing.
    gc.disable()
    try:
        _run(job, outcome)
    except (Exception, SystemExit) as error:
        outcome.is_broken = True
        (job.folder / "error.log").write_text(traceback.format_exc())
        outcome.failures.append(f"{type(error).__name__}: {error} (see {_shown(job.folder / 'error.log')})")
    finally:
        if collects:
            gc.enable()
    return outcome


def _run(job: Job, outcome: Outcome) -> None:
    unit = UNITS[job.unit]
    shutil.rmtree(job.folder, ignore_errors=True)
    job.folder.mkdir(parents=True)
    component = unit.build()
    port = port_of(unit, component)
    design = job.verilog or job.folder / f"{unit.name}.v"
    if job.verilog is None:
        with loaded_yosys():
            design.write_text(to_verilog(component, unit.name))
    bench = job.folder / f"{TOP}.v"
    bench.write_text(shell(unit.name, port))

    effort = unit.effort * job.effort
    scenarios, required, formats = prepare(unit, job.seed, effort)
    chosen = matching(job.scenarios, [scenario.name for scenario in scenarios])
    kept = [scenario for scenario in scenarios if scenario.name in chosen]
    if unlisted := {scenario.name for scenario in scenarios} - set(NAMES):
        raise ValueError(f"scenarios: got {', '.join(sorted(unlisted))}, must be among sim.scenario.NAMES")
    # Machine code writes no waveform, so scenarios selected for waveforms are all simulated.
    simulates_all = job.waves and bool(job.scenarios)
    in_simulator = [scenario for scenario in kept if simulates_all or not scenario.is_bulk]
    for scenario in in_simulator:
        scenario.save(job.folder)
    simulated = [scenario.name for scenario in in_simulator]
    explain = bench_of(unit.kind).explain
    manifest = {
        "unit": unit.name,
        "seed": job.seed,
        "effort": job.effort,
        "port": port.as_dict(),
        "formats": formats,
        "scenarios": simulated,
        "explain": [explain.__module__, explain.__name__],
    }
    (job.folder / "manifest.json").write_text(json.dumps(manifest))

    # The long scenarios run as machine code only; without it, they are not counted.
    tested = kept if Engine.COMPILED in job.engines else in_simulator if Engine.SIMULATOR in job.engines else []
    outcome.vectors = sum(scenario.due for scenario in tested)
    # Payloads cut off by a reset may never have been driven, so they cover nothing.
    driven = (scenario.coverage for scenario in tested if not scenario.episodes[:, 2].any())
    outcome.bins = sum(map(Counter, driven), Counter())
    # A part of the scenarios, or of the stimulus, need not reach all bins.
    is_whole = not job.scenarios and job.effort >= 1
    outcome.required = required if is_whole else set()
    if is_whole and not required:
        outcome.blame("no coverage is required: whatever was driven would be enough")
    if not outcome.vectors:
        outcome.blame("no vectors: nothing was compared")
    if Engine.COMPILED in job.engines:
        run_compiled(
            [design, bench],
            kept,
            Context.from_dict(manifest),
            explain,
            job.folder / "compiled",
            outcome,
            stops_early=job.stops_early,
        )
    if Engine.SIMULATOR in job.engines and simulated and not (job.stops_early and outcome.failures):
        _run_simulator(job, unit, [design, bench], simulated, outcome)
    if outcome.required and effort >= 1 and outcome.stuck:
        outcome.failures.append(f"coverage: register bits that never change: {', '.join(outcome.stuck)}")
    if outcome.holes:
        shown = ", ".join(outcome.holes[:12]) + (", ..." if len(outcome.holes) > 12 else "")
        outcome.failures.append(f"coverage: {len(outcome.holes)} of {len(outcome.required)} bins are empty: {shown}")


def _run_simulator(job: Job, unit: Unit, sources: list[Path], scenarios: list[str], outcome: Outcome) -> None:
    status, seconds = _simulate(job, unit, sources)
    outcome.seconds += seconds
    judgement = judge(job.folder / "results.xml", scenarios)
    if status and not judgement.failures:
        judgement.blame(f"the simulator ended with status {status}; see simulation.log")
    outcome.failures += judgement.failures
    outcome.is_broken |= judgement.is_broken


def _simulate(job: Job, unit: Unit, sources: list[Path]) -> tuple[int, float]:
    """Build and run; return the simulator's exit status and its running time in seconds."""
    runner = get_runner(job.simulator)
    verilator_options = ["-Wno-fatal", *(["--trace-fst"] if job.waves else [])]
    runner.build(
        sources=sources,
        hdl_toplevel=TOP,
        build_dir=job.folder / "build",
        always=True,
        waves=job.waves,
        log_file=job.folder / "build.log",
        build_args=verilator_options if job.simulator == "verilator" else [],
    )
    if job.simulator == "icarus":
        concatenate_plainly(job.folder / "build")
    status, started = 0, time.perf_counter()
    try:
        runner.test(
            hdl_toplevel=TOP,
            test_module="sim.tests",
            build_dir=job.folder / "build",
            test_dir=job.folder,
            results_xml=str(job.folder / "results.xml"),
            seed=job.seed,
            waves=job.waves,
            log_file=job.folder / "simulation.log",
            extra_env={
                "CBFLOAT_SIM_RUN": str(job.folder),
                "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
                # cocotb would let pytest rewrite the assertions of all imports, NumPy included, which takes longer than
                # many units. The assertions of sim.bench have messages.
                "COCOTB_REWRITE_ASSERTION_FILES": "",
            },
        )
    except SystemExit as ended:
        # The simulator crashed, or (within pytest) tests failed: the results show which.
        status = ended.code if isinstance(ended.code, int) else 1
    return status, time.perf_counter() - started


@cache
def prepare(unit: Unit, seed: int, effort: float) -> tuple[list[Scenario], set[str], list[str]]:
    """Return the scenarios of a unit, the coverage bins that they must meet, and the names of their formats.

    They are cached: all faults of a unit that are judged in one process see the same stimulus.
    """

    component = unit.build()
    port = port_of(unit, component)
    prepared = bench_of(unit.kind).prepare(core_of(unit, component), port, seed, unit.name, effort)
    if ALWAYS_LAST in port.answer.widths:
        for scenario in prepared[0]:
            scenario.answers |= port.answer.pack(**{ALWAYS_LAST: 1})
    return prepared


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
