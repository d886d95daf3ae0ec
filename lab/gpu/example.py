"""The example for cards: how five precisions learn, and how much their sums lose.

``python -m lab.gpu.example`` makes a short run on the processor, in minutes; with ``--card`` it trains the full size on
a card. The table shows the losses. For the observed products, it also shows the shares of steps that lost their addend
or precision, and the distance of the results from fp32.
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from golden.torch.examples.python_gpt import PRECISIONS, SHORT, Outcome, Sizes, compare
from golden.torch.observing import NAME, ProductRow, read_rows
from lab.gpu import card
from tools.interrupts import ending_on_interrupt
from tools.pages import add_update_docs, publish
from tools.paths import at_least_one
from tools.results import Table, measured

__all__ = ["Losses", "losses", "main", "table"]

_TOOL, _ON_CARD = "python-gpt", "python-gpt-card"
_NOTE = (
    "Bits for a byte of the text in the last 20 steps, and of text that no step has seen. Of the steps that were "
    "observed, forward and backward: the share that lost their addend whole, the share whose result was rounded below "
    "the smallest normal number, and the mean distance of the results from fp32. "
    f"The text is the library of Python {platform.python_version()}."
)
_FOLDER = Path("build/python_gpt")


@dataclass(frozen=True)
class Losses:
    """The losses of a run's sums: shares of the counted steps, and the mean relative distance from fp32."""

    swamped: float
    underflow: float
    distance: float


def losses(file: Path) -> Losses:
    """Return the losses of all products in a file of observations."""
    rows = [row for row in read_rows(file) if isinstance(row, ProductRow)]
    events = [each for row in rows for each in (row.products, row.promotions)]
    steps = max(1, sum(each.steps for each in events))
    distances = [row.distance.relative for row in rows if row.distance is not None]
    return Losses(
        sum(each.swamped for each in events) / steps,
        sum(each.underflow for each in events) / steps,
        sum(distances) / max(1, len(distances)),
    )


def table(outcomes: dict[str, Outcome], lost: dict[str, Losses]) -> Table:
    """Return the runs as rows."""
    rows = [
        (
            name,
            *(f"{each.bits:.4f}", f"{each.unseen:.4f}", f"2^{math.log2(each.scale):g}", str(each.skipped)),
            *(f"{100 * share:.2f} %" for share in (lost[name].swamped, lost[name].underflow, lost[name].distance)),
        )
        for name, each in outcomes.items()
    ]
    headings = "run", "bits a byte", "unseen text", "loss scale", "skipped", "swamped", "underflow", "from fp32"
    return Table(headings, rows)


@ending_on_interrupt("lab.gpu.example", "the runs stay in the folder, delete it to run again")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.example", description=__doc__)
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="where runs and page are written (%(default)s)")
    parser.add_argument("--card", action="store_true", help="the full size, on a card; its result is kept at once")
    for name, what in ("steps", "steps of each run"), ("observe", "steps between two that are observed"):
        default = f"{getattr(SHORT, name)}, with --card {getattr(Sizes, name)}"
        parser.add_argument(f"--{name}", type=at_least_one, help=f"{what} ({default})")
    parser.add_argument("--into", type=Path, help="folder of a card's result (docs/results)")
    add_update_docs(parser, _TOOL, "put the table into its page of docs")
    given = parser.parse_args(arguments)
    if given.folder.exists():
        parser.error(f"--folder: {given.folder} exists; delete it, or choose another, to run again")
    if given.into and not given.card:
        parser.error("--into: only a card's result has a folder of its own; add --card, or leave --into out")
    if given.update_docs and given.card:
        parser.error("--update-docs: a card's result is kept at once; leave --update-docs or --card out")
    if given.card and card.skipped("the example"):
        return 0
    sizes = Sizes() if given.card else SHORT
    sizes = replace(sizes, steps=given.steps or sizes.steps, observe=given.observe or sizes.observe)
    outcomes = compare(given.folder, list(PRECISIONS), sizes, "GPU" if given.card else "CPU", Console(stderr=True))
    lost = {name: losses(given.folder / name.replace(" ", "_") / NAME) for name in outcomes}
    found, note = table(outcomes, lost), f"{sizes.steps} steps of each run. {_NOTE}"
    print(found.markdown(), end="")
    if given.card:
        seconds = {name: round(each.seconds, 1) for name, each in outcomes.items()}
        data = {"sizes": vars(sizes), "seconds": seconds}
        card.keep(_ON_CARD, "lab.gpu.example", data, [found], given.into, note=note)
    elif given.update_docs:
        publish(measured(_TOOL, ["lab.gpu.example"], note=note, tables=[found]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
