"""Optimizers: equal to PyTorch's where the original is, and to its formulas where it is not."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch import optim

STEPS = 8


def gradients(shape):
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(STEPS)]


def train(make, shape=(3, 4)):
    """Return a parameter after a few steps with given gradients."""
    parameter = nn.Parameter(torch.linspace(-1, 1, math.prod(shape), dtype=torch.float64).reshape(shape))
    optimizer = make([parameter])
    for gradient in gradients(shape):
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
        ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 3.0, "weight_decay": 0.1}),
        ("Rprop", {"lr": 0.1}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6}),
        ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 1.0, "eps": 1e-6, "maximize": True}),
        ("Adadelta", {"lr": 0.5, "weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.1, "weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}),
        ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "eps": 1e-6}),
        ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "eps": 1e-6, "betas": (0.9, 0.9)}),
        # Powers of these betas are exact in fp32.
        ("AdamW", {"lr": 0.1, "weight_decay": 0.1, "eps": 0.0, "betas": (0.5, 0.75)}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.1, "eps": 0.0, "betas": (0.5, 0.75), "amsgrad": True}),
    ],
)
def test_optimizer_equals_that_of_pytorch(name, given):
    ours = train(lambda parameters: getattr(optim, name)(parameters, **given))
    theirs = train(lambda parameters: getattr(torch.optim, name)(parameters, **given))
    # Powers and steps of the state are fp32, as in the original.
    torch.testing.assert_close(ours, theirs, rtol=2e-6, atol=1e-7)


def scalar(rule, start=0.5):
    """Return a number after a few steps of a rule, ``rule(p, g, t, state) -> p``."""
    state = {}
    for at, gradient in enumerate(gradients((1,)), start=1):
        start = rule(start, gradient.item(), at, state)
    return start


def run_scalar(make, start=0.5):
    parameter = nn.Parameter(torch.tensor([start], dtype=torch.float64))
    optimizer = make([parameter])
    for gradient in gradients((1,)):
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.item()


def test_asgd_averages_as_pytorch_does():
    averages = []
    for kind in (optim.ASGD, torch.optim.ASGD):
        parameter = nn.Parameter(torch.linspace(-1, 1, 5, dtype=torch.float64))
        descent = kind([parameter], lr=0.1, lambd=0.1, t0=3.0)
        for gradient in gradients((5,)):
            parameter.grad = gradient.clone()
            descent.step()
            averages.append(descent.state[parameter]["ax"].clone())
    for ours, theirs in zip(averages[:STEPS], averages[STEPS:], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-6, atol=1e-7)


def test_rate_of_an_optimizer_may_be_a_tensor_of_one_number():
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    optim.SGD([parameter], lr=torch.tensor(0.25)).step()
    assert parameter.tolist() == [0.75, 0.75]


def test_sgd_dampens_its_first_step():
    def rule(p, g, t, state):
        state["b"] = 0.9 * state.get("b", 0.0) + 0.5 * g
        return p - 0.1 * state["b"]

    ours = run_scalar(lambda params: optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5))
    assert ours == pytest.approx(scalar(rule), rel=1e-12)


def moments(g, state, betas):
    for name, power, beta in (("m", 1, betas[0]), ("v", 2, betas[1])):
        state[name] = beta * state.get(name, 0.0) + (1 - beta) * g**power
    return state["m"], state["v"]


@pytest.mark.parametrize("correct", [True, False])
def test_adamw_adds_eps_before_the_bias_is_corrected(correct):
    def rule(p, g, t, state):
        m, v = moments(g, state, (0.9, 0.99))
        change = m / (math.sqrt(v) + 0.5)
        if correct:
            change *= math.sqrt(1 - 0.99**t) / (1 - 0.9**t)
        return p - 0.1 * (change + 0.2 * p)

    ours = run_scalar(
        lambda params: optim.AdamW(params, lr=0.1, betas=(0.9, 0.99), eps=0.5, weight_decay=0.2, correct_bias=correct)
    )
    assert ours == pytest.approx(scalar(rule), rel=1e-5)


def test_nadam_follows_the_original():
    def rule(p, g, t, state):
        m, v = moments(g, state, (0.9, 0.99))
        now, later = (0.9 * (1 - 0.5 * 0.96 ** (each * 0.1)) for each in (t, t + 1))
        state["mu"] = state.get("mu", 1.0) * now
        ahead = state["mu"] * now * later
        change = later * m / (1 - ahead) + g * (1 - now) / (1 - state["mu"])
        return p - 0.1 * change / (math.sqrt(v / (1 - 0.99**t)) + 1e-8)

    ours = run_scalar(lambda params: optim.NAdam(params, lr=0.1, betas=(0.9, 0.99), momentum_decay=0.1))
    assert ours == pytest.approx(scalar(rule), rel=1e-5)


@pytest.mark.parametrize("adam", [True, False])
def test_lamb_scales_a_step_to_the_parameter(adam):
    def rule(p, g, t, state):
        m, v = moments(g, state, (0.9, 0.999))
        change = m / (math.sqrt(v) + 1e-6) + 0.1 * p
        return p - 0.1 * change * (1 if adam else min(abs(p), 10) / abs(change))

    ours = run_scalar(lambda params: optim.Lamb(params, lr=0.1, weight_decay=0.1, adam=adam))
    assert ours == pytest.approx(scalar(rule), rel=1e-6)


def test_lion_follows_the_sign():
    def rule(p, g, t, state):
        m = state.get("m", 0.0)
        state["m"] = 0.99 * m + 0.01 * g
        return p * (1 - 0.1 * 0.2) - 0.1 * math.copysign(1, 0.9 * m + 0.1 * g)

    ours = run_scalar(lambda params: optim.Lion(params, lr=0.1, weight_decay=0.2))
    assert ours == pytest.approx(scalar(rule), rel=1e-12)


@pytest.mark.parametrize("shape", [(5,), (3, 4)])
def test_adafactor_keeps_row_and_column_means(shape):
    p = np.linspace(-1, 1, math.prod(shape)).reshape(shape)
    row = column = whole = 0.0
    for t, gradient in enumerate(gradients(shape), start=1):
        g = gradient.numpy()
        keep, rate = 1 - t**-0.8, 0.1 * max(math.sqrt((p**2).mean()), 1e-3)
        square = g**2 + 1e-30
        if len(shape) == 1:
            whole = keep * whole + (1 - keep) * square
            change = g / np.sqrt(whole)
        else:
            row = keep * row + (1 - keep) * square.mean(-1)
            column = keep * column + (1 - keep) * square.mean(-2)
            change = g / np.sqrt((row / row.mean())[:, None] * column[None, :])
        change = change / max(math.sqrt((change**2).mean()), 1.0) * rate
        p = p * (1 - 0.1 * rate) - change
    ours = train(lambda params: optim.Adafactor(params, lr=0.1, weight_decay=0.1), shape)
    np.testing.assert_allclose(ours.numpy(), p, rtol=2e-5)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2, 2)])
def test_muon_makes_the_momentum_orthogonal_on_exact_bfloat16_products(shape):
    parameter = nn.Parameter(torch.zeros(shape))
    optimizer = optim.Muon([parameter], lr=1.0, weight_decay=0.0, nesterov=False)
    parameter.grad = torch.randn(shape)
    optimizer.step()
    step = -parameter.detach().flatten(1) / (0.2 * max(shape[:2]) ** 0.5)
    left, _, right = torch.linalg.svd(parameter.grad.flatten(1), full_matrices=False)
    on_diagonal = (left.mT @ step @ right.mT).diagonal()
    assert 0.5 < on_diagonal.min() < on_diagonal.max() < 1.3
    with pytest.raises(ValueError, match=r"^params: got a parameter of shape \(3,\)"):
        optim.Muon([nn.Parameter(torch.zeros(3))])


def test_state_exists_before_the_first_step_and_can_be_visited():
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = optim.AdamW([parameter])
    assert set(optimizer.state[parameter]) == {"exp_avg", "exp_avg_sq", "beta1_power", "beta2_power"}
    optimizer.visit_state(lambda value: value + 1 if value.ndim else None)
    assert optimizer.state[parameter]["exp_avg"].tolist() == [1.0, 1.0]
    assert optimizer.apply(lambda each: each) is optimizer


def test_state_of_pytorch_goes_on_in_adam():
    parameter, twin = (nn.Parameter(torch.ones(2)) for _ in range(2))
    theirs = torch.optim.Adam([twin], lr=0.1, betas=(0.5, 0.75), eps=0.0)
    ours = optim.Adam([parameter], lr=0.1)
    for each in gradients((2,))[:3]:
        twin.grad = each.float()
        theirs.step()
    parameter.data.copy_(twin.data)
    ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    for each in gradients((2,))[3:]:
        for one, optimizer in ((twin, theirs), (parameter, ours)):
            one.grad = each.float()
            optimizer.step()
    torch.testing.assert_close(parameter.data, twin.data, rtol=1e-5, atol=1e-7)


def test_hooks_of_zero_grad_run_around_it():
    parameter, events = nn.Parameter(torch.zeros(2)), []
    optimizer = optim.SGD([parameter], lr=1.0)
    optimizer.register_zero_grad_pre_hook(lambda *_: events.append(parameter.grad is None))
    handle = optimizer.register_zero_grad_post_hook(lambda *_: events.append(parameter.grad is None))
    parameter.grad = torch.ones(2)
    optimizer.zero_grad()
    handle.remove()
    optimizer.zero_grad()
    assert events == [False, True, True]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: optim.SGD(p, lr=-1.0), ValueError, r"^lr: got -1.0, must be at least 0"),
        (lambda p: optim.SGD(p, lr=0.1, nesterov=True), ValueError, r"^nesterov: got True with momentum 0"),
        (lambda p: optim.Adam(p, betas=(0.9, 1.0)), ValueError, r"^betas: got \(0.9, 1.0\), must be below 1"),
        (lambda p: optim.AdamW(p, betas=0.9), TypeError, r"^betas: got 0.9, must be two numbers"),
        (lambda p: optim.Adafactor(p, lr=0.1, beta1=0.9), ValueError, r"^beta1: got 0.9, must be None"),
        (lambda p: optim.SGD(p, lr=torch.ones(2)), TypeError, r"^lr: got tensor\(\[1., 1.\]\), must be a number"),
        (lambda p: optim.Lion(p, lr="fast"), TypeError, r"^lr: got 'fast', must be a number"),
        (lambda p: optim.configure_optimizer("sdg", p), ValueError, r"^optimizer_type: got 'sdg', must be one of"),
    ],
)
def test_wrong_parameter_of_an_optimizer_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make([nn.Parameter(torch.zeros(2))])


def test_sparse_gradient_is_refused():
    table = nn.Embedding(4, 2, sparse=True)
    optimizer = optim.SGD(table.parameters(), lr=0.1)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(TypeError, match=r"^SGD: got a sparse gradient"):
        optimizer.step()


def test_optimizer_by_name_says_what_it_does_not_take(caplog):
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = cstorch.optim.configure_optimizer("adamw", [parameter], learning_rate=0.1, momentum=0.9)
    assert (type(optimizer), optimizer.param_groups[0]["lr"]) == (optim.AdamW, 0.1)
    assert "AdamW: does not take momentum" in caplog.text
    cls, given = optim.configure_optimizer_params("SGD", {"learning_rate": {"scheduler": "Linear"}})
    assert (cls, given) == (optim.SGD, {"lr": 0.1})
