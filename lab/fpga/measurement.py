"""The measurement of one unit; each step is kept for the next run."""

from __future__ import annotations

import hashlib
import inspect
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from golden.files import write_whole
from hdl.verilog import to_verilog
from lab.fpga import wrapper
from lab.fpga.placement import Target, is_placed, place
from lab.fpga.result import Result
from lab.fpga.synthesis import SCRIPTS, synthesise, wrap
from lab.fpga.units import Build, parameters_of

__all__ = ["cache_key", "measure", "plain_verilog", "source_of"]

# Elaboration is Python, which several threads do no faster.
_ELABORATING = threading.Lock()


def plain_verilog(verilog: str) -> str:
    """Return Verilog without its header comment, so that a change of the comment measures nothing anew."""
    lines = verilog.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("//"))


def source_of(build: Build) -> str:
    """Return the hash of a unit's Verilog, 16 hexadecimal digits, as `tools.sources.MEASURED` has it."""
    return hashlib.sha256(plain_verilog(to_verilog(build(), "unit")).encode()).hexdigest()[:16]


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
    text = json.dumps([verilog, dict(sorted(tools.items())), target.options, SCRIPTS, inspect.getsource(wrapper)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measure(
    name: str,
    build: Build,
    *,
    target: Target,
    seeds: Sequence[int],
    tools: Mapping[str, str],
    folder: Path,
    progress: Callable[[str], None],
) -> Result:
    """Synthesise a unit, then place it with each seed.

    Parameters
    ----------
    name : str
        Its name in the table.
    build : function
        Gives the component.
    target : Target
    seeds : sequence of int
        Each one starts nextpnr from another random placement.
    tools : dict
        Versions of the tools.
    folder : Path
        The folder for all units; the files of this one lie in ``NAME/KEY`` below it.
    progress : function
        Takes a line about every run of a tool, or about the result that made it unnecessary.

    Raises
    ------
    MeasurementError
        If a tool is missing or fails; the class says which step.
    """
    with _ELABORATING:
        unit = build()
        verilog = plain_verilog(to_verilog(unit, "unit"))
    folder = folder / name / cache_key(verilog, tools, target)
    folder.mkdir(parents=True, exist_ok=True)
    was_cached = True

    started = time.monotonic()
    known = folder / "cells.json"
    if known.is_file():
        cells = json.loads(known.read_text(encoding="utf-8"))
        progress(f"{name}: synthesis, cached")
    else:
        was_cached = False
        cells = synthesise(verilog, folder)
        wrap(folder)
        write_whole(known, json.dumps(cells).encode())
        progress(f"{name}: synthesis, {time.monotonic() - started:.0f} s")

    placements = {}
    for seed in seeds:
        started = time.monotonic()
        is_known = is_placed(folder, seed)
        placements[seed] = place(folder, target, seed)
        took = "cached" if is_known else f"{time.monotonic() - started:.0f} s"
        progress(f"{name}: seed {seed}, {placements[seed].megahertz:.1f} MHz, {took}")
        was_cached = was_cached and is_known

    return Result(
        name=name,
        parameters=parameters_of(unit),
        latency=getattr(unit, "latency", None),
        accumulate_latency=getattr(unit, "accumulate_latency", None),
        cells=cells,
        placements=placements,
        cached=was_cached,
    )
