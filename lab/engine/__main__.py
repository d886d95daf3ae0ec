"""Measure the share of the array's peak that products of matrices reach on the simulated engine."""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from golden.formats import CBFLOAT16
from hdl.engine import Engine
from hdl.engine.simulated import Simulation
from hdl.matrix_engine.matrix_engine import MatrixEngine
from tools.interrupts import ending_on_interrupt
from tools.pages import add_update_docs, publish
from tools.paths import at_least_one
from tools.results import Table, measured
from tools.sources import unit_source

__all__ = ["SUBJECT", "Run", "conclusion", "main", "runs"]

SUBJECT = "matrix engine"

_ROWS = _COLUMNS = 4
_HEADINGS = (
    "M x N x K",
    "bus",
    "latency",
    "level",
    "cycles",
    "products per cycle",
    "of the peak",
    "stalls: load",
    "store",
    "KB read",
    "written",
)
#: Sizes for every bus and every latency; 64 x 64 x 64 is a layer of the digits' MLP with 64 images.
_EVERYWHERE = ((64, 64, 64), (128, 128, 128))
#: Sizes for the last bus and latency only, as they take minutes; the second half are layers of GPT-2 for 16 tokens.
_ONCE = ((256, 256, 256), (512, 512, 512), (16, 768, 768), (16, 2304, 768), (16, 768, 3072))


class Run(NamedTuple):
    """A product: sizes, bits of the bus, latency of the memory in cycles, level, counters, bytes moved."""

    size: tuple[int, int, int]
    bus: int
    latency: int
    level: int
    cycles: int
    stalls: dict[str, int]
    read: int
    written: int

    @property
    def products_per_cycle(self) -> float:
        """Products of D's elements, over all cycles of the command."""
        return _work(self) / self.cycles

    @property
    def share(self) -> float:
        """Products per cycle, of one in each lane."""
        return self.products_per_cycle / (_ROWS * _COLUMNS)

    def row(self) -> tuple[str, ...]:
        """Return its row of the table."""
        return (
            " x ".join(map(str, self.size)), str(self.bus), str(self.latency), str(self.level), f"{self.cycles:,}",
            f"{self.products_per_cycle:.2f}", f"{self.share:.1%}",
            f"{self.stalls['load']:,}", f"{self.stalls['store']:,}",
            f"{self.read / 1000:,.1f}", f"{self.written / 1000:,.1f}",
        )  # fmt: skip


def runs(
    sizes: Sequence[tuple[int, int, int]], buses: Sequence[int], latencies: Sequence[int], reads: int
) -> Iterator[Run]:
    """Yield every product: levels 0 and 2 in one chunk, level 1 in chunks of 32.

    Parameters
    ----------
    sizes : sequence of (int, int, int)
        M, N and K.
    buses, latencies : sequence of int
        Bits; cycles to the first answer of the memory.
    reads : int
        Bursts that the engine and its memory have in flight.
    """
    chance = np.random.default_rng(0)
    for bus in buses:
        unit: Any = {"rows": _ROWS, "columns": _COLUMNS, "operands": (CBFLOAT16,), "bus_width": bus, "reads": reads}
        for latency in latencies:
            simulation = Simulation(MatrixEngine(**unit), latency=latency, outstanding=reads)
            engine = Engine(simulation)
            for size in sizes:
                m, n, k = size
                a, b = (chance.integers(0, 1 << 16, shape, np.uint16) for shape in ((m, k), (k, n)))
                for level in (0, 1, 2):
                    before, moved = engine.counters(), simulation.bytes_moved
                    engine.matmul(a, b, operand=CBFLOAT16, level=level, chunk=32 if level == 1 else None)
                    after = engine.counters()
                    stalls = {name: count - before["stalls"][name] for name, count in after["stalls"].items()}
                    cycles = after["cycles"] - before["cycles"]
                    read, written = (now - then for now, then in zip(simulation.bytes_moved, moved, strict=True))
                    yield Run(size, bus, latency, level, cycles, stalls, read, written)


def conclusion(found: Sequence[Run]) -> str:
    """Return the shares of the peak of the largest and of the smallest product, over buses, latencies and levels."""
    largest, smallest = max(found, key=_work).size, min(found, key=_work).size
    said = f"from memory to memory, {_shares(found, largest, f' of the peak of {_ROWS * _COLUMNS} lanes')}"
    return said if smallest == largest else f"{said}, {_shares(found, smallest)}"


def _shares(found: Sequence[Run], size: tuple[int, int, int], of: str = "") -> str:
    shares = [run.share for run in found if run.size == size]
    return f"{min(shares):.1%} to {max(shares):.1%}{of} for {' x '.join(map(str, size))}"


def _work(run: Run) -> int:
    return math.prod(run.size)


def _size(text: str) -> tuple[int, int, int]:
    m, n, k = map(at_least_one, text.split("x"))
    return m, n, k


@ending_on_interrupt("lab.engine", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.engine", description=__doc__)
    parser.add_argument(
        "sizes", nargs="*", type=_size, metavar="MxNxK", help="products (default: those of the page, for half an hour)"
    )
    parser.add_argument("--bus", nargs="+", type=int, choices=(64, 128), default=[64, 128], help="bits of the bus")
    parser.add_argument("--latency", nargs="+", type=int, default=[20, 150], help="cycles of the memory")
    parser.add_argument("--reads", type=at_least_one, default=32, help="bursts on their way (default %(default)s)")
    add_update_docs(parser, "engine", "put the table into docs/engine.md")
    given = parser.parse_args(arguments)
    found = []
    todo = [runs(given.sizes or _EVERYWHERE, given.bus, given.latency, given.reads)]
    if not given.sizes:
        todo.append(runs(_ONCE, given.bus[-1:], given.latency[-1:], given.reads))
    for run in itertools.chain(*todo):
        found.append(run)
        print("  ".join(run.row()), flush=True)
    said = conclusion(found)
    print(said)
    if given.update_docs:
        note = f"{_ROWS} x {_COLUMNS} lanes; the engine and its memory have up to {given.reads} bursts on their way."
        table = Table(_HEADINGS, [run.row() for run in found])
        sources = [unit_source("matrix_engine")]
        publish(measured("engine", sources, subject=SUBJECT, conclusion=said, note=note, tables=(table,)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
