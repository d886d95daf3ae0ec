"""State dictionaries of a GradScaler: they bring a run back exactly, and nothing wrong gets in."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from golden.torch.amp import GradScaler

KEYS = ["loss_scale", "steps_since_rescale", "overflows_since_rescale", "num_skipped_steps"]


def advance(scaler, outcomes):
    tensor = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    for finite in outcomes:
        scaler.scale(tensor.sum()).backward()
        tensor.grad.fill_(1.0 if finite else float("nan"))
        scaler.step(optimizer)
        scaler.update()
    return scaler


def dynamic(**arguments):
    return GradScaler("dynamic", init_scale=2.0**10, steps_per_increase=3, overflow_tolerance=0.3, **arguments)


@given(
    before=st.lists(st.booleans(), max_size=12),
    after=st.lists(st.booleans(), max_size=12),
    hysteresis=st.integers(1, 3),
    as_tensors=st.booleans(),
)
def test_loaded_state_continues_as_if_nothing_had_happened(before, after, hysteresis, as_tensors):
    whole = advance(dynamic(hysteresis=hysteresis), before + after)
    state = json.loads(json.dumps(advance(dynamic(hysteresis=hysteresis), before).state_dict()))
    if as_tensors:
        state = {name: torch.tensor(value) for name, value in state.items()}
    resumed = dynamic(hysteresis=hysteresis)
    resumed.load_state_dict(state)
    assert advance(resumed, after).state_dict() == whole.state_dict()


@pytest.mark.parametrize("loss_scale", ["dynamic", 8.0])
def test_scale_that_is_set_keeps_the_count_of_skipped_steps_and_starts_the_rule_again(loss_scale):
    scaler = advance(GradScaler(loss_scale), [True, False, True, False, True])
    scaler.update(4.0)
    assert (scaler.get_scale(), scaler.get_num_skipped_steps()) == (4.0, 2)
    rule = {"steps_since_rescale": 0, "overflows_since_rescale": 0}
    assert scaler.state_dict() == {"loss_scale": 4.0, "num_skipped_steps": 2} | rule
    advance(scaler, [False])
    assert scaler.get_num_skipped_steps() == 3


def test_state_has_the_documented_keys():
    assert list(dynamic().state_dict()) == KEYS
    assert list(GradScaler(8.0).state_dict()) == KEYS
    assert list(dynamic(hysteresis=2).state_dict()) == [*KEYS, "overflows_in_a_row"]


def test_state_that_lacks_keys_leaves_the_defaults():
    scaler = dynamic()
    scaler.load_state_dict({"num_skipped_steps": 7})
    assert list(scaler.state_dict().values()) == [2.0**10, 0, 0, 7]
    scaler.load_state_dict({})
    assert list(scaler.state_dict().values()) == [2.0**10, 0, 0, 7]


def test_state_of_a_tensor_with_one_element_in_any_shape_is_taken():
    scaler = dynamic()
    scaler.load_state_dict({"loss_scale": torch.tensor([[4.0]]), "steps_since_rescale": torch.tensor([2])})
    assert list(scaler.state_dict().values()) == [4.0, 2, 0, 0]


def test_disabled_scaler_ignores_a_state():
    scaler = GradScaler(None)
    scaler.load_state_dict({"loss_scale": 4.0})
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"loss_scale": 0.0}, ValueError, "^loss_scale: got 0.0, must be positive"),
        ({"loss_scale": float("inf")}, ValueError, "^loss_scale: got inf, must be positive"),
        ({"loss_scale": "dynamic"}, TypeError, "^loss_scale: got 'dynamic', must be a positive number"),
        ({"loss_scale": torch.ones(2)}, TypeError, "^loss_scale: got tensor"),
        ({"steps_since_rescale": -1}, ValueError, "^steps_since_rescale: got -1, must be a number of steps"),
        ({"num_skipped_steps": 1.5}, ValueError, "^num_skipped_steps: got 1.5, must be a number of steps"),
        ({"num_skipped_steps": float("nan")}, ValueError, "^num_skipped_steps: got nan, must be a number of steps"),
        ({"num_skipped_steps": float("inf")}, ValueError, "^num_skipped_steps: got inf, must be a number of steps"),
        ({"loss_scal": 1.0}, ValueError, "^loss_scal: is not part of the state, .*; perhaps loss_scale is meant"),
        ({"growth_factor": 2.0}, ValueError, "^growth_factor: is not part of the state, must be one of loss_scale, "),
    ],
)
def test_wrong_state_is_refused_and_changes_nothing(state, error, message):
    scaler = dynamic()
    with pytest.raises(error, match=message):
        scaler.load_state_dict({"steps_since_rescale": 2} | state)
    assert list(scaler.state_dict().values()) == [2.0**10, 0, 0, 0]


def test_state_in_the_middle_of_an_iteration_is_refused():
    scaler = dynamic()
    scaler.scale(torch.tensor(1.0))
    with pytest.raises(RuntimeError, match=r"^state_dict: an iteration is under way"):
        scaler.load_state_dict({"loss_scale": 1.0})
