"""``python -m lab.fpga``: measure the units that match, and show a table."""

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
from lab.fpga.measurement import measure, source_of
from lab.fpga.picture import PICTURE, draw, has_picture
from lab.fpga.placement import SPEED_GRADES, Target
from lab.fpga.report import SUBJECT, conclusion, figures, markdown, note, published, table, write_json
from lab.fpga.result import Report, Result
from lab.fpga.units import Build, catalogue, parameters_of, select
from tools import results
from tools.errors import MeasurementError
from tools.interrupts import ended_by_interrupts, ending_on_interrupt, whole_in_spite_of_interrupts
from tools.pages import add_update_docs, publish
from tools.paths import ROOT, at_least_one, folder_to_write
from tools.programs import versions
from tools.sources import MEASURED, RELEASED, unit_source

__all__ = ["main"]


def _seeds(text: str) -> tuple[int, ...]:
    seeds = tuple(int(number) for number in text.split(","))
    if len(set(seeds)) != len(seeds) or min(seeds) < 1:
        raise argparse.ArgumentTypeError(f"got {text}, must be different positive numbers")
    return seeds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.fpga", description="Measure area and speed on an ECP5.")
    parser.add_argument("units", nargs="*", metavar="UNIT", help="names or patterns such as 'mac*' (default: all)")
    parser.add_argument("--list", action="store_true", help="list the units and stop")
    parser.add_argument("--seeds", type=_seeds, default=(1, 2, 3), help="seeds of the placement (default 1,2,3)")
    parser.add_argument("--speed", type=int, choices=SPEED_GRADES, default=6, help="speed grade (default %(default)s)")
    parser.add_argument("--jobs", type=at_least_one, default=1, help="units at a time (default %(default)s)")
    parser.add_argument("--paths", action="store_true", help="also print the critical path of every unit")
    parser.add_argument("-o", "--output", type=folder_to_write, default=Path("build/fpga"), metavar="FOLDER")
    parser.add_argument(
        "--sources",
        action="store_true",
        help="write hdl/released.json and hdl/measured.json, by which tests and pages know the Verilog, and stop",
    )
    add_update_docs(parser, "fpga", "put the results into docs/results/fpga.md")
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
    """Write the hashes of the Verilog that every released and every measured unit has now."""
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


def _run(given: argparse.Namespace) -> int:
    units = select(given.units)
    if given.list:
        for name, build in units.items():
            print(f"{name}: {parameters_of(build())}")
        return 0

    if given.sources:
        _write_sources()
        return 0

    target, tools = Target(speed=given.speed), versions()
    measure_one = partial(
        measure,
        target=target,
        seeds=given.seeds,
        tools=tools,
        folder=given.output / "units",
        progress=_Progress(len(units) * (1 + len(given.seeds))),
    )
    report = Report(target, tools, _measure_all(units, measure_one, given.jobs))
    if not report.results:
        print("python -m lab.fpga: nothing was measured", file=sys.stderr)
        return 1

    with whole_in_spite_of_interrupts():
        write_json(report, given.output / "fpga.json")
        (given.output / "fpga.md").write_text(markdown(report), encoding="utf-8")
    from rich.console import Console

    # A pipe has no width, and 80 columns would cut the table.
    console = Console(width=None if sys.stdout.isatty() else 180)
    console.print(table(report))
    if given.paths:
        for result in report.results:
            print(f"{result.name}: {result.typical_path}")
    print(f"also in {given.output / 'fpga.md'} and {given.output / 'fpga.json'}")

    if len(report.results) < len(units):
        print(f"python -m lab.fpga: {len(units) - len(report.results)} of {len(units)} units failed", file=sys.stderr)
        return 1
    if given.update_docs:
        _update_docs(report)
    return 0


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
