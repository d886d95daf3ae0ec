"""Histograms of exponents: how the values of a tensor lie against the range of a format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.formats import FP32, FloatFormat

__all__ = ["Histogram"]

_FIELDS = 256  # exponent fields of float32
_PART = 1 << 14  # values that are counted at a time


class Histogram:
    """The exponents of values, counted; histograms of one format add up.

    Parameters
    ----------
    fmt : FloatFormat
        The format that the values are rounded to, or are in.
    """

    def __init__(self, fmt: FloatFormat) -> None:
        self.format = fmt
        self._bins = np.zeros(_FIELDS, np.int64)  # by the exponent field of float32, without zeros, infinities and NaNs
        self.zero = self.infinite = self.nan = 0

    def add(self, values: NDArray[np.float32]) -> None:
        """Count values of float32, of any shape and strides."""
        flat = np.ravel(values, order="K")
        bits = flat.view(np.uint32)
        by_sign = np.zeros(2 * _FIELDS, np.int64)
        for first in range(0, bits.size, _PART):  # whole, the copies of a large array would leave the caches
            part = bits[first : first + _PART] >> np.uint32(FP32.fraction_bits)
            by_sign += np.bincount(part, minlength=2 * _FIELDS)
        bins = by_sign[:_FIELDS] + by_sign[_FIELDS:]
        if bins[0]:
            zero = flat.size - int(np.count_nonzero(flat))
            self.zero += zero
            bins[0] -= zero
        if bins[-1]:
            nan = int(np.count_nonzero(np.isnan(flat)))
            self.nan += nan
            self.infinite += int(bins[-1]) - nan
            bins[-1] = 0
        self._bins += bins

    def add_counted(self, slots: NDArray[np.int64]) -> None:
        """Add the counts of a card: values of each exponent field, then zeros, infinities and NaNs."""
        *fields, zero, infinite, nan = slots.tolist()
        self._bins[: len(fields)] += np.array(fields, np.int64)
        self.zero += zero
        self.infinite += infinite
        self.nan += nan

    def merge(self, other: Histogram) -> None:
        """Add another histogram."""
        self._bins += other._bins
        self.zero += other.zero
        self.infinite += other.infinite
        self.nan += other.nan

    @property
    def total(self) -> int:
        """How many values were counted."""
        return int(self._bins.sum()) + self.zero + self.infinite + self.nan

    @property
    def not_finite(self) -> int:
        """How many of them are infinities and NaNs."""
        return self.infinite + self.nan

    @property
    def beyond_format(self) -> int:
        """How many finite values are of an exponent that the format does not have."""
        return int(self._bins[self.format.emax + 1 + FP32.bias :].sum())

    def record(self) -> dict[str, Any]:
        """Return it as the file has it."""
        # Below the smallest normal number of float32 the field is 0; all of these are counted at one exponent.
        exponents = {field - FP32.bias: int(self._bins[field]) for field in np.flatnonzero(self._bins).tolist()}
        return {
            "format": self.format.name,
            "total": self.total,
            "zero": self.zero,
            "subnormal": sum(count for exponent, count in exponents.items() if exponent < self.format.emin),
            "infinite": self.infinite,
            "nan": self.nan,
            "exponents": {str(exponent): count for exponent, count in exponents.items()},
        }
