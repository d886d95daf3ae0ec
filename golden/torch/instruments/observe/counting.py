"""Events in the counted rows of a product, and their distance from the product in fp32."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import golden
from golden.counts import Counts, Events
from golden.formats import FloatFormat
from golden.reduction import Reduction
from golden.torch.instruments.observe.samples import Piece

__all__ = ["Counted", "Distance", "nothing_counted"]

Values = NDArray[np.float32]


def nothing_counted() -> Counts:
    """Return the counts of no steps."""
    return Counts(Events(), Events())


@dataclass
class Distance:
    """The distance of results from those in fp32, over those that are finite in both; distances add up."""

    difference: float = 0.0  # sum of squares
    reference: float = 0.0  # likewise, of the results in fp32
    ulp: float = 0.0  # sum
    largest: float = 0.0  # in ulp
    results: int = 0

    def add(self, results: Values, reference: Values, fmt: FloatFormat) -> None:
        """Compare results of a format, value by value."""
        both = np.isfinite(results) & np.isfinite(reference)
        exact = reference[both].astype(np.float64)
        away = np.abs(results[both].astype(np.float64) - exact)
        exponents = np.maximum(np.frexp(exact)[1] - 1, fmt.emin)
        units = np.ldexp(away, fmt.fraction_bits - exponents)
        self.difference += float(away @ away)
        self.reference += float(exact @ exact)
        self.ulp += float(units.sum())
        self.largest = max(self.largest, float(units.max(initial=0.0)))
        self.results += len(exact)

    def merge(self, other: Distance) -> None:
        """Add another distance."""
        self.difference += other.difference
        self.reference += other.reference
        self.ulp += other.ulp
        self.largest = max(self.largest, other.largest)
        self.results += other.results

    def record(self) -> dict[str, float] | None:
        """Return it as the file has it; None if there is nothing to compare with."""
        if not self.results or not 0.0 < self.reference < np.inf or not self.difference < np.inf:
            return None
        relative = float(np.sqrt(self.difference / self.reference))
        return {"relative": relative, "ulp_mean": self.ulp / self.results, "ulp_max": self.largest}


@dataclass
class Counted:
    """The counts of rows of one or many products.

    Parameters
    ----------
    counts : golden.Counts
        Of all their steps; the accumulator of another machine counts none.
    distance : Distance
    lost : int
        Results that are 0 although they are not in fp32.
    results : int
        All of them.
    """

    counts: Counts = field(default_factory=nothing_counted)
    distance: Distance = field(default_factory=Distance)
    lost: int = 0
    results: int = 0

    def add(self, pieces: Iterable[Piece], reduction: Reduction) -> None:
        """Multiply pieces once more, and count."""
        for left, right, initial in pieces:
            start = None if initial is None else golden.quantize(initial, reduction.result)
            counts: Counts | None = None
            if reduction.accumulator is not None:
                values = golden.matmul_values(left, right, reduction=reduction, initial=start, counts=False)
            else:
                values, counts = golden.matmul_values(left, right, reduction=reduction, initial=start, counts="sum")
            with np.errstate(all="ignore"):
                reference = left @ right if initial is None else left @ right + initial
            if counts is not None:
                self.counts += counts
            self.distance.add(values, reference, reduction.result)
            self.lost += int(np.count_nonzero((values == 0) & (reference != 0)))
            self.results += values.size

    def merge(self, other: Counted) -> None:
        """Add what others tell."""
        self.counts += other.counts
        self.distance.merge(other.distance)
        self.lost += other.lost
        self.results += other.results
