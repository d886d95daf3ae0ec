"""A step on cbfloat16 gradients whose loss nobody scaled is an error that says what to add."""

import pytest
import torch
from torch import nn

import golden.torch as cstorch


def forward_and_backward(model, half="cbfloat16"):
    with cstorch.precision(half=half):
        model(torch.ones(4, 3)).sum().backward()


def parts(optimizer=torch.optim.SGD):
    model = nn.Linear(3, 2)
    return model, optimizer(model.parameters(), lr=1.0)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW, cstorch.optim.SGD])
def test_raw_loop_in_cbfloat16_is_refused(optimizer):
    model, optimizer = parts(optimizer)
    before = model.weight.detach().clone()
    forward_and_backward(model)
    with pytest.raises(RuntimeError, match=r"^optimizer: .*loss was not scaled.*GradScaler\('dynamic'\)"):
        optimizer.step()
    assert torch.equal(model.weight, before)


def test_step_of_an_optimizer_without_gradients_is_made_and_the_next_is_still_refused():
    model, optimizer = parts()
    _, idle = parts()
    forward_and_backward(model)
    idle.step()
    with pytest.raises(RuntimeError, match=r"^optimizer: .*loss was not scaled"):
        optimizer.step()


def test_loop_in_traced_steps_without_a_scaler_is_refused():
    cstorch.amp.set_half_dtype("cbfloat16")
    model, optimizer = parts(cstorch.optim.SGD)

    @cstorch.trace
    def step():
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()

    with pytest.raises(RuntimeError, match=r"^optimizer: .*loss was not scaled"):
        step()


def test_disabled_scaler_does_not_count_as_scaling():
    model, optimizer = parts()
    scaler = cstorch.amp.GradScaler(None)
    with cstorch.precision(half="cbfloat16"):
        scaler.scale(model(torch.ones(4, 3)).sum()).backward()
    with pytest.raises(RuntimeError, match=r"^optimizer: .*loss was not scaled"):
        scaler.step(optimizer)


@pytest.mark.parametrize("scale", [1.0, 1024.0, "dynamic"])
def test_scaler_makes_the_step(scale):
    model, optimizer = parts()
    scaler = cstorch.amp.GradScaler(scale, init_scale=8.0)
    for _ in range(2):
        optimizer.zero_grad()
        with cstorch.precision(half="cbfloat16"):
            scaler.scale(model(torch.ones(4, 3)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_num_skipped_steps() == 0


def plain(model):
    model(torch.ones(4, 3)).sum().backward()


def forward_alone(model):
    with cstorch.precision(half="cbfloat16"), torch.no_grad():
        model(torch.ones(4, 3))


def in_fp32():
    cstorch.amp.set_half_dtype("cbfloat16")
    cstorch.amp.enable_mixed_precision(False)


#: Backward passes whose gradients need no scaling.
UNSCALED = {
    "float16": lambda model: forward_and_backward(model, "float16"),
    "bfloat16": lambda model: forward_and_backward(model, "bfloat16"),
    "gradients of another model": lambda model: [forward_and_backward(nn.Linear(3, 2)), plain(model)],
    "a forward pass alone": lambda model: [plain(model), forward_alone(model)],
    "fp32 that is meant": lambda model: [in_fp32(), plain(model)],
    "another format than the process's": lambda model: [
        cstorch.amp.set_half_dtype("cbfloat16"),
        forward_and_backward(model, "bfloat16"),
    ],
}


@pytest.mark.parametrize("case", UNSCALED)
def test_step_of_gradients_that_need_no_scaling_is_made(case):
    model, optimizer = parts()
    before = model.weight.detach().clone()
    UNSCALED[case](model)
    optimizer.step()
    assert not torch.equal(model.weight, before)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, cstorch.optim.AdamW])
def test_raw_loop_that_only_sets_cbfloat16_is_refused(optimizer):
    cstorch.amp.set_half_dtype("cbfloat16")
    model, optimizer = parts(optimizer)
    before = model.weight.detach().clone()
    model(torch.ones(4, 3)).sum().backward()
    with pytest.raises(RuntimeError, match=r"^optimizer: the half type is cbfloat16.*GradScaler\('dynamic'\)"):
        optimizer.step()
    assert torch.equal(model.weight, before)


def test_steps_of_several_optimizers_after_one_backward_pass_are_made():
    cstorch.amp.set_half_dtype("cbfloat16")
    model, first = parts()
    second = torch.optim.SGD([model.bias], lr=1.0)
    forward_and_backward(model, "bfloat16")
    first.step()
    second.step()


def loss_in_fp32(model, where, around=nn.Sequential):
    with cstorch.precision(enabled=False):
        result = around(model)(torch.ones(4, 3))
        if where == "inside":
            return result.square().mean()
    return result.square().mean()


@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("scale", [None, 1.0, "dynamic"])
@pytest.mark.parametrize("around", [nn.Sequential, lambda model: torch.compile(model, backend="aot_eager")])
def test_fp32_base_line_of_a_disabled_precision_trains_as_pytorch_does(scale, where, around):
    model, optimizer = parts()
    other, wanted = parts()
    other.load_state_dict(model.state_dict())
    for _ in range(2):
        wanted.zero_grad()
        other(torch.ones(4, 3)).square().mean().backward()
        wanted.step()
    cstorch.amp.set_half_dtype("cbfloat16")
    scaler = cstorch.amp.GradScaler(scale)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(loss_in_fp32(model, where, around)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert torch.equal(model.weight, other.weight)
    assert scaler.get_num_skipped_steps() == 0


@pytest.mark.parametrize("scale", [None, 1.0])
def test_product_beside_a_disabled_precision_is_not_meant_to_be_in_fp32(scale):
    cstorch.amp.set_half_dtype("cbfloat16")
    model, optimizer = parts()
    other = nn.Linear(2, 2)
    with cstorch.precision(enabled=False):
        result = model(torch.ones(4, 3))
    result = other(result)
    with cstorch.precision(enabled=False):
        loss = result.sum()
    scaler = cstorch.amp.GradScaler(scale)

    def step():
        scaler.scale(loss).backward()
        scaler.step(optimizer)

    with pytest.raises(RuntimeError, match=r"precision\(enabled=False\)"):
        step()


def closure_of(model, optimizer, half="cbfloat16", scaler=None):
    def closure():
        optimizer.zero_grad()
        with cstorch.precision(half, enabled=half is not None):
            loss = model(torch.ones(4, 3)).square().mean()
        if scaler is None:
            loss.backward()
            return loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.update()
        return loss

    return closure


CLOSURES = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "LBFGS": lambda parameters: torch.optim.LBFGS(parameters, max_iter=3),
    "Adam of this package": lambda parameters: cstorch.optim.AdamW(parameters, lr=0.01),
}


@pytest.mark.parametrize("is_set", [True, False])
@pytest.mark.parametrize("name", CLOSURES)
def test_unscaled_closure_is_refused_at_its_first_step_and_says_what_to_add(name, is_set):
    if is_set:
        cstorch.amp.set_half_dtype("cbfloat16")
    model = nn.Linear(3, 2)
    optimizer = CLOSURES[name](model.parameters())
    before = model.weight.detach().clone()
    with pytest.raises(RuntimeError, match=r"loss was not scaled.*scaler.unscale_\(optimizer\).* in the closure"):
        optimizer.step(closure_of(model, optimizer))
    assert torch.equal(model.weight, before)
    with pytest.raises(RuntimeError, match="loss was not scaled"):
        optimizer.step(closure=closure_of(model, optimizer))


@pytest.mark.parametrize("half", ["cbfloat16", "bfloat16", None])
@pytest.mark.parametrize("name", CLOSURES)
def test_closure_that_scales_or_needs_no_scale_makes_its_steps(name, half):
    cstorch.amp.set_half_dtype("cbfloat16")
    model = nn.Linear(3, 2)
    optimizer = CLOSURES[name](model.parameters())
    scaler = cstorch.amp.GradScaler(1024.0) if half == "cbfloat16" else None
    closure = closure_of(model, optimizer, half, scaler)
    losses = [optimizer.step(closure).item() for _ in range(3)]
    assert losses[-1] < losses[0]


def test_closure_without_a_backward_pass_of_its_own_is_checked_all_the_same():
    model, optimizer = parts()
    forward_and_backward(model)
    with pytest.raises(RuntimeError, match="loss was not scaled"):
        optimizer.step(lambda: 1.0)
