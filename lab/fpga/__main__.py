"""``python -m lab.fpga``: measure the units that match, in one technology or in all, and show a table."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path

from hdl.catalogue import released
from hdl.verilog import to_verilog
from lab.fpga import technologies
from lab.fpga.asic import estimate
from lab.fpga.families import FAMILIES, family_named
from lab.fpga.liberty import Library, StandardCells, read_liberty
from lab.fpga.measurement import measure, source_of
from lab.fpga.picture import PICTURE, draw, has_picture
from lab.fpga.placement import Target
from lab.fpga.report import SUBJECT, conclusion, figures, markdown, note, published, table, write_json
from lab.fpga.result import Report, Result
from lab.fpga.units import Build, catalogue, parameters_of, select
from tools import results
from tools.errors import MeasurementError
from tools.interrupts import ended_by_interrupts, ending_on_interrupt, whole_in_spite_of_interrupts
from tools.pages import add_update_docs, publish
from tools.paths import ROOT, at_least_one, folder_to_write
from tools.programs import YOSYS, versions
from tools.sources import MEASURED, RELEASED, unit_source

__all__ = ["main"]


def _seeds(text: str) -> tuple[int, ...]:
    seeds = tuple(int(number) for number in text.split(","))
    if len(set(seeds)) != len(seeds) or min(seeds) < 1:
        raise argparse.ArgumentTypeError(f"got {text}, must be different positive numbers")
    return seeds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.fpga", description="Area and speed on FPGAs, or an ASIC's estimate."
    )
    parser.add_argument(
        "units",
        nargs="*",
        metavar="UNIT",
        help="names or patterns such as 'mac*' (default: all of the table but arrays of 64 lanes)",
    )
    parser.add_argument(
        "--family",
        choices=[*FAMILIES, "asic", "all"],
        default="ecp5",
        help="technology (default ecp5); all: every other FPGA, and an ASIC if --liberty is given",
    )
    parser.add_argument("--liberty", type=Path, metavar="FILE", help="standard cells (.lib, .lib.gz) of --family asic")
    parser.add_argument("--anew", action="store_true", help="measure again what has not changed since it was published")
    parser.add_argument("--list", action="store_true", help="list the units and stop")
    parser.add_argument("--seeds", type=_seeds, default=(1, 2, 3), help="seeds of the placement (default 1,2,3)")
    parser.add_argument("--speed", type=int, help="speed grade (default: the slowest)")
    parser.add_argument(
        "--fills", action="store_true", help="a unit that fills half a device: another placer, which aims at 160 MHz"
    )
    parser.add_argument("--jobs", type=at_least_one, default=1, help="units at a time (default %(default)s)")
    parser.add_argument("--paths", action="store_true", help="also print the critical path of every unit")
    parser.add_argument("-o", "--output", type=folder_to_write, default=Path("build/fpga"), metavar="FOLDER")
    parser.add_argument(
        "--sources",
        action="store_true",
        help="write hdl/released.json and hdl/measured.json, by which tests and pages know the Verilog, and stop",
    )
    add_update_docs(parser, "fpga", "put the results into docs/results/fpga.md or technologies.md")
    return parser


class _Progress:
    """One numbered line for every run of a tool, with the time since the start."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._started, self._lock = time.monotonic(), threading.Lock()

    def __call__(self, line: str) -> None:
        with self._lock:
            self._done += 1
            minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
            width = len(str(self._total))
            print(f"[{self._done:>{width}}/{self._total}] {minutes:>2}:{seconds:02} {line}", flush=True)


def _measure_all(
    units: Mapping[str, Build], measure_one: Callable[[str, Build], Result], processes: int
) -> tuple[Result, ...]:
    """Measure every unit, report those that fail, and return the others in order."""
    results = {}
    with ThreadPoolExecutor(processes) as pool, ended_by_interrupts(pool):
        futures = {pool.submit(measure_one, name, build): name for name, build in units.items()}
        for future in as_completed(futures):
            try:
                results[futures[future]] = future.result()
            except (MeasurementError, ValueError) as error:
                print(f"{futures[future]}: {error}", file=sys.stderr, flush=True)
    return tuple(results[name] for name in units if name in results)


def _update_docs(newer: Report) -> None:
    report, known = newer, dict[str, str]()
    if (results.FOLDER / "fpga.json").is_file():
        report = published().updated(newer, catalogue())
        # Each unit is as old as its own Verilog.
        known = dict(results.read("fpga").sources)
    known |= {unit_source(result.name): source_of(catalogue()[result.name]) for result in newer.results}
    found = results.measured(
        "fpga",
        ["hdl"],
        subject=SUBJECT if conclusion(report) else "",
        conclusion=conclusion(report) or "",
        note=note(report),
        tables=(figures(report),),
        pictures=(PICTURE,) if has_picture(report) else (),
        data=report.to_json(),
    )
    areas = [unit_source(result.name) for result in report.results]
    with whole_in_spite_of_interrupts():
        publish(replace(found, sources={area: known.get(area, "") for area in areas}))
        if found.pictures:
            draw(report, ROOT / "docs" / "figures" / PICTURE)


def _write_sources() -> None:
    """Write the hashes of the current Verilog of every released and every measured unit."""
    kept = {unit.name: hashlib.sha256(to_verilog(unit.build(), unit.name).encode()) for unit in released()}
    _write_hashes(RELEASED, {name: found.hexdigest()[:32] for name, found in kept.items()})
    units, now = catalogue(), {}
    for number, (name, build) in enumerate(units.items(), start=1):
        now[name] = source_of(build)
        print(f"[{number}/{len(units)}] {name}: {now[name]}", flush=True)
    _write_hashes(MEASURED, now)


def _write_hashes(path: Path, hashes: Mapping[str, str]) -> None:
    with whole_in_spite_of_interrupts():
        path.write_text(json.dumps(hashes, indent=2) + "\n", encoding="utf-8")


def _families(given: argparse.Namespace) -> list[str]:
    """Return the technologies in which to measure.

    Raises
    ------
    ValueError
        If a file of standard cells is missing, or is given without a use for it.
    """
    others = [name for name in FAMILIES if name != "ecp5"]
    chosen = [*others, *(["asic"] if given.liberty else [])] if given.family == "all" else [given.family]
    if ("asic" in chosen) != bool(given.liberty):
        must = "given with --family asic: a file of standard cells (.lib or .lib.gz)"
        raise ValueError(f"--liberty: got {given.liberty}, must be {must}" + (" or all alone" if given.liberty else ""))
    return chosen


def _units(given: argparse.Namespace, family: str) -> dict[str, Build]:
    """Return the units to measure in a technology."""
    if family == "asic":
        return select(given.units or FAMILIES["nexus"].units, "generic")
    row = family_named(family)
    return select(given.units or row.units, row.multiplier)


def _measured(
    family: str, given: argparse.Namespace, units: Mapping[str, Build], library: Library | None, progress: _Progress
) -> Report:
    """Measure some units in one technology."""
    published_before = None if given.anew else technologies.known(family)
    known = {result.name: result for result in published_before.results} if published_before else {}
    folder = given.output / ("units" if family == "ecp5" else family)
    target: Target | StandardCells
    if library is not None and family == "asic":
        target, tools = StandardCells.of(library), versions(YOSYS)
        measure_one = partial(estimate, library=library, tools=tools, folder=folder, progress=progress, known=known)
    else:
        aim = 160 if given.fills else Target.megahertz
        target = Target(family=family, speed=given.speed, megahertz=aim, fills=given.fills)
        tools = versions(YOSYS, target.row.nextpnr)
        measure_one = partial(
            measure, target=target, seeds=given.seeds, tools=tools, folder=folder, progress=progress, known=known
        )
    return Report(target, tools, _measure_all(units, measure_one, given.jobs))


def _run(given: argparse.Namespace) -> int:
    families = _families(given)
    chosen = {family: _units(given, family) for family in families}
    if given.list:
        for name, build in {name: build for units in chosen.values() for name, build in units.items()}.items():
            print(f"{name}: {parameters_of(build())}")
        return 0

    if given.sources:
        _write_sources()
        return 0

    library = read_liberty(given.liberty) if given.liberty else None
    runs = {family: 1 if family == "asic" else 1 + len(given.seeds) for family in families}
    progress = _Progress(sum(runs[family] * len(units) for family, units in chosen.items()))
    reports = {}
    for family, units in chosen.items():
        if len(families) > 1:
            print(f"==> {family}", flush=True)
        reports[family] = _measured(family, given, units, library, progress)
        write_json(reports[family], given.output / ("fpga.json" if family == "ecp5" else f"{family}.json"))
    if not any(report.results for report in reports.values()):
        print("python -m lab.fpga: nothing was measured", file=sys.stderr)
        return 1

    _show(reports, given)
    failed = sum(len(units) - len(reports[family].results) for family, units in chosen.items())
    if failed:
        whole = sum(map(len, chosen.values()))
        print(f"python -m lab.fpga: {failed} of {whole} units failed", file=sys.stderr)
        return 1
    if given.update_docs:
        _update_docs(reports["ecp5"]) if "ecp5" in reports else _update_technologies(reports, given)
    return 0


def _show(reports: Mapping[str, Report], given: argparse.Namespace) -> None:
    """Print the table, and write it as Markdown beside the reports."""
    if "ecp5" in reports:
        report = reports["ecp5"]
        name, text = "fpga", markdown(report)
        from rich.console import Console

        # A pipe has no width, and 80 columns would cut the table.
        console = Console(width=None if sys.stdout.isatty() else 180)
        console.print(table(report))
    else:
        name = "technologies"
        text = f"{technologies.note(reports)}\n\n{technologies.table(reports).markdown()}"
        print(text)
    with whole_in_spite_of_interrupts():
        (given.output / f"{name}.md").write_text(text, encoding="utf-8")
    if given.paths:
        for report in reports.values():
            for result in report.results:
                print(f"{result.name}: {result.typical_path}")
    written = ["fpga.json" if family == "ecp5" else f"{family}.json" for family in reports]
    print(f"also in {given.output / f'{name}.md'} and {', '.join(str(given.output / each) for each in written)}")


def _update_technologies(reports: Mapping[str, Report], given: argparse.Namespace) -> None:
    names = {result.name for report in reports.values() for result in report.results}
    sources = {name: source_of(build) for name, build in catalogue().items() if name in names}
    # A path on this machine means nothing elsewhere.
    command = results.command_line().replace(str(given.liberty), "FILE")
    publish(technologies.publishable(reports, sources, catalogue(), command))


@ending_on_interrupt("lab.fpga", "what it has synthesised and placed is kept, the next run goes on")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; one line and status 2 on bad arguments, 1 if a measurement failed, 130 on Ctrl-C."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        return _run(given)
    except ValueError as error:
        parser.error(str(error))
    except MeasurementError as error:
        print(f"python -m lab.fpga: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
