"""FlopCounterMode counts exact products as it counts PyTorch's."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import golden.torch as cstorch

from .oracle import normal

MODELS = {
    "linear": (nn.Linear(6, 5, bias=False), (3, 4, 6)),
    "convolution": (nn.Conv2d(4, 6, 3, padding=1, bias=False), (2, 4, 5, 7)),
    "strides": (nn.Conv1d(4, 6, 3, stride=2, bias=False), (2, 4, 9)),
    "transposed": (nn.ConvTranspose1d(4, 6, 3, stride=2, bias=False), (2, 4, 5)),
    "attention": (nn.MultiheadAttention(8, 2, bias=False, batch_first=True), (2, 5, 8)),
}


def flops_of(model, x, *, is_exact, inside=False):
    x = x.clone().requires_grad_()
    counter = FlopCounterMode(display=False)
    precision = cstorch.precision("cbfloat16", enabled=is_exact)
    first, second = (precision, counter) if inside else (counter, precision)
    with first, second:
        result = model(x, x, x, need_weights=True)[0] if isinstance(model, nn.MultiheadAttention) else model(x)
        forward = counter.get_total_flops()
        result.float().sum().backward()
    return forward, counter.get_total_flops()


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_flop_counter_counts_the_products_of_a_layer_as_those_of_pytorch(name, inside):
    model, shape = MODELS[name]
    x = normal(*shape, seed=1)
    wanted = flops_of(model, x, is_exact=False)
    assert wanted[1] > wanted[0] > 0
    assert flops_of(model, x, is_exact=True, inside=inside) == wanted


def test_flop_counter_counts_the_groups_of_a_convolution_apart():
    x, weight = normal(2, 4, 9, seed=2), normal(6, 2, 3, seed=3)
    with FlopCounterMode(display=False) as counter, cstorch.precision("cbfloat16"):
        result = F.conv1d(x, weight, groups=2)
    assert counter.get_total_flops() == 2 * result.numel() * 2 * 3


@pytest.mark.parametrize("shapes", [((7, 4), (3, 4, 5)), ((3, 5, 4), (4, 7)), ((5, 7), (7, 4))])
def test_flop_counter_counts_every_group_of_a_grouped_product_once(shapes):
    a, b = (normal(*shape, seed=seed) for seed, shape in enumerate(shapes))
    with FlopCounterMode(display=False) as counter, cstorch.precision("cbfloat16"):
        F.grouped_mm(a, b, offs=torch.tensor([2, 4, 7], dtype=torch.int32))
    assert counter.get_total_flops() == 2 * 4 * 5 * 7
