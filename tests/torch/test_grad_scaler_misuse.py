"""Calls of a GradScaler in a wrong order, wrong arguments: each error names the likely cause or the argument."""

import pytest
import torch
from torch import nn

from golden.torch import amp
from golden.torch.amp import GradScaler


@pytest.fixture
def tensor():
    return nn.Parameter(torch.zeros(2))


@pytest.fixture
def optimizer(tensor):
    return torch.optim.SGD([tensor], lr=1.0)


@pytest.fixture(params=["dynamic", 8.0])
def scaler(request):
    return GradScaler(request.param)


ONCE = r"was step\(\) forgotten, or update\(\) called twice"
#: Calls, the one after them that is refused, and its message.
WRONG_ORDERS = {
    "unscaled backward": (["raw"], "step", r"no loss has been scaled .* was backward\(\) called on the loss itself"),
    "scale of the previous iteration": (["backward", "step", "update"], "unscale", "no loss has been scaled"),
    "no backward": (["scale"], "step", r"none of its parameters has a gradient; was backward\(\) forgotten"),
    "second unscale": (["backward", "unscale"], "unscale", r"unscale_\(\) was called on it since the last update\(\)"),
    "unscale after step": (["backward", "step"], "unscale", r"step\(\) was called on it .* is update\(\) missing"),
    "second step": (["backward", "step"], "step", r"has stepped since the last update\(\) already; is"),
    "scaled gradients": (["backward"], "step if finite", r"gradients are still scaled; call unscale_"),
    "update without a step": (["backward"], "update", ONCE),
    "second update": (["backward", "step", "update"], "update", ONCE),
}  # fmt: skip


@pytest.mark.parametrize("order", WRONG_ORDERS)
def test_call_in_a_wrong_order_names_the_likely_cause_and_changes_nothing(scaler, tensor, optimizer, order):
    calls = {
        "raw": lambda: tensor.sum().backward(),
        "scale": lambda: scaler.scale(tensor.sum()),
        "backward": lambda: scaler.scale(tensor.sum()).backward(),
        "unscale": lambda: scaler.unscale_(optimizer),
        "step": lambda: scaler.step(optimizer),
        "step if finite": lambda: scaler.step_if_finite(optimizer),
        "update": scaler.update,
    }
    done, refused, message = WRONG_ORDERS[order]
    for each in done:
        calls[each]()
    before = repr((tensor, tensor.grad))
    with pytest.raises(RuntimeError, match=message):
        calls[refused]()
    assert repr((tensor, tensor.grad)) == before


def test_iteration_that_an_error_has_ended_can_be_abandoned(scaler, tensor, optimizer):
    scaler.scale(tensor.sum()).backward()
    scaler.unscale_(optimizer)
    scale = scaler.get_scale()
    scaler.abandon()
    with pytest.raises(RuntimeError, match="no loss has been scaled"):
        scaler.unscale_(optimizer)
    scaler.load_state_dict(scaler.state_dict())
    optimizer.zero_grad()
    scaler.scale(tensor.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert (tensor.tolist(), scaler.get_scale()) == ([-1.0, -1.0], scale)


def test_update_scale_of_an_optimizer_that_is_still_scaled_is_refused(scaler, tensor, optimizer):
    other = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scaler.scale(tensor.sum()).backward()
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="no gradients have been unscaled"):
        scaler.update_scale([optimizer, other])


def test_update_scale_makes_ready_for_the_next_iteration(scaler, tensor, optimizer):
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(tensor.sum()).backward()
        assert scaler.clip_gradients_and_return_isfinite([optimizer])
        scaler.step_if_finite(optimizer)
        scaler.update_scale([optimizer])
    assert tensor.tolist() == [-2.0, -2.0]


def test_update_with_a_new_scale_sets_it_without_a_step(scaler):
    scaler.update(new_scale=torch.tensor(16.0))
    assert scaler.get_scale() == 16.0
    with pytest.raises(ValueError, match=r"^new_scale: got 0, must be positive"):
        scaler.update(new_scale=0)


def test_closure_is_refused(scaler, tensor, optimizer):
    scaler.scale(tensor.sum()).backward()
    with pytest.raises(TypeError, match=r"^closure: got one, must not be given"):
        scaler.step(optimizer, lambda: None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_in_16_bits_are_refused(scaler, dtype):
    tensor = nn.Parameter(torch.zeros(1, dtype=dtype))
    scaler.scale(tensor.sum()).backward()
    with pytest.raises(TypeError, match=r"got a gradient of torch\..*16, must be torch.float32; keep the parameters"):
        scaler.unscale_(torch.optim.SGD([tensor], lr=1.0))


@pytest.mark.parametrize("given", [None, 3, "SGD", nn.Linear(1, 1)])
def test_something_else_in_the_place_of_an_optimizer_is_refused(scaler, given):
    with pytest.raises(TypeError, match=r"^optimizer: got .*, must be a torch.optim.Optimizer"):
        scaler.step(given)


def test_no_optimizer_at_all_is_refused(scaler):
    with pytest.raises(ValueError, match=r"^optimizers: got no optimizer, must be at least one"):
        scaler.clip_gradients_and_return_isfinite([])


@pytest.mark.parametrize("given", [1.0, [1.0], None])
def test_loss_that_is_no_tensor_is_refused(scaler, given):
    with pytest.raises(TypeError, match=r"^outputs: got .*, must be a tensor"):
        scaler.scale(given)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        # The original takes any string for a static scale, and 0 for "not given".
        ({"loss_scale": "static"}, ValueError),
        ({"loss_scale": "1024"}, ValueError),
        ({"loss_scale": 0}, ValueError),
        ({"loss_scale": -1.0}, ValueError),
        ({"loss_scale": float("nan")}, ValueError),
        ({"loss_scale": True}, TypeError),
        ({"init_scale": 0}, ValueError),
        ({"min_loss_scale": 0.0}, ValueError),
        ({"max_loss_scale": 0}, ValueError),
        ({"steps_per_increase": -1}, ValueError),
        ({"overflow_tolerance": 2}, ValueError),
        ({"max_gradient_norm": 0}, ValueError),
        ({"max_gradient_norm": "1"}, TypeError),
        ({"hysteresis": 0}, ValueError),
    ],
)
def test_wrong_parameter_is_refused_by_name(arguments, error):
    with pytest.raises(error, match=rf"^{next(iter(arguments))}: got .*, must"):
        GradScaler(**{"loss_scale": "dynamic"} | arguments)


def test_optimizer_step_with_both_limits_is_refused_before_anything_happens(scaler, tensor, optimizer):
    loss = tensor.sum()
    with pytest.raises(ValueError, match=r"^max_gradient_norm: got 1.0 beside max_gradient_value 2.0"):
        amp.optimizer_step(loss, optimizer, scaler, max_gradient_norm=1.0, max_gradient_value=2.0)
    assert tensor.grad is None


@pytest.mark.parametrize("name", ["max_gradient_norm", "max_gradient_value", "max_gradient_val"])
@pytest.mark.parametrize("given", [0, -1.0, float("nan"), float("inf")])
def test_optimizer_step_with_a_limit_that_is_not_positive_is_refused(scaler, tensor, optimizer, name, given):
    with pytest.raises(ValueError, match=r"^max_gradient_(norm|value): got .*, must be positive"):
        amp.optimizer_step(tensor.sum(), optimizer, scaler, **{name: given})


def test_optimizer_step_without_a_scaler_says_what_to_pass(tensor, optimizer):
    with pytest.raises(TypeError, match=r"^grad_scaler: got None, must be a GradScaler; GradScaler\(None\)"):
        amp.optimizer_step(tensor.sum(), optimizer, None)


def test_parameter_of_two_optimizers_is_refused_and_divided_once(scaler, tensor, optimizer):
    other = torch.optim.SGD([nn.Parameter(torch.zeros(3)), tensor], lr=1.0)
    scaler.scale(tensor.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(
        RuntimeError, match=r"^optimizer: the gradient of its parameter 1 of shape \(2,\) was unscaled for ano"
    ):
        scaler.step(other)
    assert tensor.grad.tolist() == [1.0, 1.0]
    tensor.grad = None  # a separate gradient is another matter
    scaler.scale(tensor.sum()).backward()
    scaler.step(other)
    assert tensor.tolist() == [-1.0, -1.0]
    scaler.update()
    scaler.scale(tensor.sum()).backward()
    scaler.step(other)
