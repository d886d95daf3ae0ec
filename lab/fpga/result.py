"""The result of measuring a unit, and the file that keeps it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lab.fpga.liberty import StandardCells
from lab.fpga.placement import CriticalPath, Placement, Target
from lab.fpga.synthesis import area

__all__ = ["Report", "Result"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The measurement of a unit.

    Parameters
    ----------
    name, parameters : str
    latency, accumulate_latency : int, optional
        In cycles; None for a unit without it.
    cells : dict
        Cells of the unit alone by type.
    placements : dict
        A `Placement` for every seed.
    square_micrometres : float, optional
        Area in standard cells; None on an FPGA.
    key : str
        Names everything that the result depends on but the seeds; see `lab.fpga.measurement.cache_key`. Empty if it was
        not recorded.
    cached : bool
        Whether no tool had to run for it.
    """

    name: str
    parameters: str
    latency: int | None
    accumulate_latency: int | None
    cells: Mapping[str, int]
    placements: Mapping[int, Placement]
    square_micrometres: float | None = None
    key: str = field(default="", compare=False)
    cached: bool = field(default=False, compare=False)

    @property
    def area(self) -> dict[str, int]:
        """See `lab.fpga.synthesis.area`."""
        return area(self.cells)

    @property
    def frequencies(self) -> list[float]:
        """Megahertz of all seeds, the lowest first."""
        return sorted(placement.megahertz for placement in self.placements.values())

    @property
    def megahertz(self) -> float:
        """Median of the seeds."""
        return statistics.median(self.frequencies)

    @property
    def typical_path(self) -> CriticalPath:
        """Critical path of the seed that is nearest to the median."""
        return min(self.placements.values(), key=lambda placement: abs(placement.megahertz - self.megahertz)).path


@dataclass(frozen=True)
class Report:
    """The measurements of several units under the same conditions."""

    target: Target | StandardCells
    tools: Mapping[str, str]
    results: tuple[Result, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report in JSON's types."""
        units = []
        for result in self.results:
            unit = asdict(result)
            del unit["cached"]
            unit["placements"] = {str(seed): value for seed, value in unit["placements"].items()}
            units.append(unit)
        return {"target": asdict(self.target), "tools": dict(self.tools), "units": units}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Report:
        """Return the report that `to_json` wrote."""
        results = []
        for unit in given["units"]:
            placements = {
                int(seed): Placement(value["megahertz"], CriticalPath(**value["path"]))
                for seed, value in unit["placements"].items()
            }
            results.append(Result(**(unit | {"placements": placements})))
        kind = StandardCells if given["target"].get("family") == "asic" else Target
        return cls(kind(**given["target"]), given["tools"], tuple(results))

    def updated(self, newer: Report, order: Iterable[str]) -> Report:
        """Return this report with the units of a newer one added or replaced.

        Parameters
        ----------
        newer : Report
        order : iterable of str
            Names of all units in the order of the table; others are dropped.

        Raises
        ------
        ValueError
            If units would remain that were measured under other conditions.
        """
        units = {result.name: result for result in (*self.results, *newer.results)}
        results = tuple(units[name] for name in order if name in units)
        older = [result.name for result in results if result not in newer.results]
        if older and (self.target, self.tools) != (newer.target, newer.tools):
            raise ValueError(
                f"units: got {', '.join(result.name for result in newer.results)}, must be all units, "
                f"because {', '.join(older)} were measured on another device or with other tools"
            )
        return Report(newer.target, newer.tools, results)
