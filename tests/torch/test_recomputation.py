"""Activation checkpointing: the second computation has the precision and the levels of the first."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop

import golden.torch as cstorch

from .oracle import assert_same_tensors, normal


def build():
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(24, 24), torch.nn.Dropout(0.2), torch.nn.Linear(24, 24), torch.nn.GELU(), torch.nn.Linear(24, 8)
    )


WAYS = {
    "reentrant": lambda model, x: checkpoint(model, x, use_reentrant=True),
    "not reentrant": lambda model, x: checkpoint(model, x, use_reentrant=False),
    "sequential": lambda model, x: checkpoint_sequential(model, 2, x, use_reentrant=False),
    "part": lambda model, x: model[2:](checkpoint(model[:2], x, use_reentrant=True)),
    "nested": lambda model, x: checkpoint(
        lambda x: model[2:](checkpoint(model[:2], x, use_reentrant=False)), x, use_reentrant=False
    ),
}


def gradients(way, *, inside, level=1, around=None):
    model, x = build(), normal(16, 24, seed=5, grad=True)
    torch.manual_seed(11)
    with cstorch.precision("cbfloat16", level), cstorch.pol(fwd_level=2) if around is None else around:
        loss = way(model, x).square().mean() * 1024
        if inside:
            loss.backward()
    if not inside:
        with cstorch.pol(level=0):  # of the backward call, not of the forward pass
            loss.backward()
    return [loss, x.grad, *(each.grad for each in model.parameters())]


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", WAYS)
def test_checkpoint_gives_the_bits_of_a_run_without_one(name, inside):
    wanted = gradients(lambda model, x: model(x), inside=True)
    for got, expected in zip(gradients(WAYS[name], inside=inside), wanted, strict=True):
        assert_same_tensors(got, expected)


def test_checkpoint_without_early_stop_gives_the_same_bits():
    wanted = gradients(lambda model, x: model(x), inside=True)
    with set_checkpoint_early_stop(False):
        got = gradients(WAYS["not reentrant"], inside=False)
    for one, other in zip(got, wanted, strict=True):
        assert_same_tensors(one, other)


@pytest.mark.parametrize("name", ["reentrant", "not reentrant"])
def test_checkpoint_of_a_forward_pass_without_precision_is_not_exact_in_a_precision_either(name):
    model, x = build().eval(), normal(16, 24, seed=5, grad=True)
    plain = torch.autograd.grad(model(x).sum(), x)[0]
    with cstorch.precision("cbfloat16"):
        pass
    loss = WAYS[name](model, x).sum()
    with cstorch.precision("cbfloat16"):
        loss.backward()
    assert_same_tensors(x.grad, plain)


def test_checkpoint_in_a_disabled_block_stays_pytorchs():
    model, x = build().eval(), normal(16, 24, seed=5, grad=True)
    plain = torch.autograd.grad(model(x).sum(), x)[0]
    with cstorch.precision("cbfloat16"), cstorch.precision(enabled=False):
        loss = WAYS["reentrant"](model, x).sum()
    loss.backward()
    assert_same_tensors(x.grad, plain)


@pytest.mark.parametrize("name", ["reentrant", "not reentrant"])
def test_checkpoint_keeps_the_scopes_of_the_backward_pass_around_it(name):
    model, x = build(), normal(16, 24, seed=5, grad=True)
    with cstorch.precision("cbfloat16", level=2):
        loss = WAYS[name](model, x).sum()
    seen = []
    x.register_hook(lambda _: seen.append((cstorch.current_pol(), cstorch.get_half_dtype_str())))
    with cstorch.precision("bfloat16", level=0):
        loss.backward()
        assert cstorch.get_half_dtype_str() == "bfloat16"
    assert seen == [((0, 0), "bfloat16")]
