"""Products that count by the kernels for cards, on tensors of this machine, and the counts of golden beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import golden
from golden.arrays.counting import counts_in_form
from golden.counts import Counts
from golden.torch.products.gpu import devices
from golden.torch.products.gpu.counting import counted_product
from tests.cuda.host import HostDevice
from tests.cuda.products import Values, assert_equal_bits

NAMES = ("steps", "inexact", "underflow", "overflow", "invalid", "swamped")
MODES = {"rounding": "nearest_even", "out_rounding": "nearest_even", "seed": 0, "call": 0, "random_bits": 16}


def numbers(counts: Counts) -> dict[str, Any]:
    """Return all numbers of counts by their names."""
    kinds = {"products": counts.products, "promotions": counts.promotions}
    found = {f"{event} of {name}": getattr(kind, event) for name, kind in kinds.items() for event in NAMES}
    return {**found, "largest exponent": counts.largest_exponent}


def assert_equal_counts(found: Counts, expected: Counts) -> None:
    """Compare every number; the error names the first that differs."""
    wanted = numbers(expected)
    for name, got in numbers(found).items():
        want = wanted[name]
        assert type(got) is type(want), name
        assert np.shape(got) == np.shape(want), name
        places = np.argwhere(np.asarray(got) != np.asarray(want)).tolist()
        if places:
            at = tuple(places[0])
            pair = np.asarray(got)[at], np.asarray(want)[at]
            raise AssertionError(f"{name}, {len(places)} differ: {pair[0]} at {at}, not {pair[1]}")


def check(
    device: HostDevice,
    a: Values | torch.Tensor,
    b: Values | torch.Tensor,
    *,
    operand: golden.FloatFormat,
    reduction: golden.Reduction,
    initial: Values | None = None,
    out: golden.FloatFormat | None = None,
    **modes: Any,
) -> Counts:
    """Multiply and count by the kernels and by golden; compare results and counts, and return each result's counts."""
    half = out or reduction.outer
    x, y, start = (torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in (a, b, initial))
    summing = golden.reduction.reduction_of(operand=operand, reduction=reduction, out=half, **MODES | modes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(devices.cards, 0, device)
        results, counted = counted_product(x, y, start, summing, counts=True)
    expected, counts = golden.matmul_values(
        x.float().numpy(), y.float().numpy(), operand=operand, reduction=reduction,
        initial=None if initial is None else golden.quantize(initial, half), out=half, counts=True, **modes,
    )  # fmt: skip
    assert_equal_bits(results.numpy(), expected)
    assert_equal_counts(counted.counts(), counts)
    return counts


def in_form(counts: Counts, form: bool | str) -> Counts:
    """Return the counts of each result in another form."""
    return counts_in_form(counts, form)
