"""The measurement of one unit; the results of each step are kept for the next run."""

from __future__ import annotations

import hashlib
import inspect
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from golden.files import write_whole
from hdl.verilog import to_verilog
from lab.fpga import wrapper
from lab.fpga.placement import Target, is_placed, place
from lab.fpga.result import Result
from lab.fpga.synthesis import route_as_clock, scripts, synthesise, wrap
from lab.fpga.units import Build, parameters_of

__all__ = ["cache_key", "elaborated", "measure", "plain_verilog", "source_of"]

# Elaboration is Python, which several threads do not speed up.
_ELABORATING = threading.Lock()


def plain_verilog(verilog: str) -> str:
    """Return Verilog without its header comment, so that a change of the comment needs no new measurement."""
    lines = verilog.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("//"))


def source_of(build: Build) -> str:
    """Return the hash of a unit's Verilog, 16 hexadecimal digits, as `tools.sources.MEASURED` has it."""
    return hashlib.sha256(plain_verilog(to_verilog(build(), "unit")).encode()).hexdigest()[:16]


def elaborated(name: str, build: Build) -> tuple[Result, str]:
    """Return a result with the facts that need no measurement, and the unit's Verilog."""
    with _ELABORATING:
        unit = build()
        verilog = plain_verilog(to_verilog(unit, "unit"))
    described = Result(
        name=name,
        parameters=parameters_of(unit),
        latency=getattr(unit, "latency", None),
        accumulate_latency=getattr(unit, "accumulate_latency", None),
        cells={},
        placements={},
    )
    return described, verilog


def cache_key(verilog: str, tools: Mapping[str, str], target: Target) -> str:
    """Return a name for everything that a result depends on, except the seed.

    Parameters
    ----------
    verilog : str
        The unit.
    tools : dict
        Versions of the tools.
    target : Target
        The device and its options.
    """
    known = [verilog, dict(sorted(tools.items())), target.options, scripts(target.row), inspect.getsource(wrapper)]
    if target.row.constraints:
        known.append(target.row.constraints)
    if target.fills:
        known.append(inspect.getsource(route_as_clock))
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def measure(
    name: str,
    build: Build,
    *,
    target: Target,
    seeds: Sequence[int],
    tools: Mapping[str, str],
    folder: Path,
    progress: Callable[[str], None],
    known: Mapping[str, Result] | None = None,
) -> Result:
    """Synthesise a unit, then place it with each seed, unless a known result already has all of this.

    Parameters
    ----------
    name : str
        Its name in the table.
    build : function
        Makes the component.
    target : Target
    seeds : sequence of int
        Each one starts nextpnr from another random placement.
    tools : dict
        Versions of the tools.
    folder : Path
        The folder for all units; the files of this one lie in ``NAME/KEY`` below it.
    progress : function
        Takes a line about every run of a tool, or about the result that made it unnecessary.
    known : mapping of str to Result, optional
        Results by name: a result is returned as it is if nothing that it depends on has changed.

    Raises
    ------
    MeasurementError
        If a tool is missing or fails; the class says which step.
    """
    described, verilog = elaborated(name, build)
    key = cache_key(verilog, tools, target)
    if (found := (known or {}).get(name)) and found.key == key and set(found.placements) == set(seeds):
        for line in ("synthesis", *(f"seed {seed}, {found.placements[seed].megahertz:.1f} MHz" for seed in seeds)):
            progress(f"{name}: {line}, unchanged since it was published")
        return replace(found, cached=True)
    folder = folder / name / key
    folder.mkdir(parents=True, exist_ok=True)
    was_cached = True

    started = time.monotonic()
    counted = folder / "cells.json"
    if counted.is_file():
        cells = json.loads(counted.read_text(encoding="utf-8"))
        progress(f"{name}: synthesis, cached")
    else:
        was_cached = False
        cells = synthesise(verilog, folder, target.row)
        wrap(folder, target.row, fills=target.fills)
        write_whole(counted, json.dumps(cells).encode())
        progress(f"{name}: synthesis, {time.monotonic() - started:.0f} s")

    placements = {}
    for seed in seeds:
        started = time.monotonic()
        is_known = is_placed(folder, seed)
        placements[seed] = place(folder, target, seed)
        took = "cached" if is_known else f"{time.monotonic() - started:.0f} s"
        progress(f"{name}: seed {seed}, {placements[seed].megahertz:.1f} MHz, {took}")
        was_cached = was_cached and is_known

    return replace(described, cells=cells, placements=placements, key=key, cached=was_cached)
