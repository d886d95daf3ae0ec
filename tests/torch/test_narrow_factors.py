"""Products whose factors are in 8 bits and fewer, with sums and results in 16 bits: forward and backward."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch
from golden import CBFLOAT16, Reduction
from golden.formats import BF16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E5M2FNUZ, FloatFormat
from golden.torch.settings.half_type import HalfType
from golden.torch.settings.plan import plan_of
from golden.torch.settings.reductions import reduction_in

from .oracle import array, normal

FORMATS = [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E5M2FNUZ, FLOAT4_E2M1FN, FloatFormat("e3m4", 3, 4)]
EACH = pytest.mark.parametrize("fmt", FORMATS, ids=str)
INNER = pytest.mark.parametrize("inner", ["cbfloat16", "bfloat16", "float16"])


def exact(a, b, fmt, inner, level, initial=None, **modes):
    """Return the values of the product of two tensors or arrays by golden.matmul, on codes."""
    half = golden.format_named(inner)
    plan = Reduction.for_level(level, fmt, chunk=4, inner=half)
    x, y = (golden.encode(array(each) if torch.is_tensor(each) else each, fmt) for each in (a, b))
    start = None if initial is None else golden.encode(golden.quantize(array(initial), half), plan.outer)
    codes = golden.matmul(x, y, operand=fmt, reduction=plan, initial=start, out=half, **modes)
    return golden.decode(codes, half)


def assert_values(tensor, wanted):
    np.testing.assert_array_equal(array(tensor).view(np.uint32), np.ascontiguousarray(wanted).view(np.uint32))


@EACH
@INNER
@pytest.mark.parametrize("level", [0, 1, 2])
def test_linear_of_narrow_factors_is_goldens_forward_and_backward(fmt, inner, level):
    x, weight = normal(5, 9, seed=1, grad=True), normal(4, 9, seed=2, grad=True)
    bias, upstream = normal(4, seed=3, grad=True), normal(5, 4, seed=4)
    with cstorch.precision(fmt, level, chunk=4, inner=inner):
        result = F.linear(x, weight, bias)
        result.backward(upstream.to(result.dtype))
    upstream = upstream.to(result.dtype).float()
    assert result.dtype == cstorch.precision(inner)._half.dtype
    assert_values(result, exact(x, weight.T, fmt, inner, level, bias))
    assert_values(x.grad, exact(upstream, weight, fmt, inner, level))
    assert_values(weight.grad, exact(upstream.T, x, fmt, inner, level))
    # Sums without products keep their 16 bits.
    half = golden.format_named(inner)
    assert_values(bias.grad, exact(np.ones((1, 5), np.float32), upstream, half, inner, 0)[0])


@EACH
def test_convolution_of_narrow_factors_is_goldens(fmt):
    x, kernel = normal(1, 2, 7, seed=5), normal(3, 2, 3, seed=6)
    with cstorch.precision(fmt, 2, chunk=4, inner="bfloat16"):
        result = F.conv1d(x, kernel)
    columns = x[0].unfold(1, 3, 1).permute(0, 2, 1).reshape(6, 5)
    assert_values(result[0], exact(kernel.reshape(3, 6), columns, fmt, "bfloat16", 2))


def test_narrow_factors_in_a_mode_are_goldens():
    x, y = normal(5, 40, seed=7), normal(40, 6, seed=8)
    with cstorch.precision("float8_e4m3fn", 2, chunk=4, inner="bfloat16", rounding="stochastic", seed=9):
        result = x @ y
    assert_values(result, exact(x, y, FLOAT8_E4M3FN, "bfloat16", 2, rounding="stochastic", seed=9))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_half_type_may_be_a_narrow_dtype_of_pytorch(dtype):
    x = normal(3, 4, seed=10)
    with cstorch.precision(dtype):
        assert cstorch.get_half_dtype_str() == str(dtype).removeprefix("torch.")
        narrow = x @ x.T
    rounded = x.to(dtype).float()
    with cstorch.precision("cbfloat16"):
        assert torch.equal(narrow, rounded @ rounded.T)


def test_set_half_dtype_of_narrow_factors_gives_the_dtype_of_the_sums():
    assert cstorch.set_half_dtype("float8_e5m2", inner="bfloat16") is torch.bfloat16
    assert cstorch.set_half_dtype("float8_e5m2") is torch.float32


@pytest.mark.parametrize("modes", [("nearest_even", "nearest_even"), ("stochastic", "up", golden.Randomness(seed=3))])
@pytest.mark.parametrize("operand", [None, *FORMATS], ids=str)
def test_line_of_a_plan_names_its_factors_again(operand, modes):
    half = HalfType(CBFLOAT16, torch.float32, operand=operand)
    rule = dict(zip(("rounding", "out_rounding", "random"), modes, strict=False))
    plan = plan_of(half, 1, 2, 16, str(golden.Reduction(**rule)))
    whole = reduction_in(str(plan.reduction))
    assert (whole, str(whole)) == (plan.reduction, str(plan.reduction))
    assert (whole.out, whole.operand, str(whole.rounding)) == (CBFLOAT16, operand or CBFLOAT16, modes[0])
    assert (str(whole.out_rounding), whole.random) == (modes[1], None if len(modes) == 2 else modes[2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"half": "bfloat16", "inner": "cbfloat16"}, r"^inner: got 'cbfloat16', must be None: half='bfloat16'"),
        ({"half": "float8_e5m2", "inner": "float8_e5m2"}, r"^inner: got 'float8_e5m2', must be a format of 16 bits"),
        ({"half": "float8_e5m2", "inner": "float32"}, r"^inner: got 'float32', must be 'float16', "),
        ({"inner": "bfloat16"}, r"^inner: got 'bfloat16' without half, must come with a half"),
    ],
)
def test_precision_inner_that_fits_no_factors_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        cstorch.precision(**given)


def test_trainer_with_factors_in_8_bits_learns():
    torch.manual_seed(11)
    x = torch.randn(64, 8)
    data = [(x, (x[:, :1] > 0).float())] * 30
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    settings = cstorch.MixedPrecision(
        fp16_type="float8_e4m3fn", inner="bfloat16", loss_scaling_factor="dynamic", initial_loss_scale=2.0**7
    )
    trainer = cstorch.Trainer(
        model, torch.optim.AdamW(model.parameters(), lr=0.02), F.binary_cross_entropy_with_logits, settings,
        progress=False,
    )  # fmt: skip
    losses = trainer.fit(data, steps=30)
    assert losses[-1] < 0.5 * losses[0]
    assert BF16.name == settings.inner
