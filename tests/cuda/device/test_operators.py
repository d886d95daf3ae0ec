"""Every operator on a card has the bits of the CPU, forward and backward, and refuses the same calls as the CPU."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch
from tests.cuda.device.card import IN_MEMORY, waits
from tests.cuda.device.judge import differing, on_both
from tests.zoo.layers import SPECIALS

HALVES = ("cbfloat16", "bfloat16", "float16", "cb16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")

LINE = "operand=cbfloat16 inner=cbfloat16 chunk=32 outer=float32 out=cbfloat16"


def values(*shape, seed=0, specials=False, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator) * torch.exp2(torch.randint(-6, 7, shape, generator=generator))
    if specials:
        places = torch.rand(shape, generator=generator) < 0.02
        drawn = torch.tensor(SPECIALS)[torch.randint(len(SPECIALS), shape, generator=generator)]
        x = torch.where(places, drawn, x)
    return x.to(dtype).requires_grad_()


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("half", HALVES)
def test_linear_in_every_format_and_level_is_that_of_the_cpu(half, level):
    given = values(9, 70, seed=1), values(11, 70, seed=2), values(11, seed=3)
    with cstorch.precision(half, level):
        assert on_both(F.linear, *given) == []


@pytest.mark.parametrize("half", ["cbfloat16", "bfloat16", "float16"])
def test_product_of_specials_is_that_of_the_cpu(half):
    given = values(33, 40, seed=4, specials=True), values(40, 35, seed=5, specials=True)
    with cstorch.precision(half, 1):
        assert on_both(torch.matmul, *given) == []


@pytest.mark.parametrize(
    ("a", "b"),
    [((5,), (5,)), ((3, 5), (5,)), ((0, 5), (5, 4)), ((3, 0), (0, 4)), ((2, 1, 3, 5), (4, 5, 2)),
     ((2, 1, 2, 1, 2, 3, 4), (1, 2, 1, 2, 1, 4, 3)), ((130, 17), (17, 129))],
)  # fmt: skip
def test_product_of_any_shape_is_that_of_the_cpu(a, b):
    with cstorch.precision("cbfloat16", 1, chunk=4):
        assert on_both(torch.matmul, values(*a, seed=6), values(*b, seed=7)) == []


@pytest.mark.parametrize(
    "view",
    [lambda x: x.mT, lambda x: x[:, ::3], lambda x: x.flip(0), lambda x: x[:1].expand(8, 24), lambda x: x[2:, 1:],
     lambda x: torch._neg_view(x)],
)  # fmt: skip
def test_product_of_any_view_is_that_of_the_cpu(view):
    def run(x, y):
        rows = view(x)
        return torch.matmul(rows, y[: rows.shape[1]])

    with cstorch.precision("cbfloat16", 0):
        assert on_both(run, values(8, 24, seed=8), values(24, 5, seed=9)) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("half", "proxy"), [("cbfloat16", torch.float16), ("bfloat16", None), ("float16", None)])
def test_product_of_16_bit_tensors_is_that_of_the_cpu(half, proxy, dtype):
    with cstorch.precision(half, 1, proxy=proxy):
        assert on_both(F.linear, values(6, 40, seed=10, dtype=dtype), values(7, 40, seed=11)) == []


@pytest.mark.parametrize("mode", ["toward_zero", "down", "nearest_away", "to_odd", "stochastic"])
def test_product_in_every_mode_is_that_of_the_cpu(mode):
    given = values(2, 6, 40, seed=12), values(2, 40, 5, seed=13)
    found = []
    for device in ("cuda", "cpu"):
        with cstorch.precision("cbfloat16", 1, rounding=mode, seed=3):
            a, b = (each.detach().to(device).requires_grad_() for each in given)
            result = torch.bmm(a, b)
            result.sum().backward()
        found.append((result, a.grad, b.grad))
    assert [differing(*pair) for pair in zip(*found, strict=True)] == [None] * 3


CONVOLUTIONS = {
    "conv1d": (F.conv1d, (2, 6, 15), (4, 3, 4), {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}),
    "conv2d": (F.conv2d, (2, 3, 9, 8), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 2)}),
    "conv2d depthwise": (F.conv2d, (2, 4, 7, 7), (4, 1, 3, 3), {"groups": 4, "padding": "same"}),
    "conv3d": (F.conv3d, (1, 2, 4, 5, 4), (3, 2, 2, 2, 2), {}),
    "transposed": (F.conv_transpose2d, (2, 4, 5, 4), (4, 3, 3, 2), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed groups": (F.conv_transpose1d, (2, 4, 6), (4, 2, 3), {"groups": 2, "dilation": 2, "stride": 3}),
}


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_is_that_of_the_cpu(name, rounding):
    function, x, weight, options = CONVOLUTIONS[name]
    outputs = weight[0] if "transposed" not in name else weight[1] * options.get("groups", 1)
    given = values(*x, seed=14), values(*weight, seed=15), values(outputs, seed=16)
    with cstorch.precision("cbfloat16", 1, rounding=rounding) as context:

        def run(*tensors):
            context.products = 0  # the same random bits on both devices
            return function(*tensors, **options)

        assert on_both(run, *given) == []


@pytest.mark.parametrize("half", ["cbfloat16", "bfloat16", "float16"])
def test_softmax_and_rounding_are_those_of_the_cpu(half):
    def run(x):
        return torch.ops.cbfloat.softmax16(torch.ops.cbfloat.rounded(x, half, torch.float32), half, torch.float32)

    assert on_both(run, values(70, 130, seed=17).detach()) == []
    assert on_both(run, values(40, 30, seed=18, specials=True).detach()) == []
    assert on_both(run, torch.empty(0, 3)) == []


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}])
def test_attention_is_that_of_the_cpu(options):
    given = [values(2, 2, 7, 16, seed=19 + number) for number in range(3)]
    if not IN_MEMORY:  # the gradient of a softmax is a sum in fp32 by PyTorch, in the order that a card likes
        given = [each.detach() for each in given]
    with cstorch.precision("cbfloat16", 2):
        assert on_both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), *given) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("element", ["float8_e4m3fn", "float8_e5m2", "float6_e3m2fn", "float4_e2m1fn", "bfloat16"])
def test_blocks_and_their_gradients_are_those_of_the_cpu_and_wait_for_nothing(element, dtype):
    x, small = values(6, 3, 45, seed=30, specials=True, dtype=dtype), values(7, seed=31).detach() * 1e-39
    assert on_both(partial(cstorch.mx.fake_quantize, element=element), small.to(dtype)) == []
    for axis, block in ((-1, 32), (0, 4), (1, 100), (-1, 1)):
        options = {"element": element, "gradient_element": "float8_e5m2", "axis": axis, "block": block}
        assert on_both(partial(cstorch.mx.fake_quantize, **options), x) == []
    for view in (lambda x: x.mT, lambda x: x[::2, :, 3:], torch._neg_view, lambda x: x[:0]):
        assert on_both(lambda x, view=view: cstorch.mx.fake_quantize(view(x), element), x) == []
    on_card = x.detach().cuda()
    before = waits()
    cstorch.mx.fake_quantize(on_card, element)
    assert waits() == before


@pytest.mark.parametrize(
    "options",
    [
        {"element": "nvfp4", "gradient_element": "nvfp4"},
        {"element": "float8_e4m3fn", "scale": "round_up"},
        {"element": "float4_e2m1fn", "rounding": "stochastic", "random": golden.Randomness(seed=3)},
    ],
    ids=["nvfp4", "round_up", "stochastic"],
)
def test_blocks_without_a_kernel_are_computed_on_the_cpu_and_come_back(options):
    x = values(6, 3, 45, seed=35, dtype=torch.bfloat16)
    for axis in (-1, 0):
        assert on_both(partial(cstorch.mx.fake_quantize, axis=axis, **options), x) == []


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize(("half", "dtype"), [("cbfloat16", torch.float32), ("bfloat16", torch.bfloat16)])
def test_product_of_blocks_and_its_gradients_are_those_of_the_cpu(half, dtype, level):
    given = values(2, 5, 70, seed=32, dtype=dtype), values(9, 70, seed=33, dtype=dtype), values(9, seed=34, dtype=dtype)
    for options in ({}, {"element": "float4_e2m1fn", "gradient_element": "float8_e5m2", "block": 16}):
        with cstorch.precision(half, level):
            assert on_both(partial(cstorch.mx.linear, **options), *given) == []


def test_groups_and_grids_are_those_of_the_cpu():
    with cstorch.precision("cbfloat16", 1):
        ends = torch.tensor([2, 2, 7], dtype=torch.int32)
        operands = values(8, 16, seed=22), values(3, 16, 8, seed=23)
        assert on_both(lambda a, b, offs: F.grouped_mm(a, b, offs=offs), *operands, ends) == []
        assert on_both(lambda theta: F.affine_grid(theta, [2, 3, 5, 4], align_corners=False), values(2, 2, 3)) == []


@pytest.mark.parametrize("machine", golden.accumulators)
def test_sums_of_another_machine_are_those_of_the_cpu_and_wait_for_nothing(machine):
    narrow = golden.accumulators[machine].operand_bits == 8
    given = values(2, 5, 40, seed=26, specials=True), values(6, 40, seed=27), values(6, seed=28)
    half, options = ("float8_e4m3fn", {"inner": "float16"}) if narrow else ("float16", {})
    with cstorch.precision(half, reduction=machine, **options):
        assert on_both(F.linear, *given) == []
        on_card = [each.detach().cuda() for each in given]
        before = waits()
        F.linear(*on_card)
        assert waits() == before


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("options", [{}, {"out_rounding": "toward_zero"}, {"out_rounding": "stochastic", "seed": 3}])
def test_convolution_by_another_machine_is_that_of_the_cpu(name, options):
    function, x, weight, given = CONVOLUTIONS[name]
    outputs = weight[0] if "transposed" not in name else weight[1] * given.get("groups", 1)
    tensors = values(*x, seed=14), values(*weight, seed=15), values(outputs, seed=16)
    with cstorch.precision("bfloat16", reduction="nvidia_hopper", **options) as context:

        def run(*tensors):
            context.products = 0  # the same random bits on both devices
            return function(*tensors, **given)

        assert on_both(run, *tensors) == []


def test_operands_on_two_devices_are_refused_by_name():
    x, weight = torch.ones(2, 3, device="cuda"), torch.ones(4, 3)
    with pytest.raises(ValueError, match=r"^x, weight: got tensors on cuda:0, cpu, must be on one device; move them"):
        cstorch.linear(x, weight)
    with pytest.raises(ValueError, match=r"^x, weight, bias: got tensors on cuda:0, cuda:0, cpu"):
        cstorch.linear(x, weight.cuda(), torch.ones(4))
    with pytest.raises(ValueError, match=r"^a, b: got tensors on cuda:0, cpu"):
        torch.ops.cbfloat.matrix_product(x, weight.T, None, LINE, torch.float32)
    with pytest.raises(ValueError, match=r"^x, weight: got tensors on cuda:0, cpu"):
        cstorch.conv2d(torch.ones(1, 1, 3, 3, device="cuda"), torch.ones(1, 1, 2, 2))
    with pytest.raises(TypeError, match=r"^x: got a tensor of torch.float64"):
        cstorch.matmul(x.double(), x.T)


def test_product_without_an_exact_path_is_refused_forward_and_backward():
    x = torch.ones(3, 3, device="cuda", requires_grad=True)
    with cstorch.precision("cbfloat16"), pytest.raises(NotImplementedError, match="cdist"):
        torch.cdist(x, x)

    class Bypass(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return torch.ops.aten.mm(gradient, ctx.saved_tensors[0])

    with cstorch.precision("cbfloat16"):
        y = Bypass.apply(x)
    with pytest.raises(NotImplementedError, match="mm: has no exact path"):
        y.sum().backward()
