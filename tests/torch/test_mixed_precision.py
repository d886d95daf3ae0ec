"""MixedPrecision: which combinations train, which warn, which are refused, and the settings of the training."""

import warnings
from dataclasses import FrozenInstanceError

import pytest
import torch

import golden.torch as cstorch
from golden.torch import MixedPrecision


def cbfloat16(**arguments):
    return MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", **arguments)


@pytest.mark.parametrize("factor", [None, 1.0, 1])
def test_cbfloat16_without_loss_scaling_is_refused_and_told_what_to_set(factor):
    with pytest.raises(ValueError, match=r"^loss_scaling_factor: got .* with fp16_type cbfloat16, must be 'dynamic'"):
        MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor=factor)


def test_cbfloat16_with_a_static_scale_trains_with_a_warning():
    with pytest.warns(UserWarning, match=r"^loss_scaling_factor: got 1024 with fp16_type cbfloat16; .* Model Zoo"):
        precision = MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor=1024)
    assert precision.grad_scaler().get_scale() == 1024.0


@pytest.mark.parametrize("factor", [None, 1.0])
def test_float16_without_loss_scaling_warns(factor):
    with pytest.warns(
        UserWarning, match=r"^loss_scaling_factor: got .* with fp16_type float16; .* set 'dynamic'"
    ) as caught:
        precision = MixedPrecision(loss_scaling_factor=factor)
    assert caught[0].filename == __file__
    assert precision.grad_scaler().state_dict() == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"fp16_type": "bfloat16"},
        {"fp16_type": "bfloat16", "loss_scaling_factor": "dynamic"},
        {"fp16_type": "float16", "loss_scaling_factor": "dynamic"},
        {"fp16_type": "float16", "loss_scaling_factor": 8.0},
        {"fp16_type": "cbfloat16", "loss_scaling_factor": "dynamic"},
        {"fp16_type": "cbfloat16", "enabled": False},
        {"fp16_type": "float16", "enabled": False},
    ],
)
def test_sound_combination_is_silent(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixedPrecision(**arguments)


def test_autocast_is_the_context_of_format_level_and_chunk():
    # 2^11 + 33 * 1 in cbfloat16 at level 2 stalls at 2^11: the sum of 10 bits cannot take the ones up.
    x, y = torch.ones(1, 34), torch.ones(34, 1)
    x[0, 0] = 2.0**11
    results = {}
    for level, chunk in ((0, 32), (1, 2), (1, None), (2, 32)):
        with cbfloat16(precision_opt_level=level, chunk=chunk).autocast():
            assert cstorch.get_half_dtype_str() == "cbfloat16"
            results[level, chunk] = (x @ y).item()
    assert results == {(0, 32): 2080.0, (1, 2): 2080.0, (1, None): 2048.0, (2, 32): 2048.0}


def test_disabled_precision_is_pytorch():
    x = torch.full((1, 1), 1 / 3)
    with MixedPrecision(enabled=False).autocast():
        assert torch.equal(x @ x, torch.matmul(x, x))
        assert (x @ x).item() == torch.tensor(1 / 3).square().item()
    assert MixedPrecision(enabled=False, loss_scaling_factor="dynamic").grad_scaler().state_dict() == {}


def test_scaler_takes_the_settings_and_the_defaults_of_the_format():
    assert cbfloat16().grad_scaler().get_scale() == 2.0**31
    assert MixedPrecision(loss_scaling_factor="dynamic").grad_scaler().get_scale() == 2.0**15
    scaler = cbfloat16(
        initial_loss_scale=4.0, steps_per_increase=0, min_loss_scale=2.0, max_loss_scale=8.0
    ).grad_scaler()
    tensor = torch.nn.Parameter(torch.zeros(1))
    optimizer, scales = torch.optim.SGD([tensor], lr=1.0), []
    for value in (1.0, 1.0, float("inf"), float("inf"), float("inf")):
        scaler.scale(tensor.sum()).backward()
        tensor.grad.fill_(value)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 8.0, 4.0, 2.0, 2.0]


def test_half_type_of_the_process_stays_as_it_is():
    cbfloat16().grad_scaler()
    assert cstorch.get_half_dtype_str() == "float16"


def test_configuration_is_frozen():
    with pytest.raises(FrozenInstanceError):
        cbfloat16().enabled = False


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"enabled": 1}, TypeError),
        ({"log_loss_scale": "yes"}, TypeError),
        ({"fp16_type": "fp16"}, ValueError),
        ({"fp16_type": torch.float16}, ValueError),
        ({"precision_opt_level": 3}, ValueError),
        ({"precision_opt_level": True}, TypeError),
        ({"loss_scaling_factor": 0}, ValueError),
        ({"loss_scaling_factor": "static"}, ValueError),
        ({"loss_scaling_factor": True}, TypeError),
        ({"initial_loss_scale": -1}, ValueError),
        ({"steps_per_increase": 1.5}, TypeError),
        ({"min_loss_scale": 0}, ValueError),
        ({"max_loss_scale": float("inf")}, ValueError),
        ({"max_gradient_norm": 0.0}, ValueError),
        ({"max_gradient_value": -1.0}, ValueError),
        ({"max_gradient_norm": 1.0, "max_gradient_value": 1.0}, ValueError),
        ({"chunk": 0}, ValueError),
        ({"chunk": 1.5}, TypeError),
    ],
)
@pytest.mark.parametrize("enabled", [True, False])
def test_wrong_key_is_refused_by_name(arguments, error, enabled):
    with pytest.raises(error, match=rf"^{next(iter(arguments))}: got .*, must"):
        MixedPrecision(**{"fp16_type": "bfloat16", "enabled": enabled} | arguments)
