"""Counts of products on a CUDA device: they stay there, in one tensor for each tally, until a step ends."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from golden.arrays.requests import steps_of
from golden.cuda.counting import NUMBERS, SLOTS, counts_of
from golden.formats import FloatFormat
from golden.reduction import Reduction
from golden.torch.instruments.observe.samples import Piece, Product, chosen_rows, first_row
from golden.torch.instruments.observe.tallies import Counted, Tally
from golden.torch.products.gpu.counting import add_exponents, counted_product

__all__ = ["CardTally"]

# Parts of the record: counts; the witness: how often there was one (0 or 1), its steps and results; results
# that were lost, and those that were compared; distances, which are doubles; histograms.
_COUNTED, _WITNESS = slice(0, NUMBERS), slice(NUMBERS, 2 * NUMBERS)
_TAKEN = 2 * NUMBERS
_OF_WITNESS = slice(_TAKEN, _TAKEN + 4)  # 1, products, promotions, results
_LOST, _COMPARED = _TAKEN + 4, _TAKEN + 5
_DISTANCE = slice(_TAKEN + 6, _TAKEN + 10)  # difference, reference, ulp, largest
_LEFT, _RIGHT, _OUTPUT = (slice(_TAKEN + 10 + SLOTS * i, _TAKEN + 10 + SLOTS * (i + 1)) for i in range(3))
_SIZE = _OUTPUT.stop
_NOT_FINITE = 2  # the last numbers of a histogram
_DOUBLE_BIAS, _DOUBLE_FRACTION = 1023, 52


class CardTally:
    """The products so far.

    Parameters
    ----------
    device : torch.device
    """

    def __init__(self, device: torch.device) -> None:
        self.record = torch.zeros(_SIZE, dtype=torch.int64, device=device)
        self._products = self._promotions = self._results = 0

    def add(self, product: Product, result: Tensor, reduction: Reduction, count: int, step: int) -> int:
        """Count values, and `count` rows of a product; return how many there are. Nothing waits for the card."""
        before = self._not_finite(_OUTPUT)
        for tensor, part in zip((*product.operands, result), (_LEFT, _RIGHT, _OUTPUT), strict=True):
            add_exponents(tensor, self.record[part])
        rows = chosen_rows(product.shape, count, step, result.device)
        for each in rows:
            self._add_piece(product.piece(each), reduction)
        if product.bad_rows is not None:
            self._add_witness(before, product, result, reduction)
        return sum(len(each.within) for each in rows)

    def _not_finite(self, part: slice) -> Tensor:
        return self.record[part][-_NOT_FINITE:].sum(0, keepdim=True)

    def _add_piece(self, piece: Piece, reduction: Reduction) -> None:
        left, right, initial = piece
        reference = torch.empty((len(left), right.shape[1]), dtype=torch.float32, device=left.device)
        values, counted = counted_product(
            left, right, initial, reduction, numbers=self.record[_COUNTED], reference=reference
        )
        self._products += counted.products
        self._promotions += counted.promotions
        self._results += values.numel()
        self.record[_LOST] += ((values == 0) & (reference != 0)).sum()
        self._add_distance(values, reference, reduction.result)

    def _add_distance(self, values: Tensor, reference: Tensor, fmt: FloatFormat) -> None:
        """Add distances from the fp32 results, as `Counted.compare` does."""
        both = values.isfinite() & reference.isfinite()
        exact = reference.double().where(both, 0.0)
        away = (values.double() - exact).abs().where(both, 0.0)
        fields = (exact.view(torch.int64) >> _DOUBLE_FRACTION) & (2 * _DOUBLE_BIAS + 1)
        exponents = fields.where(exact != 0, _DOUBLE_BIAS - 1) - _DOUBLE_BIAS
        powers = fmt.fraction_bits - exponents.clamp(min=fmt.emin)
        units = away * ((powers + _DOUBLE_BIAS) << _DOUBLE_FRACTION).view(torch.float64)
        sums = self.record[_DISTANCE].view(torch.float64)
        sums[:3] += torch.stack([(away * away).sum(), (exact * exact).sum(), units.sum()])
        sums[3:] = torch.maximum(sums[3:], units.amax())
        self.record[_COMPARED] += both.sum()

    def _add_witness(self, before: Tensor, product: Product, result: Tensor, reduction: Reduction) -> None:
        """Count the first row that is not finite, if it is the first of all calls and no operand tells why."""
        assert product.bad_rows is not None
        is_new = (self._not_finite(_OUTPUT) > before) & (self.record[_TAKEN : _TAKEN + 1] == 0)
        taken = (is_new & (self._not_finite(_LEFT) + self._not_finite(_RIGHT) == 0)).long()
        left, right, initial = product.piece(first_row(product.bad_rows(result), product.shape))
        counted_product(left, right, initial, reduction, numbers=self.record[_WITNESS], only_if=taken)
        results = right.shape[1]
        steps = (each * results for each in steps_of(reduction, left.shape[1]))
        for place, number in zip(range(_TAKEN, _LOST), (1, *steps, results), strict=True):
            self.record[place : place + 1].add_(taken, alpha=number)

    def settle(self, tally: Tally, record: NDArray[np.int64]) -> None:
        """Add the content of the record, which has been read, to a tally of the host."""
        for histogram, part in ((tally.left, _LEFT), (tally.right, _RIGHT), (tally.output, _OUTPUT)):
            histogram.slots += record[part]
        counts = counts_of(record[_COUNTED], self._products, self._promotions)
        lost, compared = record[_LOST], record[_COMPARED]
        distances = record[_DISTANCE].view(np.float64).tolist()
        tally.counted.merge(Counted(counts, int(lost), self._results, int(compared), *distances))
        taken, products, promotions, results = record[_OF_WITNESS].tolist()
        if taken and not tally.witness.results:
            tally.witness.merge(Counted(counts_of(record[_WITNESS], products, promotions), results=results))
