"""The common style of all pictures: colours, axes, and files that are identical in every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

from golden.formats import BF16, CBFLOAT16, FP16, FloatFormat

__all__ = ["COLOURS", "LEVEL_STYLES", "median_and_range", "picture", "plain", "power_label"]

COLOURS: dict[FloatFormat, str] = {CBFLOAT16: "#b4451f", FP16: "#2a6f97", BF16: "#4a7c2c"}
LEVEL_STYLES = {0: ":", 1: "--", 2: "-"}


@contextmanager
def picture(path: Path, panels: int = 1, **options: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Make a figure of some panels side by side, and write it as SVG.

    Parameters
    ----------
    path : Path
    panels : int
    options
        Of `matplotlib.pyplot.subplots`.
    """
    matplotlib.use("svg")
    # Text stays text; identifiers and the date do not change from run to run.
    with matplotlib.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 10}):
        figure, axes = pyplot.subplots(1, panels, squeeze=False, layout="constrained", **options)
        yield figure, list(axes[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def median_and_range(
    axes: Any, places: Sequence[int], samples: list[list[float]], fmt: FloatFormat, line: str = "-", **options: Any
) -> None:
    """Draw the medians of samples as a line in a format's colour, with a band from the lowest to the highest.

    Parameters
    ----------
    axes
    places : sequence of int
        The positions of the samples on the horizontal axis.
    samples : list of list of float
        The samples of each place.
    fmt : FloatFormat
    line : str
        Style of the line.
    options
        Of the line.
    """
    values = np.array(samples)
    axes.fill_between(places, values.min(1), values.max(1), color=COLOURS[fmt], alpha=0.2, lw=0)
    axes.plot(places, np.median(values, 1), line, color=COLOURS[fmt], **options)


def plain(axes: Any) -> None:
    """Leave only the axes that are read, and a faint grid."""
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def power_label(exponent: float) -> str:
    """Return 2 to the power of an exponent as text."""
    return f"$2^{{{exponent:.0f}}}$"
