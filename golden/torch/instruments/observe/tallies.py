"""Counts of the products of one operation in one pass of one module, over the calls of a step, and why they are bad."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

import golden
from golden.counts import NO_EXPONENT, Counts, Events
from golden.formats import FP32, FloatFormat
from golden.reduction import Reduction
from golden.torch.common.processes import rank, world_size
from golden.torch.instruments.observe.attribution import Pass
from golden.torch.instruments.observe.samples import Piece, Product, Shape, chosen_rows, first_row
from golden.torch.instruments.report.limits import MOST_LOST, MOST_RELATIVE, MOST_SWAMPED
from golden.torch.instruments.rows import ProductRow
from golden.torch.products.operators.registered import values_of
from golden.torch.products.windows import formats_of
from golden.torch.settings.reductions import level_of

__all__ = ["Cause", "Counted", "Histogram", "Key", "Tally", "cause_of", "merged"]

Values = NDArray[np.float32]
# module, pass, operation
Key = tuple[str, Pass, str]

# Calls of a step that are all looked at; beyond them one in so many is: a recurrent network has one for each position.
_ALL_CALLS = 16
_FIELDS = 256  # exponent fields of float32
_PART = 1 << 14  # values that are counted at a time
_ZERO, _INFINITE, _NAN = _FIELDS - 1, _FIELDS, _FIELDS + 1  # slots of a histogram, behind the finite exponent fields


class Histogram:
    """The exponents of values, counted; histograms of one format add up.

    Parameters
    ----------
    fmt : FloatFormat
        The format that the values are rounded to, or are in.

    Attributes
    ----------
    slots : array of int64
        Values of each exponent field of float32 without zeros, then zeros, infinities and NaNs: as a card counts them.
    """

    def __init__(self, fmt: FloatFormat) -> None:
        self.format = fmt
        self.slots = np.zeros(_FIELDS + 2, np.int64)

    def add(self, values: Values) -> None:
        """Count values of float32, of any shape and strides."""
        flat = np.ravel(values, order="K")
        bits = flat.view(np.uint32)
        by_sign = np.zeros(2 * _FIELDS, np.int64)
        for first in range(0, bits.size, _PART):  # whole, the copies of a large array would leave the caches
            part = bits[first : first + _PART] >> np.uint32(FP32.fraction_bits)
            by_sign += np.bincount(part, minlength=2 * _FIELDS)
        *finite, special = (by_sign[:_FIELDS] + by_sign[_FIELDS:]).tolist()
        zero = flat.size - int(np.count_nonzero(flat)) if finite[0] else 0
        nan = int(np.count_nonzero(np.isnan(flat))) if special else 0
        self.slots += np.array([finite[0] - zero, *finite[1:], zero, special - nan, nan])

    def merge(self, other: Histogram) -> None:
        """Add another histogram."""
        self.slots += other.slots

    @property
    def not_finite(self) -> int:
        """How many of the values are infinities and NaNs."""
        return int(self.slots[_INFINITE:].sum())

    @property
    def beyond_format(self) -> int:
        """How many finite values are of an exponent that the format does not have."""
        return int(self.slots[self.format.emax + 1 + FP32.bias : _ZERO].sum())

    def record(self) -> dict[str, Any]:
        """Return it as the file has it."""
        # Below the smallest normal number of float32 the field is 0; all of these are counted at one exponent.
        fields = np.flatnonzero(self.slots[:_ZERO]).tolist()
        exponents = {each - FP32.bias: int(self.slots[each]) for each in fields}
        return {
            "format": self.format.name,
            "total": int(self.slots.sum()),
            "zero": int(self.slots[_ZERO]),
            "subnormal": sum(count for exponent, count in exponents.items() if exponent < self.format.emin),
            "infinite": int(self.slots[_INFINITE]),
            "nan": int(self.slots[_NAN]),
            "exponents": {str(exponent): count for exponent, count in exponents.items()},
        }


@dataclass
class Counted:
    """The counts of rows of one or many products, and their distance from the product in fp32.

    Parameters
    ----------
    counts : golden.Counts
        Of all their steps; the accumulator of another machine counts none.
    lost : int
        Results that are 0 although they are not in fp32.
    results : int
        All of them.
    compared : int
        Results that are finite, in fp32 too. The distances are theirs.
    difference, reference : float
        Sums of squares: of the distances, and of the results in fp32.
    ulp, largest : float
        Sum of the distances in ulp, and the largest.
    """

    counts: Counts = field(default_factory=lambda: Counts(Events(), Events()))
    lost: int = 0
    results: int = 0
    compared: int = 0
    difference: float = 0.0
    reference: float = 0.0
    ulp: float = 0.0
    largest: float = 0.0

    def add(self, piece: Piece, reduction: Reduction) -> None:
        """Multiply a piece once more, and count."""
        left, right = values_of(piece.left), values_of(piece.right)
        start = initial = None if piece.initial is None else values_of(piece.initial)
        if initial is not None:
            start = golden.quantize(initial, reduction.result)
        if reduction.accumulator is not None:
            values = golden.matmul_values(left, right, reduction=reduction, initial=start, counts=False)
        else:
            values, counts = golden.matmul_values(left, right, reduction=reduction, initial=start, counts="sum")
            self.counts += counts
        with np.errstate(all="ignore"):
            reference = left @ right if initial is None else left @ right + initial
        self.compare(values, reference, reduction.result)
        self.lost += int(np.count_nonzero((values == 0) & (reference != 0)))
        self.results += values.size

    def compare(self, results: Values, reference: Values, fmt: FloatFormat) -> None:
        """Add the distances of results of a format, value by value."""
        both = np.isfinite(results) & np.isfinite(reference)
        exact = reference[both].astype(np.float64)
        away = np.abs(results[both].astype(np.float64) - exact)
        exponents = np.maximum(np.frexp(exact)[1] - 1, fmt.emin)
        units = np.ldexp(away, fmt.fraction_bits - exponents)
        self.compared += len(exact)
        self.difference += float(away @ away)
        self.reference += float(exact @ exact)
        self.ulp += float(units.sum())
        self.largest = max(self.largest, float(units.max(initial=0.0)))

    def merge(self, other: Counted) -> None:
        """Add what others tell."""
        for name in ("counts", "lost", "results", "compared", "difference", "reference", "ulp"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = max(self.largest, other.largest)

    def distance(self) -> dict[str, float] | None:
        """Return the distance as the file has it; None if there is nothing to compare with."""
        if not self.compared or not 0.0 < self.reference < np.inf or not self.difference < np.inf:
            return None
        relative = float(np.sqrt(self.difference / self.reference))
        return {"relative": relative, "ulp_mean": self.ulp / self.compared, "ulp_max": self.largest}


@dataclass
class Tally:
    """The products so far; tallies of several processes add up.

    Parameters
    ----------
    reduction : Reduction
        What they compute.
    shape : Shape
        Of the first.
    """

    reduction: Reduction
    shape: Shape
    calls: int = 0
    calls_counted: int = 0
    recomputed: int = 0
    rows: int = 0
    rows_counted: int = 0
    counted: Counted = field(default_factory=Counted)
    witness: Counted = field(default_factory=Counted)  # a row whose result is not finite, if no counted row tells why
    left: Histogram = field(init=False)
    right: Histogram = field(init=False)
    output: Histogram = field(init=False)

    def __post_init__(self) -> None:
        operand, half = formats_of(self.reduction)
        self.left, self.right, self.output = Histogram(operand), Histogram(operand), Histogram(half)

    @property
    def level(self) -> int:
        """The level of the first."""
        return level_of(self.reduction)

    def takes_next(self, *, recomputed: bool) -> bool:
        """Count a call, and tell whether it is looked at."""
        self.calls += 1
        self.recomputed += recomputed
        taken = self.calls <= _ALL_CALLS or self.calls % _ALL_CALLS == 0
        self.calls_counted += taken
        return taken

    def add(self, product: Product, result: Tensor, reduction: Reduction, count: int, step: int) -> int:
        """Count values, and `count` rows of a product; return how many there are."""
        not_finite = self.output.not_finite
        for tensor, histogram in zip((*product.operands, result), (self.left, self.right, self.output), strict=True):
            histogram.add(values_of(tensor))
        rows = chosen_rows(product.shape, count, step, result.device)
        for each in rows:
            self.counted.add(product.piece(each), reduction)
        is_new = self.output.not_finite > not_finite and not self.witness.results
        if is_new and product.bad_rows is not None and not self.left.not_finite + self.right.not_finite:
            self.witness.add(product.piece(first_row(product.bad_rows(result), product.shape)), reduction)
        return sum(len(each.within) for each in rows)

    def merge(self, other: Tally) -> None:
        """Add what another process has gathered."""
        for name in ("calls", "calls_counted", "recomputed", "rows", "rows_counted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("counted", "witness", "left", "right", "output"):
            getattr(self, name).merge(getattr(other, name))

    def row(self, key: Key, step: int) -> ProductRow:
        """Return it as a line of the file."""
        module, direction, operation = key
        counts = self.counted.counts
        given: dict[str, Any] = {
            "step": step,
            "module": module,
            "pass": direction,
            "operation": operation,
            "calls": self.calls,
            "calls_counted": self.calls_counted,
            "recomputed": self.recomputed,
            "level": self.level,
            "operand": self.reduction.factors.name,
            "shape": (self.shape.matrices * self.shape.rows, self.shape.columns, self.shape.length),
            "rows": self.rows,
            "rows_counted": self.rows_counted,
            "products": asdict(counts.products),
            "promotions": asdict(counts.promotions),
            "largest_exponent": None if counts.largest_exponent == NO_EXPONENT else int(counts.largest_exponent),
            "distance": self.counted.distance(),
            "tensors": {name: getattr(self, name).record() for name in ("left", "right", "output")},
        }
        return ProductRow.model_validate(given)


def merged(mine: dict[Key, Tally]) -> dict[Key, Tally]:
    """Return the sums over all processes on process 0, in its order, and nothing elsewhere. Every process must ask."""
    if world_size() == 1:
        return mine
    of_ranks: list[dict[Key, Tally] | None] | None = [None] * world_size() if rank() == 0 else None
    dist.gather_object(mine, of_ranks)
    if of_ranks is None:
        return {}
    for other in of_ranks[1:]:
        for key, tally in (other or {}).items():
            if key in mine:
                mine[key].merge(tally)
            else:
                mine[key] = tally
    return mine


class Cause(NamedTuple):
    """A cause in words, and the numbers that show it."""

    words: str
    evidence: dict[str, str | int | float | None]


def cause_of(tally: Tally) -> Cause | None:
    """Return why the products of a module are bad in a step, None if they are not: the first of these that holds.

    ==========================  ================================================================================
    cause                       holds if
    ==========================  ================================================================================
    input not finite            an operand has infinities or NaNs
    input beyond its format     an operand is finite, and too large for the format that it is rounded to
    overflow in the sums        a step or promotion overflowed, in the counted rows or in one that is not finite
    invalid product             one was invalid
    overflow of the result      results are not finite, and none of the above: the last rounding overflowed
    underflow to zero           more than half of the counted results are 0, and not in fp32
    swamped sums                more than a quarter of the addends were lost whole, and the results are more than
                                10 % away from those in fp32
    ==========================  ================================================================================
    """
    operands = {"left values": tally.left, "right values": tally.right}
    if where := {name: each.not_finite for name, each in operands.items() if each.not_finite}:
        return Cause("input not finite", {**where})
    if where := {name: each.beyond_format for name, each in operands.items() if each.beyond_format}:
        return Cause("input beyond its format", {"format": tally.reduction.factors.name, **where})
    for counted, rows in ((tally.counted, tally.rows_counted), (tally.witness, 1)):
        events = counted.counts.products + counted.counts.promotions
        steps = {"steps": events.steps, "rows": rows}
        if events.overflow:
            exponent = {"largest exponent": int(counted.counts.largest_exponent), "level": tally.level}
            return Cause("overflow in the sums", {"overflows": events.overflow, **steps, **exponent})
        if events.invalid:
            return Cause("invalid product", {"invalid": events.invalid, **steps})
    if tally.output.not_finite:
        name = tally.reduction.result.name
        return Cause("overflow of the result", {"results": tally.output.not_finite, "format": name})
    counted = tally.counted
    if counted.lost > MOST_LOST * counted.results:
        return Cause("underflow to zero", {"lost": counted.lost, "results": counted.results})
    events, distance = counted.counts.products + counted.counts.promotions, counted.distance()
    relative = 0.0 if distance is None else distance["relative"]
    if events.swamped > MOST_SWAMPED * events.steps and relative > MOST_RELATIVE:
        evidence = {"swamped": events.swamped, "steps": events.steps, "relative distance": relative}
        return Cause("swamped sums", evidence)
    return None
