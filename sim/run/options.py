"""The command line and the environment of a regression."""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Sequence

from sim.run.simulators import SIMULATORS
from sim.units import UNITS
from tools.paths import ROOT, folder_to_write
from tools.share import add_share

__all__ = ["parse"]


def parse(
    arguments: Sequence[str] | None, program: str, description: str, *, mutants: bool = False
) -> argparse.Namespace:
    """Return the options; the environment variables JOBS, SEED, SIM, WAVES and UNITS are their defaults."""
    environment = {name: value for name, value in os.environ.items() if value}
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
    )
    parser.add_argument(
        "--seed", type=int, help="seed of the random stimulus (or set SEED; default: a new one each time)"
    )
    parser.add_argument("--jobs", type=int, help="units at a time (or set JOBS; default: processors)")
    parser.add_argument(
        "--sim",
        default=environment.get("SIM", "icarus"),
        help=f"{' or '.join(SIMULATORS)} (or set SIM; default: icarus)",
    )
    parser.add_argument(
        "--waves",
        action="store_true",
        default=environment.get("WAVES") == "1",
        help="write waveforms as FST (or set WAVES=1); with --scenarios also of those that run as machine code only",
    )
    parser.add_argument(
        "--effort", type=float, default=1.0, help="factor on the amount of stimulus (default %(default)s)"
    )
    parser.add_argument(
        "--folder", type=folder_to_write, default=ROOT / "build", help="folder of all outputs (default: build)"
    )
    if mutants:
        parser.add_argument("--mutants", default="", help="comma-separated, * stands for anything (default: all)")
        add_share(parser, "mutants")
    else:
        parser.epilog = f"Units: {', '.join(UNITS)}."
        units = environment.get("UNITS", "")
        parser.add_argument(
            "--units", default=units, help="comma-separated, * stands for anything (or set UNITS; default: all)"
        )
        parser.add_argument(
            "--scenarios",
            default="",
            help="comma-separated, * stands for anything (default: all); a wrong name lists those of the unit",
        )
        add_share(parser, "units that run in the simulator, too; every unit runs as machine code")
        parser.add_argument("--update-docs", action="store_true", help="put the table into docs/results/regression.md")
    given = parser.parse_args(arguments)
    try:
        if environment.get("WAVES", "0") not in ("0", "1"):
            raise ValueError(f"WAVES: got {environment['WAVES']!r}, must be 1 or 0")
        given.seed = _number("SEED", given.seed, secrets.randbelow(1 << 32))
        given.jobs = _number("JOBS", given.jobs, _processors())
        if given.seed < 0:
            raise ValueError(f"seed: got {given.seed}, must be 0 or more")
        if given.jobs < 1:
            raise ValueError(f"jobs: got {given.jobs}, must be 1 or more")
        if not given.effort > 0:
            raise ValueError(f"effort: got {given.effort}, must be above 0")
    except ValueError as error:
        parser.error(str(error))
    given.folder = given.folder.resolve()
    return given


def _processors() -> int:
    """Return the number of processors available to this process; containers often limit it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _number(variable: str, given: int | None, default: int) -> int:
    if given is not None:
        return given
    text = os.environ.get(variable, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{variable}: got {text!r}, must be a whole number") from None
