"""The dynamic scale starts where the format of the products wants it, whenever the scaler is made."""

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.amp import GradScaler


def model_and_batch():
    return nn.Linear(3, 2), torch.ones(4, 3)


def test_scaler_made_before_the_half_type_is_set_starts_with_that_of_cbfloat16():
    scaler = GradScaler("dynamic")
    assert scaler.get_scale() == 2.0**15
    cstorch.amp.set_half_dtype("cbfloat16")
    assert (scaler.get_scale(), scaler.get_non_clamped_scale()) == (2.0**31, 2.0**31)
    assert scaler.state_dict()["loss_scale"] == 2.0**31
    assert scaler.scale(torch.ones(())).item() == 2.0**31


def test_scaler_beside_an_initialized_model_starts_with_that_of_cbfloat16():
    model, batch = model_and_batch()
    cstorch.amp.initialize(model, half="cbfloat16")
    scaler = GradScaler("dynamic")
    assert scaler.get_scale() == 2.0**31
    loss = model(batch).sum()
    assert torch.equal(scaler.scale(loss), loss * 2.0**31)


@pytest.mark.parametrize(("half", "start"), [("cbfloat16", 2.0**31), ("float16", 2.0**15), ("bfloat16", 2.0**15)])
def test_products_of_the_first_loss_decide_outside_their_context(half, start):
    model, batch = model_and_batch()
    scaler = GradScaler("dynamic")
    with cstorch.precision(half=half):
        loss = model(batch).float().square().mean()
    scaled = scaler.scale(loss)
    assert scaler.get_scale() == start
    assert scaled.item() == loss.item() * start


def test_half_type_that_changes_after_the_first_loss_leaves_the_scale():
    scaler = GradScaler("dynamic")
    scaler.scale(torch.ones(()))
    cstorch.amp.set_half_dtype("cbfloat16")
    assert scaler.get_scale() == 2.0**15


def test_scaler_made_in_a_context_keeps_its_format():
    with cstorch.precision(half="cbfloat16"):
        scaler = GradScaler("dynamic")
    assert scaler.get_scale() == 2.0**31
    scaler.scale(torch.ones(()))
    assert scaler.get_scale() == 2.0**31


def test_loaded_scale_stays_and_grows_to_the_limit_of_cbfloat16():
    scaler = GradScaler("dynamic", steps_per_increase=0)
    scaler.load_state_dict({"loss_scale": 2.0**15})
    cstorch.amp.set_half_dtype("cbfloat16")
    assert scaler.get_scale() == 2.0**15
    weight = nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler.scale(weight * 1).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**16


def test_initial_loss_scale_is_another_name_of_init_scale():
    assert GradScaler("dynamic", initial_loss_scale=8.0).get_scale() == 8.0
    with pytest.raises(ValueError, match=r"^initial_loss_scale: another name of init_scale"):
        GradScaler("dynamic", init_scale=8.0, initial_loss_scale=8.0)
    with pytest.raises(ValueError, match=r"^initial_loss_scale: got -1, must be positive"):
        GradScaler("dynamic", initial_loss_scale=-1)


def test_update_after_update_scale_ends_the_iteration_and_adapts_once():
    weight = nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = GradScaler("dynamic", init_scale=8.0, max_loss_scale=64.0, steps_per_increase=0)
    scaler.scale(weight * 1).backward()
    scaler.step(optimizer)
    scaler.update_scale(optimizer)
    scaler.update()
    assert scaler.get_scale() == 16.0
    with pytest.raises(RuntimeError, match=r"^optimizers: no gradients have been unscaled"):
        scaler.update()


@pytest.mark.parametrize("factor", [2.0**20, "dynamic"])
def test_cbfloat16_with_a_factor_is_accepted_as_the_error_says(factor):
    with pytest.raises(ValueError, match=r"must be 'dynamic' or a number other than 1") as error:
        cstorch.MixedPrecision(fp16_type="cbfloat16")
    assert str(error.value).startswith("loss_scaling_factor: got None with fp16_type cbfloat16")
    if factor == "dynamic":
        assert cstorch.MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor=factor).scales_loss
    else:
        with pytest.warns(UserWarning, match="a static scale works here"):
            assert cstorch.MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor=factor).scales_loss
