"""The replay of training: the Verilog computes what golden does, every difference is seen, layers have their names."""

import numpy as np
import pytest
import torch

import golden
import golden.torch
from golden import BF16, CBFLOAT16, FP16
from golden.formats import HALF_FORMATS
from hdl import MultiplyAccumulate
from lab.replay.judge import judge
from lab.replay.netlist import Netlist
from lab.replay.recording import Product, Recorder

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def netlist():
    return Netlist(MultiplyAccumulate(operands=HALF_FORMATS))


def product(fmt, m, k, n, seed=0):
    """A product of values that overflow and underflow, with infinities and signalling NaNs here and there."""
    rng = np.random.default_rng(seed)
    reach = (fmt.emax - fmt.emin) // 3
    a, b = (
        golden.encode(rng.standard_normal(shape) * 2.0 ** rng.integers(-reach, reach, shape), fmt)
        for shape in ((m, k), (k, n))
    )
    a[0, 0], b[k // 2, 0], a[-1, -1] = fmt.inf, fmt.sign_mask, fmt.inf + 1
    return Product("layer", "forward", a, b, fmt)


@pytest.mark.parametrize("level", golden.LEVELS)
@pytest.mark.parametrize("fmt", HALF_FORMATS, ids=str)
def test_netlist_product_with_specials_is_goldens(netlist, fmt, level):
    verdict = judge(product(fmt, 9, 70, 11), level, netlist)
    assert (verdict.differ, verdict.first) == (0, "")
    assert verdict.overflowed > 0 or level == 0
    assert verdict.cycles >= 9 * 70 * 11


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 200, 1), (3, 32, 1), (1, 33, 20)], ids=str)
def test_netlist_product_of_few_outputs_is_goldens(netlist, shape):
    for level in golden.LEVELS:
        assert judge(product(FP16, *shape), level, netlist).differ == 0


def test_judge_netlist_with_one_wrong_bit_names_the_output(netlist):
    class Wrong:
        def matmul(self, a, b, **given):
            codes, flags, cycles = netlist.matmul(a, b, **given)
            codes[2, 3] ^= 1
            flags[4, 5] ^= golden.Flag.UNDERFLOW
            return codes, flags, cycles

    verdict = judge(product(CBFLOAT16, 6, 40, 7), 1, Wrong())
    assert verdict.differ == 2
    assert verdict.first.startswith("layer forward, cbfloat16 level 1, row 2, column 3: 0x")


def test_netlist_level_it_was_not_built_for_is_an_error():
    netlist = Netlist(MultiplyAccumulate(operands=(CBFLOAT16,), levels=(0,)))
    with pytest.raises(RuntimeError, match="2 × 3 × 2 products of cbfloat16 at level 2"):
        judge(product(CBFLOAT16, 2, 3, 2), 2, netlist)


def test_recorder_small_model_names_layers_and_directions():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 4))
    with golden.torch.precision(half="bfloat16", level=1), Recorder(model) as recorder:
        model(torch.randn(5, 8)).float().pow(2).sum().backward()
    found = [(each.layer, each.direction, each.a.shape, each.b.shape) for each in recorder.products]
    assert found == [
        ("0", "forward", (5, 8), (8, 6)),
        ("2", "forward", (5, 6), (6, 4)),
        ("2", "grad_input", (5, 4), (4, 6)),
        ("2", "grad_weight", (6, 5), (5, 4)),
        ("0", "grad_weight", (8, 5), (5, 6)),
    ]
    first = recorder.products[0]
    assert first.operand == BF16
    assert (first.b == golden.encode(model[0].weight.detach().numpy().T, BF16)).all()


def test_recorder_batched_products_are_one_each_and_the_first_four_are_kept():
    model = torch.nn.Identity()
    with golden.torch.precision(half="cbfloat16"), Recorder(model) as recorder:
        torch.randn(7, 5, 8) @ torch.randn(7, 8, 2)
        torch.randn(3, 5, 8) @ torch.randn(8, 2)
    assert [each.a.shape for each in recorder.products] == [(5, 8)] * 4 + [(15, 8)]
    assert recorder.products[-1].size == 15 * 8 * 2


def test_judge_addends_below_half_an_ulp_of_their_sum_are_swamped(netlist):
    # 1, and then what bfloat16 does not add to it: 31 of the 32 products of every chunk.
    a = np.full((1, 64), golden.encode(2.0**-9, BF16), np.uint16)
    a[0, ::32] = BF16.one
    product = Product("sum", "forward", a, np.full((64, 1), BF16.one, np.uint16), BF16)
    assert [judge(product, level, netlist).swamped for level in golden.LEVELS] == [0, 31 / 32, 31 / 32]


@pytest.fixture(scope="module")
def counting():
    return Netlist(MultiplyAccumulate(operands=HALF_FORMATS, counters=True))


@pytest.mark.parametrize("level", golden.LEVELS)
@pytest.mark.parametrize("fmt", HALF_FORMATS, ids=str)
def test_netlist_with_counters_counts_what_golden_counts(counting, fmt, level):
    verdict = judge(product(fmt, 9, 70, 11), level, counting, counters=True)
    assert (verdict.differ, verdict.miscounted) == (0, "")


def test_judge_netlist_that_counts_one_step_too_many_names_the_counter(counting):
    class Wrong:
        def counted_matmul(self, a, b, **given):
            codes, flags, cycles, counts = counting.counted_matmul(a, b, **given)
            return codes, flags, cycles, [*counts[:5], counts[5] + 1, *counts[6:]]

    verdict = judge(product(CBFLOAT16, 6, 40, 7), 1, Wrong(), counters=True)
    assert verdict.miscounted.startswith("layer forward, cbfloat16 level 1: products.swamped counts ")
