"""Products of models whose subnormals are flushed are the products of `golden`, forward and backward."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import golden
import golden.torch as cstorch
from golden import CBFLOAT16, FP16, accumulators
from golden.torch.amp.yaml_configuration import precision_from_yaml
from golden.torch.products.operators import registered
from golden.torch.settings.half_type import half_named
from golden.torch.settings.plan import plan_of, rule_of
from golden.torch.settings.reductions import reduction_in
from golden.torch.training.identity import precision_settings

pytestmark = pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")


def small_tensors(*shapes):
    """Values whose products lie around the smallest normal number of float16, and a few that are subnormal in it."""
    generator = torch.Generator().manual_seed(3)
    found = [torch.randn(shape, generator=generator) * 2.0**-7 for shape in shapes]
    for each in found:
        each.view(-1)[::5] *= 2.0**-9
    return [each.requires_grad_() for each in found]


def same(x, y):
    return torch.equal(x.detach().to(torch.float32).view(torch.int32), y.to(torch.float32).view(torch.int32))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_product_that_flushes_is_goldens_forward_and_backward(level):
    x, w = small_tensors((5, 40), (40, 7))
    with cstorch.precision("float16", level=level, subnormals="flush"):
        y = x @ w
    gradient = torch.full_like(y, 0.37)
    y.backward(gradient)
    with cstorch.precision("float16", level=level):
        kept = x.detach() @ w.detach()
    a, b, g = (golden.encode(each.detach().to(torch.float32).numpy(), FP16) for each in (x, w, gradient))
    options = {"operand": FP16, "level": level, "out": FP16, "subnormals": "flush"}

    def wanted(left, right):
        return torch.from_numpy(golden.decode(golden.matmul(left, right, **options), FP16))

    assert same(y, wanted(a, b))
    assert same(x.grad, wanted(g, b.T))
    assert same(w.grad, wanted(a.T, g))
    assert not torch.equal(y, kept)


def test_convolutions_that_flush_are_products_of_windows_that_do():
    x, kernels, depthwise = (each.detach() for each in small_tensors((2, 4, 6, 6), (3, 4, 3, 3), (4, 1, 3, 3)))
    with cstorch.precision("cbfloat16", level=2, subnormals="flush"):
        y = F.conv2d(x * 2.0**-9, kernels * 2.0**-8)
        each = F.conv2d(x * 2.0**-9, depthwise * 2.0**-8, groups=4)
        spread = F.conv_transpose2d(x * 2.0**-9, kernels.swapaxes(0, 1).contiguous() * 2.0**-8)
    options = {"operand": CBFLOAT16, "level": 2, "out": CBFLOAT16, "subnormals": "flush"}
    windows = F.unfold(x * 2.0**-9, 3).numpy()
    wanted = golden.matmul_values(kernels.reshape(3, -1).numpy() * np.float32(2.0**-8), windows, **options)
    assert same(y, torch.from_numpy(wanted).reshape(y.shape))
    apart = windows.reshape(2, 4, 9, 16)
    wanted = golden.matmul_values(depthwise.reshape(4, 1, 9).numpy() * np.float32(2.0**-8), apart, **options)
    assert same(each, torch.from_numpy(wanted).reshape(each.shape))
    for result in (y, each, spread):
        size = result.abs()
        assert not ((size > 0) & (size < 2.0**-30)).any()
        assert (size == 0).any()


def test_plan_of_a_rule_that_flushes_has_it_in_its_lines_and_one_that_keeps_has_not():
    half = half_named("bfloat16")
    flushing, keeping = rule_of("nearest_even", "up", "flush"), rule_of("nearest_even", "up")
    for level in (0, 1, 2):
        assert reduction_in(str(plan_of(half, level, level, 32, flushing).reduction)).flushes
        assert plan_of(half, level, level, 32, flushing).of_sums.reduction.flushes
        assert "subnormals" not in str(plan_of(half, level, level, 32, keeping).reduction)
    stochastic = plan_of(half, 1, 1, 32, rule_of("stochastic", "stochastic", "flush"))
    assert reduction_in(str(stochastic.drawn(golden.Randomness(seed=3)).reduction)).flushes


def test_wrong_choice_and_a_machine_with_a_rule_of_its_own_are_named():
    with pytest.raises(ValueError, match="subnormals: got 'drop', must be 'keep' or 'flush'"):
        cstorch.precision("float16", subnormals="drop")
    with pytest.raises(ValueError, match="subnormals: got 'flush', must be 'keep'"):
        cstorch.precision("float16", reduction=accumulators["nvidia_hopper"], subnormals="flush")


def test_mixed_precision_from_yaml_that_flushes_computes_flushed_products(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(
        "trainer: {init: {precision: {fp16_type: float16, subnormals: flush, loss_scaling_factor: dynamic}}}"
    )
    settings = precision_from_yaml(path)
    x = torch.tensor([[2.0**-14]])
    y = torch.tensor([[0.5]])
    with settings.autocast():
        assert not cstorch.matmul(x, y).any()
    with replace(settings, subnormals="keep").autocast():
        assert cstorch.matmul(x, y).item() == 2.0**-15
    assert precision_settings(settings)["subnormals"] == "flush"
    assert "subnormals" not in precision_settings(replace(settings, subnormals="keep"))
    with pytest.raises(ValueError, match="subnormals: got 'drop', must be 'keep' or 'flush'"):
        replace(settings, subnormals="drop")


def test_card_refuses_a_product_that_flushes_and_says_who_computes_it():
    class OnACard:
        is_cuda = True

    rule = rule_of("nearest_even", "nearest_even", "flush")
    line = str(plan_of(half_named("float16"), 1, 1, 32, rule).reduction)
    with pytest.raises(NotImplementedError, match=r"subnormals: got 'flush' .* golden.backend\('numpy'\)"):
        registered._on_a_card("matrix_product", OnACard(), None, None, reduction_in(line), torch.float16)
