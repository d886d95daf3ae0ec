"""Convolutions and transposed ones of one to three axes: gathered, multiplied and added element by element."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch

from .oracle import NAMES, assert_codes, assert_same_tensors, codes, normal, product, sum_of_codes

HALF, LEVEL, CHUNK = "cbfloat16", 1, 5


def values(given):
    return torch.from_numpy(golden.decode(given, HALF))


def axes(value, count):
    return (value,) * count if isinstance(value, int) else value


def triples(case, count):
    return [axes(case.get(name, default), count) for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))]


def windows(x, size, counts, case):
    """Rows of (batch, position) by columns of (channel, place in the kernel); zero beyond the input."""
    stride, padding, dilation = triples(case, len(size))
    rows = []
    for item, *position in itertools.product(range(len(x)), *map(range, counts)):
        row = []
        for channel, *place in itertools.product(range(x.shape[1]), *map(range, size)):
            at = [p * s - b + k * d for p, s, b, k, d in zip(position, stride, padding, place, dilation, strict=True)]
            inside = all(0 <= a < n for a, n in zip(at, x.shape[2:], strict=True))
            row.append(x[(item, channel, *at)].item() if inside else 0.0)
        rows.append(row)
    return torch.tensor(rows)


def added_up(every, shape, size, counts, case):
    """Products (batch, position) by (channel, place), added in fp32 in the order of places."""
    stride, padding, dilation = triples(case, len(size))
    total = torch.zeros(shape)
    every = every.reshape(shape[0], *counts, shape[1], *size)
    for place in itertools.product(*map(range, size)):
        for item, *position in itertools.product(range(shape[0]), *map(range, counts)):
            at = [p * s - b + k * d for p, s, b, k, d in zip(position, stride, padding, place, dilation, strict=True)]
            if all(0 <= a < n for a, n in zip(at, shape[2:], strict=True)):
                for channel in range(shape[1]):
                    total[(item, channel, *at)] += every[(item, *position, channel, *place)]
    return total


def rows_of(x, channels):
    """(B, C, ...) to (batch, position) by channel."""
    return x.movedim(1, -1).reshape(-1, channels)


def both_passes(name, x, weight, bias, case):
    """Run a convolution forward and backward; return its result and the gradient that went in."""
    function, ours = (getattr(module, f"{name}{x.ndim - 2}d") for module in (F, cstorch))
    with cstorch.precision(HALF, LEVEL, chunk=CHUNK):
        result = function(x, weight, bias, **case)
        assert_same_tensors(ours(x, weight, bias, **case), result)
    plain = function(x, weight, bias, **case)
    assert result.shape == plain.shape
    assert result.is_contiguous()
    assert (result - plain).abs().max() < 0.05 * plain.abs().max()
    upstream = normal(*result.shape, seed=4)
    result.backward(upstream)
    return result, upstream


CONVOLUTIONS = [
    {"size": (3, 2)},
    {"size": (3, 2), "stride": 2},
    {"size": (3, 2), "stride": (1, 2), "padding": (2, 1)},
    {"size": (3, 2), "padding": 1, "dilation": (2, 1)},
    {"size": (3, 2), "groups": 2},
    {"size": (3, 2), "groups": 2, "stride": 2, "padding": 1},
    {"size": (2, 3, 2)},
    {"size": (2, 2, 3), "stride": (1, 2, 2), "padding": (1, 0, 2), "dilation": (2, 1, 1), "groups": 2},
    {"size": (2, 2), "groups": 4, "stride": 2, "padding": 1},  # depthwise
    {"size": (3,), "groups": 4, "dilation": 2},
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution_of_any_axes_and_its_gradients_are_reductions_over_windows(case):
    case = dict(case)
    size, groups = case.pop("size"), case.get("groups", 1)
    x = normal(2, 4, *(5, 4, 6)[: len(size)], seed=1, grad=True)
    weight, bias = normal(8, 4 // groups, *size, seed=2, grad=True), normal(8, seed=3, grad=True)
    result, upstream = both_passes("conv", x, weight, bias, case)
    counts = result.shape[2:]
    for group in range(groups):
        outputs = slice(group * 8 // groups, (group + 1) * 8 // groups)
        channels = slice(group * 4 // groups, (group + 1) * 4 // groups)
        rows = windows(x.detach()[:, channels], size, counts, case)
        kernels = weight.detach()[outputs].flatten(1)
        wanted = product(rows, kernels.T, HALF, LEVEL, CHUNK, bias[outputs])
        assert_codes(rows_of(result[:, outputs], 8 // groups), wanted, HALF)
        gradients = rows_of(upstream[:, outputs], 8 // groups)
        wanted = product(gradients.T, rows, HALF, LEVEL, CHUNK)
        assert_codes(weight.grad[outputs].flatten(1), wanted, HALF)
        every = values(product(gradients, kernels, HALF, LEVEL, CHUNK))
        total = added_up(every, x[:, channels].shape, size, counts, case)
        assert_codes(x.grad[:, channels], codes(total, HALF), HALF)
    assert_codes(bias.grad, sum_of_codes(codes(rows_of(upstream, 8), HALF), HALF), HALF)


@pytest.mark.parametrize("half", NAMES)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_conv1d_is_a_reduction_over_channel_then_column(half, level):
    x, weight, bias = normal(3, 8, 12, seed=5), normal(4, 8, 3, seed=6), normal(4, seed=7)
    with cstorch.precision(half, level, chunk=8):
        got = cstorch.conv1d(x, weight, bias, stride=2, padding=1)
    rows = windows(x, (3,), got.shape[2:], {"stride": 2, "padding": 1})
    assert got.shape == (3, 4, 6)
    assert_codes(rows_of(got, 4), product(rows, weight.flatten(1).T, half, level, 8, bias), half)


@pytest.mark.parametrize("size", [(3, 3), (2, 4), (1, 5)])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_convolutions_with_padding_by_name_have_the_sides_of_pytorch(size):
    # Integers below 256: PyTorch's own result is exact, too.
    x = torch.arange(30.0).reshape(1, 1, 5, 6).fmod(7)
    weight = torch.arange(1.0, 1 + math.prod(size)).reshape(1, 1, *size).fmod(3)
    for given in ({"padding": "same", "dilation": 2}, {"padding": "same"}, {"padding": "valid"}):
        assert_same_tensors(cstorch.conv2d(x, weight, **given).float(), F.conv2d(x, weight, **given))
        line, kernel = x[:, :, 0], weight[:, :, 0]
        assert_same_tensors(cstorch.conv1d(line, kernel, **given).float(), F.conv1d(line, kernel, **given))


def test_conv2d_of_one_item_or_none():
    x, weight = normal(2, 4, 4, seed=8), normal(3, 2, 3, 3, seed=9)
    assert_same_tensors(cstorch.conv2d(x, weight), cstorch.conv2d(x[None], weight)[0])
    assert cstorch.conv2d(x[None][:0], weight).shape == (0, 3, 2, 2)
    assert_same_tensors(
        cstorch.conv1d(x[0], weight[:, :, 0].repeat(1, 2, 1)), cstorch.conv1d(x[:1], weight[:, :, 0].repeat(1, 2, 1))[0]
    )


TRANSPOSED = [
    {"size": (3,), "stride": 3, "padding": 1, "output_padding": 2},
    {"size": (3, 2), "stride": (2, 1), "output_padding": (1, 0), "groups": 2},
    {"size": (2, 3), "dilation": (3, 1), "padding": (1, 2), "output_padding": (2, 0)},
    {"size": (2, 1, 2), "stride": (1, 2, 2), "padding": (0, 0, 1)},
    {"size": (2, 2), "groups": 4, "stride": 2},
]


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed_convolution_and_its_gradients_are_products_over_windows(case):
    given = dict(case)
    size, groups = given.pop("size"), given.get("groups", 1)
    x = normal(2, 4, *(3, 4, 2)[: len(size)], seed=5, grad=True)
    weight, bias = normal(4, 8 // groups, *size, seed=6, grad=True), normal(8, seed=7, grad=True)
    result, upstream = both_passes("conv_transpose", x, weight, bias, given)
    counts = x.shape[2:]
    bias_values = values(codes(bias, HALF)).reshape(-1, *(1 for _ in size))
    for group in range(groups):
        inputs, outputs = (slice(group * n // groups, (group + 1) * n // groups) for n in (4, 8))
        gradients, kernels = rows_of(x.detach()[:, inputs], 4 // groups), weight.detach()[inputs].flatten(1)
        every = values(product(gradients, kernels, HALF, LEVEL, CHUNK))
        total = added_up(every, result[:, outputs].shape, size, counts, case)
        assert_codes(result[:, outputs], codes(total + bias_values[outputs], HALF), HALF)
        rows = windows(upstream[:, outputs], size, counts, case)
        wanted = product(rows, kernels.T, HALF, LEVEL, CHUNK)
        assert_codes(rows_of(x.grad[:, inputs], 4 // groups), wanted, HALF)
        wanted = product(gradients.T, rows, HALF, LEVEL, CHUNK)
        assert_codes(weight.grad[inputs].flatten(1), wanted, HALF)
    assert_codes(bias.grad, sum_of_codes(codes(rows_of(upstream, 8), HALF), HALF), HALF)


def test_convolution_second_derivatives_are_exact_products_too():
    x, weight, upstream = normal(2, 2, 5, seed=9, grad=True), normal(3, 2, 2, seed=10, grad=True), normal(2, 3, 4)
    upstream.requires_grad_()
    outer = normal(3, 2, 2, seed=11)
    with cstorch.precision(HALF, LEVEL, chunk=CHUNK):
        result = F.conv1d(x, weight)
        (of_weight,) = torch.autograd.grad(result, weight, upstream, create_graph=True)
        of_upstream, of_x = torch.autograd.grad(of_weight, [upstream, x], outer)
        # of_weight is bilinear in x and upstream: its derivatives are a convolution and a transposed one by `outer`.
        assert_same_tensors(of_upstream, F.conv1d(x, outer).detach())
        assert_same_tensors(of_x, F.conv_transpose1d(upstream, outer).detach())
        of_transposed = F.conv_transpose1d(upstream, weight)
        (first,) = torch.autograd.grad(of_transposed, upstream, x, create_graph=True)
        assert_same_tensors(first.detach(), result.detach())


def test_transposed_convolution_adds_overlaps_in_the_order_of_the_kernel_in_fp32():
    # 2^24 + 1 is 2^24 in fp32: of the four addends in this order nothing is left, and backwards 2.
    weight = torch.tensor([[[2.0**24, 1.0, 1.0, -(2.0**24)]]])
    with cstorch.precision(HALF):
        result = F.conv_transpose1d(torch.ones(1, 1, 4), weight)
    assert result.flatten().tolist()[3] == 0.0


def test_transposed_convolution_of_many_items_is_that_of_each(monkeypatch):
    monkeypatch.setattr("golden.torch.products.windows.MOST_VALUES", 100)
    x, weight = normal(5, 2, 4, seed=12), normal(2, 3, 3, seed=13)
    with cstorch.precision("bfloat16"):
        together = F.conv_transpose1d(x, weight)
        assert_same_tensors(together, torch.stack([F.conv_transpose1d(each, weight) for each in x]))


def test_transposed_convolution_without_memory_for_its_result_names_the_stride():
    with pytest.raises(MemoryError, match=r"^stride: got 1048576, 1048576, must be smaller: there is no memory for"):
        cstorch.conv_transpose2d(torch.ones(1, 1, 5, 5), torch.ones(1, 2, 3, 3), stride=2**20)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda x, weight: cstorch.conv2d(x, weight, padding=2**20), "padding: got 1048576"),
        (lambda x, weight: cstorch.conv_transpose2d(x, weight, dilation=2**20), "dilation: got 1048576"),
        (lambda x, weight: cstorch.conv_transpose2d(x, weight, stride=2**31 - 1), "stride: got 2147483647"),
    ],
    ids=["padding", "dilation", "stride whose bytes are no int64"],
)
def test_convolution_without_memory_names_what_asks_for_the_most(call, named):
    with pytest.raises(MemoryError, match=rf"^{named}, .* must be smaller: there is no memory for so many values$"):
        call(torch.ones(1, 1, 5, 5), torch.ones(1, 1, 3, 3))


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (
            lambda x, w, b: torch.convolution(x, w, b, [2], [1], [1], False, [0], 1),
            lambda x, w, b: F.conv1d(x, w, b, 2, 1),
        ),
        (
            lambda x, w, b: torch.convolution(input=x, weight=w.mT[:, :4].mT.movedim(0, 1), bias=None, stride=[2],
                                              padding=[1], dilation=[1], transposed=True, output_padding=[1], groups=1),
            lambda x, w, b: F.conv_transpose1d(x, w.movedim(0, 1), None, 2, 1, 1),
        ),
        (
            lambda x, w, b: torch.conv_tbc(x.permute(2, 0, 1), w.permute(2, 1, 0), b, 1).permute(1, 2, 0),
            lambda x, w, b: F.conv1d(x, w, b, 1, 1),
        ),
        (lambda x, w, b: F.conv1d(input=x, weight=w, bias=b), lambda x, w, b: F.conv1d(x, w, b)),
    ],
)  # fmt: skip
def test_other_names_of_convolutions_are_the_same(call, wanted):
    given = normal(2, 4, 6, seed=14), normal(3, 4, 2, seed=15), normal(3, seed=16)
    with cstorch.precision(HALF):
        got, exact = call(*given), wanted(*given)
    assert_same_tensors(got, exact)
    assert (got != wanted(*given)).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": torch.ones(3, 5, 3, 3)}, r"^groups: got 1 for 2 input channels and weight \(3, 5, 3, 3\)"),
        ({"groups": 2}, r"^groups: got 2 for 2 input channels"),
        ({"groups": 0}, r"^groups: got 0"),
        ({"weight": torch.ones(3, 2, 3)}, r"^x, weight: got shapes \(1, 2, 4, 4\) and \(3, 2, 3\), must have 4 axes"),
        ({"bias": torch.ones(2)}, r"^bias: got shape \(2,\), must be \(3,\)"),
        ({"stride": 0}, r"^stride: got 0, must be an int of at least 1"),
        ({"dilation": (1, 1, 1)}, r"^dilation: got \(1, 1, 1\), must be an int of at least 1, or 2 of them"),
        ({"padding": -1}, r"^padding: got -1"),
        ({"padding": "full"}, r"^padding: got 'full', must be 'valid', 'same'"),
        ({"padding": "same", "stride": 2}, r"^padding: got 'same' with stride \(2, 2\)"),
        ({"weight": torch.ones(3, 2, 5, 3)}, r"^weight: got kernels that reach over \(5, 3\), must fit .* \(4, 4\)"),
    ],
)
def test_conv2d_of_bad_arguments_names_them(arguments, message):
    given = {"weight": torch.ones(3, 2, 3, 3), **arguments}
    with pytest.raises(ValueError, match=message):
        cstorch.conv2d(torch.ones(1, 2, 4, 4), **given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": torch.ones(3, 2, 2, 2)}, r"^groups: got 1 for 4 input channels and weight \(3, 2, 2, 2\)"),
        ({"groups": 3}, r"^groups: got 3"),
        ({"bias": torch.ones(3)}, r"^bias: got shape \(3,\), must be \(2,\)"),
        ({"output_padding": 1}, r"^output_padding: got \(1, 1\), must be smaller than stride \(1, 1\) or dilation"),
        ({"padding": 4}, r"^padding: got \(4, 4\), must leave a part of the result of \(4, 4\)"),
        ({"weight": torch.ones(4, 2, 2)}, r"^x, weight: got shapes \(1, 4, 3, 3\) and \(4, 2, 2\), must have 4 axes"),
    ],
)
def test_transposed_convolution_of_bad_arguments_names_them(arguments, message):
    given = {"weight": torch.ones(4, 2, 2, 2), **arguments}
    with pytest.raises(ValueError, match=message):
        cstorch.conv_transpose2d(torch.ones(1, 4, 3, 3), **given)


def test_depthwise_convolution_is_one_call_of_the_kernels(monkeypatch):
    calls = []
    multiply = golden.kernels.products.matmul_indexed
    monkeypatch.setattr(
        golden.kernels.products, "matmul_indexed", lambda *given: calls.append(given[3].shape) or multiply(*given)
    )
    x, weight = normal(2, 6, 5, 5, seed=17), normal(6, 1, 3, 3, seed=18, grad=True)
    with cstorch.precision(HALF):
        F.conv2d(x, weight, groups=6).sum().backward()
    assert calls == [(12, 1, 9), (6, 1, 9)]
    assert math.prod(weight.grad.shape) == 54


@pytest.mark.parametrize(
    ("half", "x", "wanted"),
    [
        ("cbfloat16", (0x7F800000, 0xFF800000), (0x7F800000, 0x7FC00000, 0xFF800000)),
        ("bfloat16", (0x7F7F0000, 0x7F7F0000), (0x7F7F0000, 0x7F800000, 0x7F7F0000)),
    ],
)
def test_overlaps_of_infinities_and_beyond_the_range_are_results_without_a_warning(half, x, wanted):
    given = torch.tensor(x, dtype=torch.int64).to(torch.int32).view(torch.float32).view(1, 1, 2)
    with cstorch.precision(half, LEVEL):
        got = F.conv_transpose1d(given, torch.ones(1, 1, 2)).float()
    assert [each & 0xFFFFFFFF for each in got.view(torch.int32).flatten().tolist()] == list(wanted)


@pytest.mark.parametrize("mode", ["up", "stochastic"])
def test_overlaps_are_rounded_to_nearest_even_in_any_mode(mode):
    # 1 + 2^-12: up would be 0x3E01.
    x, weight = torch.tensor([[[2.0**-12, 1.0]]]), torch.ones(1, 1, 2)
    with cstorch.precision("cbfloat16", rounding=mode, out_rounding=mode):
        result = torch.nn.functional.conv_transpose1d(x, weight)
    assert [int(code) for code in golden.encode(result.numpy(), "cbfloat16").ravel()] == [0x2600, 0x3E00, 0x3E00]
