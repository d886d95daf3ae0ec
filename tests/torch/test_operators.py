"""The operators of this package: each is in every table, and one that is not is found."""

import pytest
import torch
from torch import nn
from torch._library.simple_registry import singleton
from torch.utils.flop_counter import flop_registry

import golden.torch as cstorch
from golden.torch import mx
from golden.torch.products.operators import sharding

from .oracle import normal

OURS = torch.ops.cbfloat
NO_PRODUCTS = {"rounded", "rounded_to_blocks", "softmax16"}


def names():
    """Return the names of all operators that are registered now."""
    found = (name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names())
    return sorted({name.removeprefix("cbfloat::") for name in found if name.startswith("cbfloat::")})


def missing_from(name):
    """Return the tables that lack an operator."""
    full = f"cbfloat::{name}"
    tables = {f"kernel for {key}": torch._C._dispatch_has_kernel_for_dispatch_key(full, key) for key in ("CPU", "CUDA")}
    tables["shapes for the compiler"] = singleton.find(full).fake_impl.kernel is not None
    tables["splits for DTensor"] = name in sharding._SPLITS
    tables["number of products"] = name in NO_PRODUCTS or getattr(OURS, name) in flop_registry
    return [table for table, has in tables.items() if not has]


def test_every_operator_is_in_every_table():
    assert len(names()) >= 8
    assert {name: missing for name in names() if (missing := missing_from(name))} == {}


@pytest.fixture
def new_operator():
    library = torch.library.Library("cbfloat", "FRAGMENT")
    library.define("product_of_tomorrow(Tensor a, Tensor b) -> Tensor")
    yield library
    library._destroy()


def test_new_operator_that_is_in_no_table_is_found_in_each(new_operator):
    assert missing_from("product_of_tomorrow") == [
        "kernel for CPU",
        "kernel for CUDA",
        "shapes for the compiler",
        "splits for DTensor",
        "number of products",
    ]


def advised(model, x):
    """Return the products of each layer and pass that advise counts."""
    target = torch.arange(len(x)) % 4
    advice = cstorch.advise(nn.Sequential(model), [(x, target)], loss=nn.functional.cross_entropy, show=False)
    return {(row.layer, row.run): row.products for row in advice.rows}


def test_advise_takes_a_model_with_products_of_groups_and_counts_them():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(normal(2, 6, 4, seed=1))

        def forward(self, x):
            return torch._grouped_mm(x, self.weight, offs=torch.tensor([2, 5], dtype=torch.int32))

    once = 5 * 6 * 4
    assert advised(Experts(), normal(5, 6, seed=2)) == {("0", "fwd"): once, ("0", "bwd"): once}  # of the weight alone


def test_advise_takes_a_model_with_blocks_which_are_no_products():
    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(32, 4, bias=False)

        def forward(self, x):
            return self.linear(mx.fake_quantize(x, "float8_e4m3fn"))

    once = 3 * 32 * 4
    assert advised(Blocks(), normal(3, 32, seed=2)) == {("0.linear", "fwd"): once, ("0.linear", "bwd"): once}
