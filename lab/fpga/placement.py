"""From a netlist to a frequency: a device, nextpnr with one seed, and the path that limits it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.fpga.families import Family, family_named
from lab.fpga.synthesis import NETLIST

__all__ = ["CriticalPath", "Placement", "Target", "is_placed", "place", "read_report"]

# Yosys names a cell after the nearest named signal, then the types and ports on the path to it; some have no name.
_GENERATED = re.compile(
    r"(_(TRELLIS_FF|FD1P3\w\w|DFF[A-Z]*|SB_DFF[A-Z]*|LUT\d|SB_LUT4|PFUMX|L6MUX21|MUX2_LUT\d|WIDEFN9|CCU2C?|ALU|INV"
    r"|SB_CARRY|MULT\w+|(TRELLIS_)?DPR16X4|RAM16SDP4|DI|DO|RAD|WAD)(_|$)|\$).*"
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A device with the frequency that the tools aim at.

    Parameters
    ----------
    family : str
        A name of `lab.fpga.families.FAMILIES`.
    device, package : str
        The family's own device if they are not given.
    speed : int
        Speed grade; the slowest if it is not given.
    megahertz : int
        Target frequency, out of reach on purpose: below it the tools would stop improving.
    fills : bool
        The unit fills half the device, an ECP5. nextpnr's default placer gives it twice the wire, and it cannot be
        routed; its reset lies on the network of clocks.

    Raises
    ------
    ValueError
        If there is no such family or speed grade, or another family's device is to be filled.
    """

    family: str = "ecp5"
    device: str = ""
    package: str = ""
    speed: int | None = None
    megahertz: int = 400
    fills: bool = False

    def __post_init__(self) -> None:
        row = self.row
        for name, value in (("device", row.device), ("package", row.package), ("speed", row.speeds[0])):
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        if self.speed not in row.speeds:
            allowed = f"one of {row.speeds}" if len(row.speeds) > 1 else f"left out for {self.family}"
            raise ValueError(f"speed: got {self.speed}, must be {allowed}")
        if self.fills and self.family != "ecp5":
            raise ValueError(f"fills: got True, must be False for {self.family}: only the ECP5 has a flow for it")

    @property
    def row(self) -> Family:
        """The family's row of the table."""
        return family_named(self.family)

    @property
    def options(self) -> list[str]:
        """The options of nextpnr, except the seed and the files."""
        size = self.device.rpartition("-")[2].rstrip("F").lower()
        options = self.row.options.format(size=size, **asdict(self)).split()
        return [*options, "--placer", "static"] if self.fills else options

    def __str__(self) -> str:
        return self.row.title.format(**asdict(self))


@dataclass(frozen=True)
class CriticalPath:
    """The slowest path between two registers.

    Parameters
    ----------
    start, end : str
        Registers, by the names of their signals.
    logic, routing : float
        Nanoseconds in cells and on wires.
    levels : int
        LUTs, carry chains and memories passed. A cell behind a direct wire, which has no delay, counts together with
        the cell before it.
    via : list of str
        Signals near which the cells on the path lie, in order.
    """

    start: str
    end: str
    logic: float
    routing: float
    levels: int
    via: list[str]

    def __str__(self) -> str:
        return (
            f"{self.start} -> {self.end}: logic {self.logic:.1f} ns, routing {self.routing:.1f} ns, "
            f"{self.levels} levels" + (f", via {', '.join(self.via)}" if self.via else "")
        )


@dataclass(frozen=True)
class Placement:
    """The placement of one seed: its highest frequency, and the path that limits it."""

    megahertz: float
    path: CriticalPath


def is_placed(folder: Path, seed: int) -> bool:
    """Return whether the netlist of a folder has been placed with a seed."""
    return _report(folder, seed).is_file()


def place(folder: Path, target: Target, seed: int) -> Placement:
    """Place and route the netlist of a folder, unless that has been done.

    Raises
    ------
    PlacementFailed
        If nextpnr reports an error.
    """
    report = _report(folder, seed)
    if not is_placed(folder, seed):
        # A run that fails or is interrupted leaves no file with the final name.
        unfinished = report.with_suffix(".unfinished")
        arguments = [*target.options, "--json", NETLIST, "--seed", str(seed), "--report", unfinished.name]
        target.row.nextpnr.run(arguments, folder, f"seed{seed}.log")
        unfinished.replace(report)
    return read_report(json.loads(report.read_text(encoding="utf-8")))


def _report(folder: Path, seed: int) -> Path:
    return folder / f"seed{seed}.json"


def read_report(report: Mapping[str, Any]) -> Placement:
    """Return the result in nextpnr's report.

    Raises
    ------
    ValueError
        If it has no clock or no path from register to register, as for a unit without hardware.
    """
    frequencies = [clock["achieved"] for clock in report["fmax"].values()]
    paths = [path for path in report["critical_paths"] if _is_clocked(path["from"]) and _is_clocked(path["to"])]
    if not frequencies or not paths:
        raise ValueError("nextpnr's report has no path between two registers")
    slowest = max(paths, key=lambda path: sum(step["delay"] for step in path["path"]))
    return Placement(round(min(frequencies), 1), _read_path(slowest["path"]))


def _is_clocked(event: str) -> bool:
    return event.startswith(("posedge", "negedge"))


def _read_path(steps: list[Mapping[str, Any]]) -> CriticalPath:
    start, end = _signal(steps[0]["from"]["cell"]), _signal(steps[-1]["to"]["cell"])
    wires = [step for step in steps if step["type"] == "routing"]
    # The last wire leads to the register at the end, every other one to a level of logic.
    levels = sum(step["delay"] > 0 for step in wires[:-1])
    passed = dict.fromkeys(_signal(step["from"]["cell"]) for step in steps if step["type"] == "logic")
    return CriticalPath(
        start,
        end,
        round(sum(step["delay"] for step in steps if step["type"] != "routing"), 2),
        round(sum(step["delay"] for step in wires), 2),
        levels,
        [signal for signal in passed if signal not in ("", start, end)],
    )


def _signal(cell: str) -> str:
    return _GENERATED.sub("", cell).removeprefix("unit.")
