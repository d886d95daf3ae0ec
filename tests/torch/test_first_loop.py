"""A loop that trains in plain fp32 while 16 bits are set, or a level outside of a precision: both speak."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import golden.torch as cstorch
from golden.torch.settings.scopes import Process

from .oracle import assert_same_tensors, normal

X, TARGET = normal(4, 6, seed=1), torch.tensor([0, 1, 0, 1])


@pytest.fixture(autouse=True)
def process_without_precision(monkeypatch):
    monkeypatch.setattr(Process, "entered", False)
    cstorch.set_half_dtype("cbfloat16")


def loss_of(model, x=X):
    return F.cross_entropy(model(x), TARGET)


def build():
    return torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))


NOT_EXACT = "a loss none of whose products is exact"


def test_scale_of_a_loss_of_fp32_products_says_which_line_to_add():
    scaler = cstorch.amp.GradScaler("dynamic")
    with pytest.raises(RuntimeError, match=rf"{NOT_EXACT} .Addmm is PyTorch's own.*with golden.torch.precision.*init"):
        scaler.scale(loss_of(build()))
    with pytest.raises(RuntimeError, match=NOT_EXACT):
        cstorch.amp.GradScaler(None).scale([loss_of(build())])
    x = X.unsqueeze(1).requires_grad_()
    with pytest.raises(RuntimeError, match="Convolution is"):
        scaler.scale(F.conv1d(x, torch.ones(1, 1, 3)).sum())


@pytest.mark.parametrize("way", ["context", "initialize", "explicit", "part"])
def test_scale_of_a_loss_with_an_exact_product_is_as_before(way):
    model = build()
    if way == "initialize":
        cstorch.amp.initialize(model)
        loss = loss_of(model)
    elif way == "explicit":
        loss = cstorch.matmul(X, model[0].weight.mT).sum()
    elif way == "part":
        with cstorch.precision():
            hidden = model[:2](X)
        loss = loss_of(model[2:], hidden)
    else:
        with cstorch.precision():
            loss = loss_of(model)
    assert_same_tensors(cstorch.amp.GradScaler(8.0).scale(loss), loss * 8.0)


def test_scale_where_fp32_is_meant_is_as_before():
    loss, scaler = loss_of(build()), cstorch.amp.GradScaler(8.0)
    scaler.scale(torch.ones(1, requires_grad=True) * 3)  # no product at all
    with cstorch.precision(enabled=False):
        scaler.scale(loss)
    cstorch.enable_mixed_precision(False)
    scaler.scale(loss)


def test_scale_in_a_precision_of_a_loss_from_outside_is_refused():
    loss = loss_of(build())
    with cstorch.precision(), pytest.raises(RuntimeError, match=NOT_EXACT):
        cstorch.amp.GradScaler(8.0).scale(loss)


@pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
@pytest.mark.parametrize("kind", ["checkpoint", "compiled"])
def test_scale_of_a_loss_whose_products_are_hidden_asks_whether_exact_ones_ran(kind):
    model = build()
    x = X.clone().requires_grad_()
    hidden = (
        torch.compile(model, backend="aot_eager")
        if kind == "compiled"
        else lambda x: checkpoint(model, x, use_reentrant=True)
    )
    scaler = cstorch.amp.GradScaler(8.0)
    with pytest.raises(RuntimeError, match=NOT_EXACT):
        scaler.scale(loss_of(hidden, x))
    with cstorch.precision():
        loss = loss_of(hidden, x)
    scaler.scale(loss)
    with pytest.raises(RuntimeError, match=NOT_EXACT):
        scaler.scale(loss_of(hidden, x))


@pytest.mark.parametrize("way", ["block", "function", "module"])
def test_pol_around_products_of_pytorch_in_a_process_without_precision_is_an_error(way):
    layer = torch.nn.Linear(6, 2)
    at_level = cstorch.pol(level=2)

    def block(x):
        with at_level:
            return layer(x)

    calls = {"block": block, "function": at_level(lambda x: layer(x)), "module": at_level(layer)}
    with pytest.raises(RuntimeError, match=r"^pol: aten::addmm in Linear would run in float32 .* add 'with golden"):
        calls[way](X)
    layer(X)  # nothing watches any more
    assert cstorch.current_pol() == (1, 1)


def test_pol_around_exact_products_and_after_a_precision_is_legal():
    layer = torch.nn.Linear(6, 2)
    with cstorch.pol(level=2):
        cstorch.matmul(X, X.mT)
        torch.arange(4).reshape(2, 2) @ torch.arange(4).reshape(2, 2)
        with cstorch.precision(enabled=False):
            layer(X)
        with cstorch.precision():
            layer(X)
        layer(X)  # this process knows precisions: fp32 may be meant


def test_mixed_precision_tells_whether_products_are_exact_here():
    assert not cstorch.mixed_precision()
    assert cstorch.get_floating_point_dtype_str() == "cbfloat16"
    with cstorch.precision():
        assert cstorch.mixed_precision()
        with cstorch.precision(enabled=False):
            assert not cstorch.mixed_precision()
