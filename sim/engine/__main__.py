"""``python -m sim.engine``: simulate engines in cocotb."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sim.engine.run import results_compared, simulate_engine
from sim.engine.units import UNITS
from sim.run.simulators import SIMULATORS
from tools.evidence import Means, Part, Record, note

__all__ = ["main"]


def main() -> int:
    """Run the command line; the status is 1 if a test fails."""
    parser = argparse.ArgumentParser(prog="python -m sim.engine", description=__doc__.split(": ", 1)[1])
    parser.add_argument(
        "engines", nargs="*", choices=[*UNITS, []], metavar="ENGINE", help=f"some of {', '.join(UNITS)}"
    )
    parser.add_argument("--tests", default="", help="a regular expression on the names of tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--effort", type=float, default=1.0, help="factor on the number of random commands")
    parser.add_argument("--simulator", choices=SIMULATORS, default="icarus")
    parser.add_argument("--folder", type=Path, default=Path("build/engine"))
    given = parser.parse_args()
    failed, compared = 0, 0
    for name in given.engines or UNITS:
        started = time.perf_counter()
        print(f"{name}: simulating", flush=True)
        folder = (given.folder / name).resolve()
        failures = simulate_engine(
            name, folder, tests=given.tests, seed=given.seed, effort=given.effort, simulator=given.simulator
        )
        results = results_compared(folder)
        if not results and not given.tests:
            failures.append("no result of a command was compared")
        for failure in failures:
            print(f"{name}: {failure}")
        verdict = "failed" if failures else "passed"
        print(f"{name}: {verdict}, {results:,} results, {time.perf_counter() - started:.0f} s", flush=True)
        failed, compared = failed + bool(failures), compared + results
    if not given.engines and not given.tests and given.effort >= 1:
        note("engines", [Record(Part.ENGINE, Means.SAMPLED, compared, "results", failed)], ["sim.engine.tests"])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
