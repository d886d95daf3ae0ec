"""Products on a CUDA device that count what their steps do, and histograms of exponents; nothing here waits for it.

Counts stay in tensors of the device, and every call adds to them.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple, TypedDict, Unpack

import torch

from golden.arrays.requests import steps_of
from golden.counts import Counts
from golden.cuda.counting import NUMBERS, SLOTS, Wanted, counted_launch, counts_of, exponents_launch
from golden.cuda.plan import Arrays
from golden.reduction import Reduction
from golden.torch.products.gpu.checking import launch, once
from golden.torch.products.gpu.checking_counts import check_counts, check_exponents
from golden.torch.products.gpu.devices import MEMORY, check_device, device_of, matrix_of, readable
from golden.torch.products.gpu.products import check_length, is_served, key_of

__all__ = ["CountedNumbers", "add_exponents", "counted_product", "is_counted"]


class CountedNumbers(NamedTuple):
    """Numbers of a product on its device, int64 of shape (NUMBERS, ...), and how many steps each number tells of."""

    numbers: torch.Tensor
    products: int
    promotions: int

    def counts(self) -> Counts:
        """Return the counts; this waits for the device."""
        return counts_of(self.numbers.cpu().numpy(), self.products, self.promotions)


def is_counted(reduction: Reduction, results: int) -> bool:
    """Return whether the kernels count a product; the accumulators of other machines count nothing."""
    return reduction.accumulator is None and is_served(reduction, results)


class CountKeywords(TypedDict, total=False):
    """The keywords of `counted_product`."""

    counts: bool | str
    counted_rows: torch.Tensor | None
    numbers: torch.Tensor | None
    reference: torch.Tensor | None
    only_if: torch.Tensor | None


def counted_product(
    a: torch.Tensor,
    b: torch.Tensor,
    initial: torch.Tensor | None,
    reduction: Reduction,
    **wanted: Unpack[CountKeywords],
) -> tuple[torch.Tensor, CountedNumbers]:
    """Multiply (..., M, K) by (..., K, N), and count: the counts of `golden.matmul_values`.

    Parameters
    ----------
    a, b : Tensor
    initial : Tensor, optional
        It broadcasts to the result, and is rounded to the format of the results.
    reduction : Reduction
        Of a product that `is_counted`.
    counts : True, "rows" or "sum"
        Counts of each result, (..., M, N), of each row, (..., M), or of all together.
    counted_rows : Tensor, optional
        int64, the rows of `a` that are counted, ascending, each once. Only their results are computed; the others are
        not set.
    numbers : Tensor, optional
        Numbers of the same shape, to which these are added; zeros unless given.
    reference : Tensor, optional
        float32 and contiguous, (..., M, N) or with the counted rows alone. It becomes the product of the same values in
        fp32: a chain of fused steps, and then the initial value.
    only_if : Tensor, optional
        int64, of one element. Where it is 0, nothing is computed, and the result is not set.

    Returns
    -------
    result : Tensor
        float32, (..., M, N): the bits of the product that is not counted.
    counted : CountedNumbers

    Raises
    ------
    ValueError
        If the tensors are not on one device, or there are more products than random bits have places for.
    """
    counts, counted_rows = wanted.get("counts", "sum"), wanted.get("counted_rows")
    numbers, reference, only_if = wanted.get("numbers"), wanted.get("reference"), wanted.get("only_if")
    check_device(a=a, b=b, initial=initial, counted_rows=counted_rows, numbers=numbers, reference=reference)
    assert all(each is None or each.is_contiguous() for each in (counted_rows, numbers, reference))
    check_length(a.shape[-1], reduction)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, length, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    computed = rows if counted_rows is None else len(counted_rows)
    shape = {True: (*batch, computed, columns), "rows": (*batch, computed), "sum": ()}[counts]
    x, y = readable(a).expand(*batch, rows, length), readable(b).expand(*batch, length, columns)
    result = torch.empty((*batch, rows, columns), dtype=torch.float32, device=a.device)
    if numbers is None:
        numbers = torch.zeros((NUMBERS, *shape), dtype=torch.int64, device=a.device)
    given = [x, y, result] if initial is None else [x, y, result, readable(initial).expand(result.shape)]
    if len(batch) > 1:  # copies, where they are needed, have one axis for all
        given = [each.reshape(-1, *each.shape[-2:]) for each in given]
        batch = torch.Size((prod(batch),))
    card = device_of(a.device)
    once(card, ("counted", key_of(reduction)), lambda: check_counts(card, a.device, reduction))
    arrays = Arrays(tuple(batch), (rows, length, columns), *map(matrix_of, given))
    tables = [0 if each is None else each.data_ptr() for each in (counted_rows, reference, only_if)]
    asked = Wanted(numbers.data_ptr(), counts, tables[0], computed, tables[1], tables[2])
    made = counted_launch(reduction, arrays, asked, initial_format=reduction.result)
    if made is not None:
        launch(card, made)
    each = 1 if counts is True else columns if counts == "rows" else prod(batch) * computed * columns
    products, promotions = steps_of(reduction, length)
    return result, CountedNumbers(numbers, products * each, promotions * each)


def add_exponents(values: torch.Tensor, slots: torch.Tensor) -> None:
    """Add the exponents of values of any shape and strides to `slots`, `SLOTS` numbers of int64 on the same device."""
    check_device(values=values, slots=slots)
    assert (slots.numel(), slots.dtype) == (SLOTS, torch.int64)
    flat = readable(values).contiguous()
    if flat.numel():
        card = device_of(values.device)
        once(card, "exponents", lambda: check_exponents(card, values.device))
        launch(card, exponents_launch(flat.data_ptr(), flat.numel(), MEMORY[flat.dtype], slots.data_ptr()))
