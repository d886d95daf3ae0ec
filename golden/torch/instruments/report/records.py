"""The sums of the observations of a run: its settings and steps, and each layer's products in each pass."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from golden.counts import COUNTED
from golden.formats import FloatFormat, format_named
from golden.torch.instruments.rows import RunRow, StepRow, TrialRow

__all__ = [
    "PASSES",
    "TENSORS",
    "BadStep",
    "Histogram",
    "Layer",
    "Run",
    "Settings",
    "Step",
    "Trial",
    "known_format",
    "scale_exponent",
]

#: The passes, in the order in which they are shown.
PASSES = ("forward", "gradient_of_input", "gradient_of_weight")
TENSORS = ("left", "right", "output")


# What a later version of the same kind of file tells besides is left out.
class Settings(RunRow, extra="ignore"):
    """How the run was made."""


class Step(StepRow, extra="ignore", allow_inf_nan=True):
    """One step of the run."""


class Trial(TrialRow, extra="ignore"):
    """A step that was run again with new levels."""


@dataclass(frozen=True)
class BadStep:
    """The first step at which a layer went bad: a line of kind ``first_bad``.

    Gradients that go bad in a step that was skipped are the task of the loss scale; they tell nothing of the layer.
    """

    step: int
    module: str
    direction: str
    cause: str
    evidence: str
    in_skipped_step: bool = False


@dataclass
class Histogram:
    """How many values of a tensor have each exponent, and how many are none of the normal numbers.

    Parameters
    ----------
    format : str
        Name of the values' format.
    total, zero, subnormal, infinite, nan : int
    exponents : dict of str to int
        Values by unbiased exponent, of those that are finite and not zero.
    """

    format: str
    total: int = 0
    zero: int = 0
    subnormal: int = 0
    infinite: int = 0
    nan: int = 0
    exponents: dict[str, int] = field(default_factory=dict)

    def add(self, line: dict[str, object]) -> None:
        """Add a histogram of a line."""
        self.total += line["total"]  # type: ignore[operator]  # another type raises, and the reader names the line
        self.zero += line["zero"]  # type: ignore[operator]
        self.subnormal += line["subnormal"]  # type: ignore[operator]
        self.infinite += line["infinite"]  # type: ignore[operator]
        self.nan += line["nan"]  # type: ignore[operator]
        sums = self.exponents
        for exponent, count in line["exponents"].items():  # type: ignore[attr-defined]
            sums[exponent] = sums.get(exponent, 0) + count

    @property
    def by_exponent(self) -> list[tuple[int, int]]:
        """Exponents and how many values have them, in rising order."""
        return sorted((int(exponent), count) for exponent, count in self.exponents.items() if count)

    @property
    def number_format(self) -> FloatFormat | None:
        """The format, None if it is one of the user's own."""
        return known_format(self.format)

    @property
    def finite(self) -> int:
        """How many values are finite and not zero."""
        return sum(self.exponents.values())

    @property
    def top(self) -> int | None:
        """The largest exponent."""
        return max((int(exponent) for exponent, count in self.exponents.items() if count), default=None)


@dataclass
class Layer:
    """The products of one operation of a module in one pass, over all observed steps that count.

    Arrays have one row for each observed step: the counts in the order of `COUNTED`, and the distance from the
    fp32 result (relative; mean and largest in ulp; NaN where it was not measured).
    """

    module: str
    direction: str
    operation: str
    operand: str = ""
    level: int = 0
    shape: tuple[int, ...] = ()
    calls: int = 0
    rows: int = 0
    rows_counted: int = 0
    largest_exponent: int | None = None
    tensors: dict[str, Histogram] = field(default_factory=dict)
    step_numbers: array[int] = field(default_factory=lambda: array("q"))
    counted_products: array[int] = field(default_factory=lambda: array("q"))
    counted_promotions: array[int] = field(default_factory=lambda: array("q"))
    measured_distances: array[float] = field(default_factory=lambda: array("d"))

    @property
    def steps(self) -> NDArray[np.int64]:
        """Numbers of the steps, shape (n,)."""
        return np.frombuffer(self.step_numbers, np.int64) if self.step_numbers else np.zeros(0, np.int64)

    @property
    def products(self) -> NDArray[np.int64]:
        """Counts of the steps that add a product, shape (n, len(COUNTED))."""
        return _rows(self.counted_products)

    @property
    def promotions(self) -> NDArray[np.int64]:
        """Counts of the promotions, shape (n, len(COUNTED))."""
        return _rows(self.counted_promotions)

    @property
    def distances(self) -> NDArray[np.float64]:
        """Distances from the fp32 result, shape (n, 3)."""
        return np.array(self.measured_distances, np.float64).reshape(-1, 3)


def _rows(counts: array[int]) -> NDArray[np.int64]:
    return np.array(counts, np.int64).reshape(-1, len(COUNTED))


@dataclass
class Run:
    """All that is known of a run.

    Parameters
    ----------
    name : str
        What the page calls it.
    settings : Settings
    steps : list of Step
        In rising order.
    layers : list of Layer
        In the order of the model, forward first.
    bad_steps : list of BadStep
        The earliest first.
    gradients : dict of int to Histogram
        The gradients that products gave and took, by the exponent of the loss scale at that step.
    left_out : int
        Lines about gradients of skipped steps, which count nowhere.
    notices : list of str
        What the reader should know about the file.
    trial : Trial or None
        The latest one.
    """

    name: str
    settings: Settings
    steps: list[Step] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    bad_steps: list[BadStep] = field(default_factory=list)
    gradients: dict[int, Histogram] = field(default_factory=dict)
    left_out: int = 0
    notices: list[str] = field(default_factory=list)
    trial: Trial | None = None

    @property
    def telling(self) -> list[BadStep]:
        """The faults in steps that count, the earliest first."""
        return [each for each in self.bad_steps if not each.in_skipped_step]

    @property
    def observed(self) -> list[int]:
        """Numbers of the steps that were observed."""
        return [each.step for each in self.steps if each.observed]

    def of_pass(self, *directions: str) -> Iterable[Layer]:
        """Give the layers of some passes."""
        return (layer for layer in self.layers if layer.direction in directions)


def known_format(name: str) -> FloatFormat | None:
    """Return a format by its name, or None."""
    try:
        return format_named(name)
    except (TypeError, ValueError):
        return None


def scale_exponent(scale: float | None) -> int:
    """Return the exponent of a loss scale, 0 without one."""
    return math.frexp(scale)[1] - 1 if scale and math.isfinite(scale) else 0
