"""Faults in the source of blocks: each is seen here, and the source as it is passes."""

import numpy as np
import pytest
import torch

import golden
import golden.torch as cstorch
from golden import CBFLOAT16, Randomness
from golden.torch.products.functions import blocks as functions
from golden.torch.products.functions import layers
from golden.torch.products.operators import blocks as values
from golden.torch.products.operators import sharding
from golden.torch.settings.blocks import Blocks
from lab.mutants.table import seen_by

from .oracle import array, normal
from .test_faults import changed, holds
from .test_mx import assert_values
from .test_mx_recipes import GRADIENT, TENSOR, WEIGHT, rounded

FAULTS = seen_by(__file__)
RANDOM = Randomness(seed=5)


def bits_and_gradients_of_a_layer(module):
    x, upstream = normal(6, 32, seed=1, grad=True), normal(6, 6, seed=2)
    how = {"gradient_element": "float8_e5m2", "rounding": "stochastic", "random": RANDOM}
    with cstorch.precision("cbfloat16", level=1):
        result = module.linear(x, x.detach().clone(), element="nvfp4", **how)
    result.backward(upstream)
    options = {"operand": CBFLOAT16, "level": 1, "out": CBFLOAT16}
    left, right = (rounded(array(x), "nvfp4", -1, RANDOM, branch) for branch in (TENSOR, WEIGHT))
    assert_values(result, golden.matmul_values(left, right.T, **options))
    assert_values(x.grad, golden.matmul_values(rounded(array(upstream), "float8_e5m2"), right, **options))
    with cstorch.precision("cbfloat16", level=1):
        how = {"gradient_element": "nvfp4", "gradient_rounding": "stochastic", "random": RANDOM}
        x.grad = None
        module.fake_quantize(x, None, **how).backward(x.detach())
    assert_values(x.grad, rounded(array(x), "nvfp4", -1, RANDOM, GRADIENT))


def numbers_in_a_state(module):
    layer = module.Linear(32, 4, element="nvfp4", rounding="stochastic")
    for _ in range(2):
        layer(torch.ones(1, 32))
    assert layer.state_dict()["_extra_state"] == {"calls": 2}


def splits_of_blocks(module):
    x = torch.ones(2, 3, 32)
    assert [*module._of_blocks(x, str(Blocks("float4_e2m1fn")), 1)] == [(0, 0), (2, 2)]
    assert [*module._of_blocks(x, str(Blocks("nvfp4")), 1)] == []


def values_along_an_axis(module):
    x = array(normal(40, 3, seed=3))
    blocks = Blocks("float4_e2m1fn", rounding="stochastic")
    random = Randomness(call=(0 - TENSOR) * pow(2654435761, -1, 2**32) % 2**32)  # whose first branch is call 0
    found = module.rounded(x, blocks, 0)
    assert_values(torch.from_numpy(found), np.moveaxis(rounded(x, "float4_e2m1fn", 0, random), 0, -1))
    x[3, 1] = np.inf
    assert np.isnan(module.rounded(x, Blocks("nvfp4"), 0)[1, :16]).all()


@pytest.mark.parametrize(
    ("check", "module"),
    [
        (bits_and_gradients_of_a_layer, functions),
        (numbers_in_a_state, layers),
        (splits_of_blocks, sharding),
        (values_along_an_axis, values),
    ],
)
def test_source_passes_and_each_of_its_faults_does_not(check, module):
    check(module)
    faults = [fault for fault in FAULTS.values() if fault.by == check.__name__]
    assert faults
    assert {fault.name: holds(check, changed(fault)) for fault in faults} == dict.fromkeys(
        (fault.name for fault in faults), False
    )
