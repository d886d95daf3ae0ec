"""Products of models in other rounding modes: forward and backward, random bits that repeat and that differ."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import golden
import golden.torch as cstorch
from golden import CBFLOAT16, Rounding
from golden.torch.products import windows
from golden.torch.settings.draws import branched
from golden.torch.settings.reductions import reduction_in

pytestmark = pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
MODES = pytest.mark.parametrize("mode", [mode for mode in Rounding if mode is not Rounding.NEAREST_EVEN], ids=str)


def tensors(*shapes, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def same(x, y):
    return torch.equal(x.detach().contiguous().view(torch.int32), y.detach().contiguous().view(torch.int32))


def precision(mode="stochastic", **options):
    return cstorch.precision(half="cbfloat16", rounding=mode, **options)


@MODES
@pytest.mark.parametrize("out_rounding", ["nearest_even", "up"])
def test_product_in_a_mode_is_goldens_forward_and_backward(mode, out_rounding):
    x, w = tensors((5, 40), (40, 7))
    with precision(mode, level=2, out_rounding=out_rounding, seed=3):
        tensors((1,))  # nothing that multiplies takes a number
        y = x @ w
        later = x @ w
    gradient = torch.full_like(y, 0.37)
    y.backward(gradient)
    a, b, g = (golden.encode(each.detach().numpy(), CBFLOAT16) for each in (x, w, gradient))
    options = {
        "operand": CBFLOAT16, "level": 2, "out": CBFLOAT16, "rounding": mode, "out_rounding": out_rounding, "seed": 3,
    }  # fmt: skip

    def wanted(left, right, **more):
        return torch.from_numpy(golden.decode(golden.matmul(left, right, **options | more), CBFLOAT16))

    assert same(y, wanted(a, b))
    assert same(later, wanted(a, b, seed=3 + 2**32))
    assert same(x.grad, wanted(g, b.T, call=1))
    assert same(w.grad, wanted(a.T, g, call=2))
    nearest = golden.matmul(a, b, **options | {"rounding": "nearest_even"})
    assert not same(y, torch.from_numpy(golden.decode(nearest, CBFLOAT16)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.up = nn.ConvTranspose2d(3, 2, 3)
        self.lstm = nn.LSTM(8, 6, batch_first=True)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        hidden, _ = self.lstm(self.up(self.conv(x)).flatten(0, 1))
        return F.scaled_dot_product_attention(hidden, hidden, hidden) @ self.head.weight.T + self.head.bias


def gradients(context, wrap=lambda function, x: function(x), inside=False):
    torch.manual_seed(4)
    model, x = Model(), torch.randn(2, 2, 8, 8)
    with context:
        loss = wrap(model, x).float().square().sum()
        if inside:
            loss.backward()
    if not inside:
        loss.backward()
    return [loss.detach(), *(each.grad for each in model.parameters())]


def all_same(first, second):
    return all(same(x, y) for x, y in zip(first, second, strict=True))


def test_stochastic_training_repeats_and_differs_by_seed_and_by_entry():
    first, again = precision(seed=5), precision(seed=5)
    results = gradients(first)
    assert all_same(results, gradients(again))
    assert not all_same(results, gradients(precision(seed=6)))
    assert not all_same(results, gradients(first))  # the second time its products have other numbers
    assert all_same(gradients(again), gradients_of_second_entry(5))


def gradients_of_second_entry(seed):
    context = precision(seed=seed)
    gradients(context)
    return gradients(context)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_checkpoint_computes_the_same_bits_again(reentrant, inside):
    def wrap(model, x):
        middle = checkpoint(model, x.requires_grad_(), use_reentrant=reentrant)
        return middle @ torch.ones(4, 2)

    def plain(model, x):
        return model(x) @ torch.ones(4, 2)

    context = precision(seed=7)
    assert all_same(gradients(precision(seed=7), plain, inside), gradients(context, wrap, inside))
    # Later products have the numbers that follow.
    other = precision(seed=7)
    gradients(other, plain)
    assert all_same(gradients(context, plain), gradients(other, plain))


def test_products_of_one_call_have_random_bits_of_their_own():
    (a,) = tensors((4, 1, 40), seed=8)
    alike, b = a[:1].detach().expand(3, 1, 40), torch.ones(3, 40, 50)
    with precision(level=2, seed=9):
        groups = torch._grouped_mm if hasattr(torch, "_grouped_mm") else None
        batch = alike @ b
        if groups is not None:
            batch = torch.cat([batch, groups(alike.contiguous().bfloat16(), b.bfloat16()).float()])
    rows = batch.detach().numpy().reshape(-1, 50)
    assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize("name", ["matmul", "conv1d", "conv_transpose1d"])
def test_gradient_that_is_the_same_product_again_has_random_bits_of_its_own(name):
    # A symmetrical weight, and the input as the gradient from above: the sums of both passes are the same.
    (x, weight) = tensors((1, 6, 50), (6, 6), seed=10)
    weight = (weight + weight.mT).detach()
    with precision(level=2, seed=11):
        if name == "matmul":
            result = (x.mT @ weight).mT
        else:
            result = getattr(torch.nn.functional, name)(x, weight[:, :, None])
    (gradient,) = torch.autograd.grad(result, x, x.detach())
    same = (result == gradient).double().mean().item()
    assert 0 < same < 0.9, same


class ManyProducts(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, bidirectional=True, proj_size=3)
        self.gru, self.cell = nn.GRU(6, 4), nn.RNNCell(4, 4)
        self.apart, self.together = nn.Conv1d(4, 4, 2, groups=2), nn.ConvTranspose1d(4, 4, 2)
        self.attention, self.bilinear = nn.MultiheadAttention(4, 2), nn.Bilinear(4, 4, 4)

    def forward(self, x):
        x = self.gru(self.lstm(x)[0])[0]
        x = self.attention(x, x, x)[0]
        x = self.together(self.apart(x.permute(1, 2, 0))).mean(-1)
        return self.cell(self.bilinear(x, x)) + nn.functional.linear(x, x @ x.mT, x[:, 0])


def test_products_of_a_training_step_have_different_random_bits_in_both_passes(monkeypatch):
    drawn = []

    def noting(function):
        def run(*given, **named):
            drawn.append(named["reduction"].random)
            return function(*given, **named)

        return run

    monkeypatch.setattr(golden, "matmul_values", noting(golden.matmul_values))
    monkeypatch.setattr(windows, "indexed_values", noting(windows.indexed_values))
    (x,) = tensors((3, 4, 4), seed=12)
    with precision(level=2, seed=13):
        result = ManyProducts()(x)
    forward = len(drawn)
    result.float().square().sum().backward()
    assert len(drawn) > 2 * forward > 40
    assert len(set(drawn)) == len(drawn)


def test_branches_of_a_product_are_apart():
    whole = golden.Reduction(operand=CBFLOAT16, rounding="stochastic", random=golden.Randomness(seed=2**63))
    assert reduction_in(str(whole)) == whole == golden.Reduction.parse(str(whole))
    other = whole.with_random(golden.Randomness(8, 1, 2))
    assert str(other) == str(replace(whole, random=golden.Randomness(8, 1, 2)))
    root = whole.random
    children = [branched(root, branch) for branch in range(1, 9)]
    family = [root, *children, *(branched(child, branch) for child in children for branch in range(1, 9))]
    assert len({each.call for each in family}) == len(family)


def test_compiled_code_with_random_bits_is_refused():
    with (
        precision(seed=1),
        pytest.raises(Exception, match=r"rounding: got 'stochastic' in code that torch.compile makes"),
    ):
        torch.compile(lambda x: x @ x, backend="eager", fullgraph=True)(torch.ones(3, 3))


def test_compiled_code_in_a_directed_mode_has_the_bits_of_eager_code():
    x, w = tensors((5, 40), (40, 7))
    with precision("up", level=2):
        eager = x @ w
        compiled = torch.compile(lambda a, b: a @ b, backend="eager", fullgraph=True)(x, w)
    assert same(eager, compiled)


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ValueError, "rounding: got 'odd', must be a Rounding or one of nearest_even, .*", {"rounding": "odd"}),
        (TypeError, "out_rounding: got 1, must be a Rounding", {"out_rounding": 1}),
        (TypeError, "seed: got '1', must be an int from 0 to 4294967295", {"seed": "1"}),
        (ValueError, f"seed: got {2**32}, must be 0 to 4294967295", {"seed": 2**32}),
    ],
)
def test_modes_and_seeds_that_are_none_raise_naming_them(error, message, options):
    with pytest.raises(error, match=message):
        cstorch.precision(half="cbfloat16", **options)
