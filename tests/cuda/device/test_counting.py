"""Counts of products on a card equal the CPU's, and `observe` reports the same there."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import nn

import golden
import golden.torch as cstorch
from golden.reduction import reduction_of as whole_of
from golden.torch.instruments.observe.tallies import Histogram
from golden.torch.products.gpu.counting import add_exponents, counted_product
from tests.cuda.counts import assert_equal_counts
from tests.cuda.products import assert_equal_bits, reduction_of, special_values


@pytest.mark.parametrize("form", [True, "rows", "sum"], ids=str)
@pytest.mark.parametrize("mode", list(golden.Rounding), ids=str)
def test_counts_on_a_card_are_golden_s(mode, form):
    for fmt, level in [(golden.CBFLOAT16, 1), (golden.FP16, 2), (golden.BF16, 0)]:
        a, b, start = (special_values(seed, fmt, *shape) for seed, shape in enumerate([(70, 40), (40, 300), (300,)]))
        plan = reduction_of(fmt, level, 7)
        modes = {"rounding": mode, "out_rounding": mode, "seed": 5}
        summing = whole_of(operand=fmt, reduction=plan, out=fmt, **modes)
        given = (torch.from_numpy(each).cuda() for each in (a, b, start))
        results, counted = counted_product(*given, summing, counts=form)
        start = golden.quantize(start, fmt)
        options = {"operand": fmt, "reduction": plan, "initial": start, "out": fmt, **modes}
        expected, counts = golden.matmul_values(a, b, counts=form, **options)
        assert_equal_bits(results.cpu().numpy(), expected)
        assert_equal_counts(counted.counts(), counts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_exponents_on_a_card_are_those_of_the_cpu(dtype):
    bits = torch.randint(-(2**31), 2**31, (300, 500), generator=torch.Generator().manual_seed(1), dtype=torch.int64)
    x = bits.to(torch.int32).view(torch.float32).to(dtype)
    slots = torch.zeros(258, dtype=torch.int64, device="cuda")
    for view in (x.cuda(), x.cuda()[::2, 3:].T):
        add_exponents(view, slots)
    found, wanted = Histogram(golden.FP16), Histogram(golden.FP16)
    found.slots += slots.cpu().numpy()
    for view in (x, x[::2, 3:].T):
        wanted.add(view.float().numpy())
    assert found.record() == wanted.record()


def test_observation_on_a_card_is_that_of_the_cpu():
    """Numbers of few bits, that no step changes: sums of their products are exact in fp32, in any order."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, groups=2), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))
    for each in model.parameters():
        each.data = (each.data * 64).round() / 64
    x = torch.randint(-8, 9, (3, 2, 4, 4)) / 8
    found = []
    for device in ("cpu", "cuda"):
        mine, scaler = copy.deepcopy(model).to(device), cstorch.amp.GradScaler(8.0)
        optimizer = torch.optim.SGD(mine.parameters(), 0.0)
        with cstorch.observe(mine, every=2) as report, cstorch.precision("float16", level=2):
            for _ in range(3):
                optimizer.zero_grad()
                scaler.scale(mine(x.to(device)).float().sum()).backward()
                scaler.step(optimizer)
                scaler.update()
        found.append([json.dumps(row.model_dump(exclude={"started"})) for row in report.rows])
    assert found[0] == found[1]
    assert len(found[0]) > 12
