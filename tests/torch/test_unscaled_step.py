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


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_other_formats_need_no_scaling(half):
    model, optimizer = parts()
    forward_and_backward(model, half)
    optimizer.step()


def test_gradients_that_were_only_looked_at_do_not_disturb_a_later_training():
    forward_and_backward(nn.Linear(3, 2))
    model, optimizer = parts()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()


def test_forward_pass_alone_does_not_count():
    model, optimizer = parts()
    model(torch.ones(4, 3)).sum().backward()
    with cstorch.precision(half="cbfloat16"), torch.no_grad():
        model(torch.ones(4, 3))
    optimizer.step()


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, cstorch.optim.AdamW])
def test_raw_loop_that_only_sets_cbfloat16_is_refused(optimizer):
    cstorch.amp.set_half_dtype("cbfloat16")
    model, optimizer = parts(optimizer)
    before = model.weight.detach().clone()
    model(torch.ones(4, 3)).sum().backward()
    with pytest.raises(RuntimeError, match=r"^optimizer: the half type is cbfloat16.*GradScaler\('dynamic'\)"):
        optimizer.step()
    assert torch.equal(model.weight, before)


def test_raw_loop_that_says_that_fp32_is_meant_trains():
    cstorch.amp.set_half_dtype("cbfloat16")
    cstorch.amp.enable_mixed_precision(False)
    model, optimizer = parts()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()


def test_context_in_another_format_trains_where_cbfloat16_is_set():
    cstorch.amp.set_half_dtype("cbfloat16")
    model, optimizer = parts()
    forward_and_backward(model, "bfloat16")
    optimizer.step()
