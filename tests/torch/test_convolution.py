"""conv1d and conv2d: a convolution written as loops over windows, each a reduction of the contract."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch

from .oracle import NAMES, assert_codes, assert_same_tensors, codes, normal, product, sum_of_codes


def windows(x, size, stride, padding, dilation):
    """Rows of (batch, position) by columns of (channel, kernel row, kernel column), gathered one by one."""
    x = F.pad(x, [padding[1], padding[1], padding[0], padding[0]])
    reach = [d * (n - 1) + 1 for d, n in zip(dilation, size, strict=True)]
    positions = [range(0, n - r + 1, s) for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    rows = [
        [
            x[item, channel, top + row * dilation[0], left + column * dilation[1]]
            for channel, row, column in itertools.product(range(x.shape[1]), *map(range, size))
        ]
        for item, top, left in itertools.product(range(x.shape[0]), *positions)
    ]
    return torch.tensor(rows), [len(each) for each in positions]


CASES = [
    {},
    {"stride": 2},
    {"stride": (1, 2), "padding": (2, 1)},
    {"padding": 1, "dilation": (2, 1)},
    {"groups": 2},
    {"groups": 2, "stride": 2, "padding": 1},
]


def axes(value):
    return (value, value) if isinstance(value, int) else value


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv2d_and_its_gradients_are_reductions_over_gathered_windows(case):
    groups = case.get("groups", 1)
    x = normal(2, 4, 6, 5, seed=1, grad=True)
    weight, bias = normal(6, 4 // groups, 3, 2, seed=2, grad=True), normal(6, seed=3, grad=True)
    with cstorch.precision("cbfloat16", chunk=5):
        result = cstorch.conv2d(x, weight, bias, **case)
    assert result.shape == F.conv2d(x, weight, bias, **case).shape
    assert result.is_contiguous()
    upstream = normal(*result.shape, seed=4)
    result.backward(upstream)
    stride, padding, dilation = (
        axes(case.get(name, d)) for name, d in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    for group in range(groups):
        outputs = slice(group * 6 // groups, (group + 1) * 6 // groups)
        channels = slice(group * 4 // groups, (group + 1) * 4 // groups)
        rows, counts = windows(x.detach()[:, channels], (3, 2), stride, padding, dilation)
        kernels = weight.detach()[outputs].reshape(6 // groups, -1)
        wanted = product(rows, kernels.T, "cbfloat16", 1, 5, bias[outputs])
        got = result[:, outputs].movedim(1, -1).reshape(len(rows), -1)
        assert_codes(got, wanted, "cbfloat16")
        gradients = upstream[:, outputs].movedim(1, -1).reshape(2 * math.prod(counts), -1)
        wanted = product(gradients.T, rows, "cbfloat16", 1, 5)
        assert_codes(weight.grad[outputs].reshape(6 // groups, -1), wanted, "cbfloat16")
        # The input: exact products for every window, added in fp32 where windows overlap, then one rounding.
        every = torch.from_numpy(golden.decode(product(gradients, kernels, "cbfloat16", 1, 5), "cbfloat16"))
        columns = every.reshape(2, math.prod(counts), -1).mT
        summed = F.fold(columns, (6, 5), (3, 2), dilation=dilation, padding=padding, stride=stride)
        assert_codes(x.grad[:, channels], codes(summed, "cbfloat16"), "cbfloat16")
    terms = codes(upstream.movedim(1, -1).reshape(-1, 6), "cbfloat16")
    assert_codes(bias.grad, sum_of_codes(terms, "cbfloat16"), "cbfloat16")


@pytest.mark.parametrize("half", NAMES)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_conv1d_is_a_reduction_over_channel_then_column(half, level):
    x, weight, bias = normal(3, 8, 12, seed=5), normal(4, 8, 3, seed=6), normal(4, seed=7)
    with cstorch.precision(half, level, chunk=8):
        got = cstorch.conv1d(x, weight, bias, stride=2, padding=1)
    rows, counts = windows(x.unsqueeze(2), (1, 3), (1, 2), (0, 1), (1, 1))
    wanted = product(rows, weight.reshape(4, -1).T, half, level, 8, bias)
    assert got.shape == (3, 4, counts[1])
    assert_codes(got.movedim(1, -1).reshape(len(rows), 4), wanted, half)


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
