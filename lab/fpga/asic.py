"""An estimate for an ASIC before layout: standard cells of a user's library, by Yosys and ABC."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from golden.files import write_whole
from lab.fpga import fanout, timing
from lab.fpga.fanout import MOST, spread
from lab.fpga.liberty import Library, StandardCells
from lab.fpga.measurement import elaborated
from lab.fpga.placement import CriticalPath, Placement
from lab.fpga.result import Result
from lab.fpga.synthesis import count_cells
from lab.fpga.timing import longest_path
from lab.fpga.units import Build
from tools.programs import YOSYS

__all__ = ["BLIND", "StandardCells", "estimate"]

BLIND = (
    "An estimate before layout: no wire, no clock tree, no test logic, no corner but the file's. Register files take "
    "flip-flops. Clock-to-output and setup times count, and so does the capacitance of each pin."
)

_SCRIPT = """\
read_verilog unit.v
synth -flatten -noabc -top unit
dfflibmap -liberty cells.lib
opt
abc -liberty cells.lib -script +strash;&get,-n;&fraig,-x;&put;scorr;dc2;strash;&get,-n;&dch,-f;&nf;&put;topo;\
buffer,-c,-N,@MOST@;upsize;dnsize
opt_clean
write_json unit.json
""".replace("@MOST@", str(MOST))


_AFTER = "".join(map(inspect.getsource, (fanout, timing)))


def estimate(
    name: str,
    build: Build,
    *,
    library: Library,
    tools: Mapping[str, str],
    folder: Path,
    progress: Callable[[str], None],
    known: Mapping[str, Result] | None = None,
) -> Result:
    """Map a unit to standard cells, and find its area and its longest path.

    The parameters are as for `lab.fpga.measurement.measure`, with a library instead of a target and seeds.

    Raises
    ------
    MeasurementError
        If Yosys is missing or fails.
    ValueError
        If the library lacks a cell that the unit needs.
    """
    described, verilog = elaborated(name, build)
    text = json.dumps([verilog, dict(sorted(tools.items())), _SCRIPT, _AFTER, library.digest])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    if (found := (known or {}).get(name)) and found.key == key:
        progress(f"{name}: standard cells, {found.megahertz:.1f} MHz, unchanged since it was published")
        return replace(found, cached=True)
    folder = folder / name / key
    folder.mkdir(parents=True, exist_ok=True)
    kept, started = folder / "estimate.json", time.monotonic()
    if was_cached := kept.is_file():
        cells, megahertz, path = json.loads(kept.read_text(encoding="utf-8"))
    else:
        (folder / "unit.v").write_text(verilog, encoding="utf-8")
        (folder / "cells.lib").write_text(library.text, encoding="utf-8")
        (folder / "synthesis.ys").write_text(_SCRIPT, encoding="utf-8")
        # ABC takes over the output, so Yosys's own log goes into a file.
        YOSYS.run(["-q", "-l", "yosys.log", "-s", "synthesis.ys"], folder, "synthesis.log")
        module = json.loads((folder / "unit.json").read_text(encoding="utf-8"))["modules"]["unit"]
        spread(module, library)
        cells, placement = count_cells(module), longest_path(module, library)
        megahertz, path = placement.megahertz, vars(placement.path)
        write_whole(kept, json.dumps([cells, megahertz, path]).encode())
    took = "cached" if was_cached else f"{time.monotonic() - started:.0f} s"
    progress(f"{name}: standard cells, {megahertz:.1f} MHz, {took}")
    flip_flops = sum(count for kind, count in cells.items() if library.cells[kind].is_flip_flop)
    area = sum(count * library.cells[kind].area for kind, count in cells.items())
    return replace(
        described,
        cells=cells | {"FF": flip_flops},
        placements={1: Placement(megahertz, CriticalPath(**path))},
        square_micrometres=round(area, 1),
        key=key,
        cached=was_cached,
    )
