"""audit: which products are exact, by module and pass, and nothing of the run stays."""

import copy
from contextlib import nullcontext

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import golden.torch as cstorch

from .oracle import assert_same_tensors, normal


class Net(torch.nn.Module):
    def __init__(self, *, spectrum=False, fp32_head=False):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout())
        self.head = torch.nn.Linear(6, 2)
        self.spectrum, self.fp32_head = spectrum, fp32_head

    def forward(self, x):
        hidden = self.body(x)
        if self.spectrum:
            hidden = torch.fft.rfft(hidden, dim=0).abs()
        with cstorch.precision(enabled=False) if self.fp32_head else nullcontext():
            return self.head(hidden)


X = normal(4, 6, seed=1)


def test_audit_counts_products_by_module_and_pass(capsys):
    found = cstorch.audit(Net(), X)
    # No gradient of the data; gradients of biases are products by ones.
    assert (found.exact, found.unseen, found.refused) == (7, 0, 0)
    by_place = {(row.module, row.run): row.exact for row in found.rows if row.exact}
    assert by_place == {
        ("body.0", "forward"): 1,
        ("head", "forward"): 1,
        ("head", "backward"): 3,
        ("body.0", "backward"): 2,
    }
    assert "7 exact, 0 unseen (in fp32), 0 refused" in capsys.readouterr().out


def test_audit_without_backward_runs_forward_only(capsys):
    found = cstorch.audit(Net(), X, backward=False, show=False)
    assert {row.run for row in found.rows} == {"forward"}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("backward", [True, False])
def test_audit_keeps_gradients_for_a_backward_pass_that_is_asked_for_where_they_are_on(around, backward):
    seen = []

    def target(x):
        seen.append(torch.is_grad_enabled())
        return x

    with torch.set_grad_enabled(around):
        cstorch.audit(target, X, backward=backward, show=False)
    assert seen == [around and backward]


def test_audit_tells_what_a_precision_refuses_and_goes_on():
    found = cstorch.audit(Net(spectrum=True), X, show=False)
    refused = [(row.module, row.run, row.operator) for row in found.rows if row.refused]
    assert refused == [("", "forward", "aten::_fft_r2c"), ("", "backward", "aten::_fft_c2c")]
    assert found.exact == 7
    with pytest.raises(NotImplementedError), cstorch.precision():
        Net(spectrum=True)(X)


def test_audit_tells_what_pytorch_computes_in_fp32():
    found = cstorch.audit(Net(fp32_head=True), X, show=False)
    unseen = {(row.module, row.run, row.operator): row.unseen for row in found.rows if row.unseen}
    assert unseen == {("head", "forward", "aten::addmm"): 1, ("head", "backward", "aten::mm"): 2}
    assert (found.exact, found.refused) == (3, 0)
    model = Net()
    bare = cstorch.audit(lambda x: model(x), X, show=False)  # a callable runs as it is
    assert (bare.exact, bare.unseen, bare.refused) == (0, 5, 0)


def test_audit_of_a_checkpoint_tells_what_is_computed_again():
    model = Net()
    x = X.clone().requires_grad_()
    found = cstorch.audit(lambda x: checkpoint(model, x, use_reentrant=False), x, show=False)
    with cstorch.precision("cbfloat16"):
        found = cstorch.audit(lambda x: checkpoint(model, x, use_reentrant=False), x, show=False)
    assert not found.unseen + found.refused
    assert {row.run for row in found.rows} == {"forward", "backward", "recomputation"}


def test_audit_obeys_the_precision_of_the_model_and_around_it():
    with cstorch.precision(enabled=False):
        assert cstorch.audit(torch.nn.Linear(6, 2), X, show=False).unseen == 2
    model = cstorch.amp.initialize(Net(), enabled=False)
    assert cstorch.audit(model, X, show=False).exact == 0


@pytest.mark.parametrize("failing", [False, True])
def test_audit_leaves_nothing_behind(failing):
    model, x = Net(), X.clone().requires_grad_()
    (model(x).sum() * 3).backward()
    before = copy.deepcopy({"state": model.state_dict(), "random": torch.get_rng_state()})
    gradients = [each.grad.clone() for each in [*model.parameters(), x]]
    if failing:
        model.register_forward_hook(lambda *_: (_ for _ in ()).throw(ZeroDivisionError))
        with pytest.raises(ZeroDivisionError):
            cstorch.audit(model, x, show=False)
    else:
        cstorch.audit(model, x, show=False)
        cstorch.audit(lambda: model(x), show=False)
    for name, value in model.state_dict().items():
        if name.startswith("body.1") and not failing:
            continue
        assert (value == before["state"][name]).all()
    if failing:
        assert (torch.get_rng_state() == before["random"]).all()
    for each, gradient in zip([*model.parameters(), x], gradients, strict=True):
        assert_same_tensors(each.grad, gradient)
    assert model.training


def test_audit_puts_buffers_and_random_generators_back():
    model = Net()
    state, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    cstorch.audit(model, X, show=False)
    assert all((value == state[name]).all() for name, value in model.state_dict().items())
    assert (torch.get_rng_state() == random).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 3}, r"^target: got 3, must be a module"),
        ({"target": torch.nn.Identity(), "backward": 1}, r"^backward: got 1, must be True or False"),
        ({"target": torch.nn.Identity(), "show": None}, r"^show: got None, must be True or False"),
    ],
)
def test_audit_of_bad_arguments_names_them(arguments, message):
    with pytest.raises(TypeError, match=message):
        cstorch.audit(**arguments)


@pytest.mark.parametrize("backward", [True, False])
def test_audit_within_a_stochastic_precision_takes_no_random_bits(backward):
    model, x = torch.nn.LSTM(3, 4), torch.ones(2, 1, 3)
    context = cstorch.precision("cbfloat16", level=2, rounding="stochastic")
    with context:
        model(x)
        before = context.products
        cstorch.audit(model, x, backward=backward, show=False)
        assert context.products == before > 0


def test_audit_between_backward_and_step_does_not_make_the_step_in_fp32_be_refused():
    # The guard of unscaled steps must not remember a product from outside of training.
    model = torch.nn.Linear(6, 2)
    model(X).sum().backward()
    with cstorch.precision("cbfloat16"):
        cstorch.audit(Net(), X, show=False)
    torch.optim.SGD(model.parameters(), lr=0.1).step()


@pytest.mark.parametrize("columns", [80, 40])
def test_audit_shows_the_names_of_operators_whole(capsys, monkeypatch, columns):
    def attend(q):
        with cstorch.precision(enabled=False):
            return torch.nn.functional.scaled_dot_product_attention(q, q, q)

    class Block(torch.nn.Module):
        def forward(self, q):
            return attend(attend(q) @ q.mT)

    monkeypatch.setenv("COLUMNS", str(columns))
    net = torch.nn.Sequential()
    net.add_module("the_attention_of_the_third_block_of_the_decoder", Block())
    found = cstorch.audit(net, normal(1, 1, 4, 4, seed=3).requires_grad_())
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    names = {row.operator for row in found.rows}
    assert "aten::_scaled_dot_product_flash_attention_for_cpu_backward" in names
    assert {line.split()[0] for line in lines if "::" in line} == names
    for row in found.rows:
        counts = [str(each) for each in row[3:] if each]
        assert any(line.split() == [row.operator, *counts] for line in lines), row
