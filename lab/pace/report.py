"""The tables of paces: products per cycle, per second and per area, for every format and level, beside the peers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hdl.catalogue import UNITS, Kind, Unit
from lab.fpga.result import Report
from lab.fpga.units import Build, catalogue
from tools.results import Table

__all__ = ["PEERS", "SUBJECT", "Pace", "Peer", "conclusion", "every_pace", "figures", "measured_units", "paces"]

SUBJECT = "products per second"
_HEADINGS = ("unit", "format", "level", "products per cycle", "MHz", "million products/s", "COMB", "… per 1000 COMB")
_FOLDED = ("unit", "formats", "levels", "COMB", "MHz", "products per cycle", "million products/s", "… per 1000 COMB")


@dataclass(frozen=True)
class Peer:
    """A fused multiply-add unit that takes one product in every cycle.

    Parameters
    ----------
    name : str
    operand, accumulator : str
    comb : int
        LUT4 + 2 CCU2C.
    megahertz : float
        Median of three seeds; for a measured range, its upper end.
    """

    name: str
    operand: str
    accumulator: str
    comb: int
    megahertz: float

    @property
    def density(self) -> float:
        """Million products per second and 1000 COMB."""
        return 1000 * self.megahertz / self.comb


_HARDFLOAT = "Berkeley HardFloat, 4 cut points"

#: Other open units, measured with the tools, device, wrapper and seeds of `make fpga`. The first four accumulate in the
#: operand format, the others in fp32.
PEERS = (
    Peer(_HARDFLOAT, "float16", "float16", 1050, 68),
    Peer(_HARDFLOAT, "1-6-9 bits", "1-6-9 bits", 1075, 68),
    Peer(_HARDFLOAT, "bfloat16", "bfloat16", 825, 68),
    Peer("FloPoCo, 3 ranks", "float16", "float16", 835, 72),
    Peer(_HARDFLOAT, "float16", "float32", 2373, 55),
    Peer("FPnew multi-format, 3 registers", "float32, float16, bfloat16", "the same", 2685, 32),
)


@dataclass(frozen=True)
class Pace:
    """One row: a unit in one format at one level."""

    unit: str
    format: str
    level: int
    products_per_cycle: Fraction
    megahertz: float
    comb: int

    @property
    def rate(self) -> float:
        """Million products per second."""
        return float(self.products_per_cycle) * self.megahertz

    @property
    def density(self) -> float:
        """Million products per second and 1000 COMB."""
        return 1000 * self.rate / self.comb


def measured_units(report: Report) -> dict[str, Build]:
    """Return the accumulating units of a report that have their recommended depth, and, but for arrays, flags."""
    # No simulator knows the primitive of a family; the generic multiplier takes as many cycles.
    builds = catalogue("generic")
    return {result.name: builds[result.name] for result in report.results if _has_pace(UNITS[result.name])}


def _has_pace(unit: Unit) -> bool:
    is_accumulating = unit.kind.core in (Kind.MAC, Kind.VECTOR)
    return unit.kind is Kind.MATRIX or (is_accumulating and not {"stages", "flags"} & unit.arguments.keys())


def paces(report: Report, measured: dict[tuple[str, int], Fraction], units: dict[str, Any]) -> Iterator[Pace]:
    """Yield the rows, in the order of the report.

    Parameters
    ----------
    report : Report
        Areas and frequencies.
    measured : dict
        Products per cycle by unit and level.
    units : dict
        The units themselves by name.
    """
    for result in report.results:
        if result.name not in units:
            continue
        unit = units[result.name]
        for fmt in unit.operands:
            for level in unit.levels:
                pace = measured[result.name, level]
                yield Pace(result.name, str(fmt), level, pace, result.megahertz, result.area["COMB"])


def conclusion(rows: list[Pace]) -> str:
    """Return one line: the fastest row of one lane, of several and of an array, in cbfloat16 at level 1."""
    chosen = [row for row in rows if row.format == "cbfloat16" and row.level == 1]
    scalar, vector, matrix = (
        max((row for row in chosen if UNITS[row.unit].kind is kind), key=lambda row: row.rate)
        for kind in (Kind.MAC, Kind.VECTOR, Kind.MATRIX)
    )
    return (
        f"{scalar.rate:.0f} million in one lane (`{scalar.unit}`), {vector.rate:.0f} million in several "
        f"(`{vector.unit}`), {matrix.rate:.0f} million in an array (`{matrix.unit}`), in cbfloat16 at level 1"
    )


def every_pace(rows: list[Pace]) -> Table:
    """Return the table of all rows, with the peers at the end; it is kept, not shown."""
    lines: list[tuple[object, ...]] = [
        (
            f"`{row.unit}`", row.format, row.level, f"{float(row.products_per_cycle):.2f}", f"{row.megahertz:.0f}",
            f"{row.rate:.0f}", row.comb, f"{row.density:.0f}",
        )
        for row in rows
    ]  # fmt: skip
    lines += [
        (
            peer.name, f"{peer.operand} into {peer.accumulator}", "", "1.00", f"{peer.megahertz:.0f}",
            f"{peer.megahertz:.0f}", peer.comb, f"{peer.density:.0f}",
        )
        for peer in PEERS
    ]  # fmt: skip
    return Table(_HEADINGS, [tuple(map(str, line)) for line in lines], left=2)


def figures(whole: Table) -> Table:
    """Return the table that is shown: a row for each unit, with the numbers of its levels side by side.

    Formats share a row if all their numbers are equal.
    """
    levels: dict[tuple[str, str, str, str], list[Sequence[str]]] = {}
    for unit, fmt, level, pace, megahertz, rate, comb, density in whole.rows:
        levels.setdefault((unit, fmt, comb, megahertz), []).append((level, pace, rate, density))
    formats: dict[tuple[str, ...], list[str]] = {}
    for (unit, fmt, comb, megahertz), numbers in levels.items():
        level, pace, rate, density = map(" · ".join, zip(*numbers, strict=True))
        formats.setdefault((unit, level, comb, megahertz, pace, rate, density), []).append(fmt)
    rows = [(unit, ", ".join(names), *rest) for (unit, *rest), names in formats.items()]
    return Table(_FOLDED, rows, left=3)
