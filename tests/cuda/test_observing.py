"""`observe` gathers the same of products on a card as on the CPU; the card's part runs on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import golden.torch as cstorch
from golden import BF16, CBFLOAT16, FP16
from golden.torch.instruments.observe import observer, samples
from golden.torch.instruments.observe.observer import Observer
from golden.torch.products.gpu import devices
from golden.torch.settings.scopes import scopes
from tests.cuda.host import HostDevice
from tests.torch.observing.test_samples import CONVOLUTIONS, MATRICES, g

LARGEST = {fmt.name: fmt.emax for fmt in (CBFLOAT16, FP16, BF16)}


@pytest.fixture(autouse=True)
def _card(host_device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels on this machine, in the place of card 0."""
    monkeypatch.setitem(devices.cards, 0, host_device)


def rows_of(function: Callable[..., Tensor], *given: Tensor, on_card: bool, half: str, **precision: Any) -> list[Any]:
    """Return the lines of the products of three steps, forward and backward."""
    seen = Observer(torch.nn.Identity(), 2, 6)
    with pytest.MonkeyPatch.context() as patch:
        if on_card:
            patch.setattr(observer, "_is_on_card", lambda result, reduction: True)
        scopes.observer = seen
        try:
            for scale in (1.0, 2.0, 0.5):
                leaves = [each.detach().requires_grad_() for each in given]
                with cstorch.precision(half, **precision):
                    result = function(leaves[0] * scale, *leaves[1:])
                    result.backward(torch.ones_like(result) / 8)
        finally:
            scopes.observer = None
    seen.settle()
    assert not seen.cards
    return [(tally.row(key, 2).model_dump(), tally.witness.counts, tally.witness.results, tally.counted.lost)
            for key, tally in seen.tallies.items()]  # fmt: skip


def whole(x: Tensor) -> Tensor:
    """Return numbers of few bits: sums of their products are exact in fp32, in any order."""
    return (x.detach() * 64).round() / 64


def check(function: Callable[..., Tensor], *given: Tensor, half: str = "cbfloat16", level: int = 2) -> list[Any]:
    """Observe on the CPU and on the card, and compare everything."""
    options = {"half": half, "level": level, "chunk": 5}
    here = rows_of(function, *given, on_card=False, **options)
    there = rows_of(function, *given, on_card=True, **options)
    assert there == here
    return here


@pytest.mark.parametrize("name", MATRICES)
def test_products_of_matrices_on_a_card_are_observed_as_on_the_cpu(name: str) -> None:
    function, *given = MATRICES[name]()
    found = check(function, *map(whole, given))
    assert len(found) >= 1
    assert any(row["distance"]["relative"] > 0 for row, *_ in found)


def test_products_on_a_card_are_observed_whatever_dtype_pytorch_makes_tensors_of() -> None:
    function, *given = MATRICES[next(iter(MATRICES))]()
    options = {"half": "cbfloat16", "level": 2, "chunk": 5}
    here = rows_of(function, *map(whole, given), on_card=False, **options)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        there = rows_of(function, *map(whole, given), on_card=True, **options)
    finally:
        torch.set_default_dtype(usual)
    assert there == here


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_on_a_card_are_observed_as_on_the_cpu(name: str) -> None:
    settings, x, weight = CONVOLUTIONS[name]
    bias = g(weight[0], seed=3)
    given = map(whole, (g(*x, seed=1), g(*weight, seed=2), bias))
    assert len(check(lambda *each: cstorch.conv2d(*each, **settings), *given, half="float16", level=1)) >= 3


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolutions_on_a_card_are_observed_as_on_the_cpu(groups: int) -> None:
    given = map(whole, (g(2, 4, 3, 2, seed=1), g(4, 3, 2, 2, seed=2)))
    check(lambda *each: cstorch.conv_transpose2d(*each, groups=groups), *given)


@pytest.mark.parametrize("half", ["cbfloat16", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["linear of a batch", "batched"])
def test_row_that_is_not_finite_is_counted_on_a_card_as_on_the_cpu(name: str, half: str) -> None:
    """Large factors, all of them finite, of one late row: its sums overflow, and the row is the witness."""
    function, x, *rest = MATRICES[name]()
    x = whole(x)
    x.view(-1, x.shape[-1])[-2] = 2.0 ** LARGEST[half]
    found = check(function, x, *(whole(each) * 4 + 8 for each in rest), half=half)
    witnesses = [counts for _, counts, results, _ in found if results]
    assert witnesses
    assert any(counts.products.overflow for counts in witnesses)


def test_convolution_that_is_not_finite_is_counted_on_a_card_as_on_the_cpu() -> None:
    settings, x, weight = CONVOLUTIONS["groups"]
    data = whole(g(*x, seed=1))
    data[1, 3] = 2.0 ** LARGEST["cbfloat16"]
    given = data, whole(g(*weight, seed=2)) + 8, whole(g(weight[0], seed=3))
    found = check(lambda *each: cstorch.conv2d(*each, **settings), *given)
    assert any(results for _, _, results, _ in found)


def test_operands_that_are_not_finite_have_no_witness_on_a_card_as_on_the_cpu() -> None:
    x, weight = whole(g(6, 5, seed=1)), whole(g(3, 5, seed=2))
    x[2, 3] = float("nan")
    found = check(cstorch.linear, x, weight)
    assert not any(results for _, _, results, _ in found)
    assert any(row["tensors"]["left"]["nan"] for row, *_ in found)


def test_results_lost_to_zero_are_counted_on_a_card_as_on_the_cpu() -> None:
    found = check(cstorch.linear, whole(g(6, 5, seed=1)) * 2.0**-13, whole(g(3, 5, seed=2)) * 2.0**-13, half="float16")
    assert any(lost for *_, lost in found)


def test_distances_of_values_of_all_bits_are_those_from_a_chain_in_fp32() -> None:
    """The CPU multiplies in fp32 by a library that adds in another order; the card's order is said."""
    given = g(6, 50, seed=1), g(3, 50, seed=2)
    here, there = (rows_of(cstorch.linear, *given, on_card=on, half="bfloat16", level=2) for on in (False, True))
    for (mine, *_), (its, *_) in zip(here, there, strict=True):
        near, far = mine.pop("distance"), its.pop("distance")
        assert its == mine
        assert far == pytest.approx(near, rel=1e-3)


def test_first_row_is_the_first_that_is_bad() -> None:
    bad = torch.zeros(3, 4, dtype=torch.bool)
    shape = samples.Shape(3, 4, 1, 1)
    for place in ((0, 0), (1, 2), (2, 3)):
        marked = bad.clone()
        marked[place] = marked[2, 3] = True
        assert [int(each) for each in samples.first_row(marked, shape)] == list(place)


def _other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golden.torch.instruments.observe.card_tallies.chosen_rows",
                        lambda shape, count, step, on: samples.chosen_rows(shape, count, step + 1, on))  # fmt: skip


def _other_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golden.torch.instruments.observe.card_tallies.first_row",
                        lambda bad, shape: samples.first_row(bad.new_zeros(bad.shape), shape))  # fmt: skip


def _no_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golden.torch.instruments.observe.card_tallies.CardTally._add_distance", lambda *given: None)


@pytest.mark.parametrize("fault", [_other_rows, _other_witness, _no_distance])
def test_faults_of_what_is_gathered_on_a_card_are_seen(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        test_row_that_is_not_finite_is_counted_on_a_card_as_on_the_cpu("linear of a batch", "cbfloat16")
