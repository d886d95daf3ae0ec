"""GradScaler: bits of scaled losses and unscaled gradients, skipped steps, clipping."""

import copy
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from golden.torch.amp import GradScaler, set_half_dtype


def parameter(*values):
    return nn.Parameter(torch.tensor(values, dtype=torch.float32))


def set_gradient(scaler, tensor, values):
    """Go through scale and backward, then put `values` in the place of the scaled gradient."""
    scaler.scale(tensor.sum()).backward()
    tensor.grad.copy_(torch.tensor(values, dtype=torch.float32))


def bits(tensor):
    return tensor.detach().numpy().view(np.uint32).tolist()


def flat_state(optimizer):
    return [
        value.clone() if isinstance(value, torch.Tensor) else value
        for state in optimizer.state.values()
        for value in state.values()
    ]


@pytest.mark.parametrize(("half", "largest"), [("cbfloat16", 2.0**31), ("float16", 2.0**15), ("bfloat16", 2.0**15)])
def test_dynamic_scale_starts_at_the_default_of_the_half_type(half, largest):
    set_half_dtype(half)
    assert GradScaler("dynamic").get_scale() == largest


def test_initial_scale_above_the_maximum_starts_at_the_maximum():
    assert GradScaler("dynamic", init_scale=2.0**16, max_loss_scale=2.0**10).get_scale() == 2.0**10


def test_scale_of_a_loss_is_one_fp32_product():
    loss = torch.tensor(1 / 3)
    assert bits(GradScaler(3.1).scale(loss)) == bits(torch.tensor(np.float32(1 / 3) * np.float32(3.1)))


def test_scale_of_several_losses_keeps_their_container():
    one, two = GradScaler(4.0).scale((torch.tensor(1.0), [torch.tensor(2.0)]))[0:2]
    assert (one.item(), two[0].item()) == (4.0, 8.0)


def test_scale_of_a_float16_loss_is_fp32():
    # 1 * 2^31 is infinite in float16.
    set_half_dtype("cbfloat16")
    scaled = GradScaler("dynamic").scale(torch.tensor(1.0, dtype=torch.float16))
    assert (scaled.dtype, scaled.item()) == (torch.float32, 2.0**31)


def test_unscaled_gradients_are_correctly_rounded_quotients():
    # For scale 3, multiplying with fp32(1/3) is wrong in many places.
    scaler = GradScaler(3.0)
    tensor = nn.Parameter(torch.zeros(4096))
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    values = torch.randn(4096).numpy()
    set_gradient(scaler, tensor, values)
    scaler.unscale_(optimizer)
    exact = [Fraction(float(value)) / 3 for value in values]
    nearest = [np.float32(float(each)) for each in exact]  # float64 between: no tie of fp32 is a third of fp32
    assert bits(tensor.grad) == np.array(nearest).view(np.uint32).tolist()
    assert (values * np.float32(1 / 3) != values / np.float32(3)).any()


@pytest.mark.parametrize("culprit", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("mode", ["dynamic", 8.0])
def test_step_with_a_gradient_that_is_not_finite_changes_nothing(culprit, kind, mode):
    scaler = GradScaler(mode, init_scale=8.0)
    tensor = parameter(1.0, 2.0)
    optimizer = kind([tensor], lr=0.5, **({"momentum": 0.9} if kind is torch.optim.SGD else {}))
    set_gradient(scaler, tensor, [8.0, 16.0])
    scaler.step(optimizer)
    scaler.update()
    before, state = bits(tensor), flat_state(optimizer)
    assert state, "no optimizer state that could change"
    set_gradient(scaler, tensor, [8.0, culprit])
    assert scaler.step(optimizer) is None
    scaler.update()
    assert bits(tensor) == before
    assert all(
        torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(state, flat_state(optimizer), strict=True)
    )
    assert scaler.get_num_skipped_steps() == 1
    assert scaler.get_scale() == (4.0 if mode == "dynamic" else 8.0)


@pytest.mark.parametrize(
    ("values", "finite"),
    [
        ([3e38, 3e38], False),  # each finite, the norm 4.2e38 above fp32's 3.4e38
        ([3e38, 1e38], True),
        ([1e30] * 100, True),  # the squares are beyond fp32, the norm 1e31 is not
        ([0.0, 0.0], True),
    ],
)
def test_step_is_finite_if_the_fp32_norm_is_below_infinity(values, finite):
    scaler = GradScaler(1.0)
    tensor = nn.Parameter(torch.zeros(len(values)))
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    set_gradient(scaler, tensor, values)
    assert scaler.clip_gradients_and_return_isfinite([optimizer]) is finite
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_num_skipped_steps() == (not finite)


def test_division_by_a_scale_below_one_can_overflow_and_skips():
    # 2^127 / 2^-14 is beyond fp32 although the scaled gradient is finite.
    scaler = GradScaler(2.0**-14)
    tensor = parameter(0.0)
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    set_gradient(scaler, tensor, [2.0**127])
    scaler.step(optimizer)
    assert tensor.item() == 0.0


def test_run_without_limits_equals_torch_amp_bit_for_bit():
    # torch grows after `growth_interval` finite steps, the contract on the step after steps_per_increase.
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 1))
    twin = copy.deepcopy(model)
    ours = GradScaler(
        "dynamic", init_scale=2.0**10, steps_per_increase=3, min_loss_scale=2.0**-100, max_loss_scale=2.0**100
    )
    theirs = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=4)
    optimizers = [torch.optim.AdamW(each.parameters(), lr=0.01) for each in (model, twin)]
    scales = set()
    for step in range(60):
        batch = torch.randn(8, 5) * (1e25 if step % 11 == 5 else 1)
        for net, scaler, optimizer in zip((model, twin), (ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            scaler.scale((net(batch) ** 2).mean()).backward()
            scaler.step(optimizer)
            scaler.update()
        scales.add(ours.get_scale())
        assert ours.get_scale() == theirs.get_scale()
        assert [bits(each) for each in model.parameters()] == [bits(each) for each in twin.parameters()]
    assert len(scales) > 3
    assert ours.get_num_skipped_steps() == 5


def test_step_without_unscale_equals_step_with_it():
    results = []
    for explicit in (False, True):
        scaler, tensor = GradScaler(4.0), parameter(1.0)
        optimizer = torch.optim.SGD([tensor], lr=1.0)
        set_gradient(scaler, tensor, [2.0])
        if explicit:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        results.append(tensor.item())
    assert results == [0.5, 0.5]


def test_step_passes_on_what_the_optimizer_returns():
    class Telling(torch.optim.SGD):
        def step(self, extra=None):
            super().step()
            return extra

    scaler, tensor = GradScaler(2.0), parameter(1.0)
    optimizer = Telling([tensor], lr=1.0)
    set_gradient(scaler, tensor, [2.0])
    assert scaler.step(optimizer, extra="told") == "told"


def test_disabled_scaler_is_a_plain_loop_even_with_gradients_that_are_not_finite():
    scaler, tensor = GradScaler(), parameter(1.0)
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    loss = tensor.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.update()
    assert (tensor.item(), scaler.get_scale(), scaler.get_num_skipped_steps(), scaler.state_dict()) == (0.0, 1.0, 0, {})
    tensor.grad.fill_(float("inf"))
    scaler.step(optimizer)
    assert tensor.item() == float("-inf")


def test_gradients_accumulated_over_batches_are_unscaled_once():
    scaler, tensor = GradScaler(2.0**10), parameter(0.0)
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    for factor in (1.0, 2.0, 4.0):
        scaler.scale((tensor * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert tensor.item() == -7.0


@pytest.mark.parametrize("mode", [None, 4.0, "dynamic"])
def test_step_clips_to_the_maximal_norm_in_every_mode(mode):
    scaler, tensor = GradScaler(mode, init_scale=4.0, max_gradient_norm=1.0), parameter(0.0, 0.0)
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    set_gradient(scaler, tensor, np.array([3.0, 4.0]) * scaler.get_scale())
    judged = parameter(0.0, 0.0)
    judged.grad = torch.tensor([3.0, 4.0])
    torch.nn.utils.clip_grad_norm_([judged], 1.0)
    scaler.step(optimizer)
    torch.testing.assert_close(-tensor.detach(), judged.grad, rtol=2e-7, atol=0)


def test_gradients_below_the_maximal_norm_are_not_touched():
    scaler, tensor = GradScaler(1.0, max_gradient_norm=5.1), parameter(0.0, 0.0)
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    set_gradient(scaler, tensor, [3.0, 4.0])
    scaler.step(optimizer)
    assert tensor.tolist() == [-3.0, -4.0]


def test_several_optimizers_clip_by_their_common_norm():
    scaler, one, two = GradScaler(1.0, max_gradient_norm=1.0), parameter(0.0), parameter(0.0)
    optimizers = [torch.optim.SGD([each], lr=1.0) for each in (one, two)]
    set_gradient(scaler, one, [3.0])
    set_gradient(scaler, two, [4.0])
    assert scaler.clip_gradients_and_return_isfinite(optimizers)
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert [one.item(), two.item()] == pytest.approx([-0.6, -0.8], rel=1e-6)


def test_several_optimizers_unscaled_together_skip_together():
    scaler, one, two = GradScaler("dynamic", init_scale=2.0), parameter(0.0), parameter(0.0)
    optimizers = [torch.optim.SGD([each], lr=1.0) for each in (one, two)]
    set_gradient(scaler, one, [2.0])
    set_gradient(scaler, two, [float("inf")])
    for optimizer in optimizers:
        scaler.unscale_(optimizer)
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert (one.item(), two.item(), scaler.get_scale(), scaler.get_num_skipped_steps()) == (0.0, 0.0, 1.0, 1)


def test_two_optimizers_with_a_common_norm_beyond_fp32_skip():
    scaler, one, two = GradScaler(1.0), parameter(0.0), parameter(0.0)
    optimizers = [torch.optim.SGD([each], lr=1.0) for each in (one, two)]
    for each in (one, two):
        set_gradient(scaler, each, [3e38])
    for optimizer in optimizers:
        scaler.unscale_(optimizer)
    for optimizer in optimizers:
        scaler.step(optimizer)
    assert (one.item(), two.item()) == (0.0, 0.0)
    assert scaler.get_skip_reason() == "the L2 norm of the gradients of all optimizers together is infinite"


def test_sparse_gradients_are_unscaled_without_repetitions():
    embedding = nn.Embedding(4, 1, sparse=True)
    with torch.no_grad():
        embedding.weight.zero_()
    optimizer = torch.optim.SGD(embedding.parameters(), lr=1.0)
    scaler = GradScaler(8.0)
    scaler.scale(embedding(torch.tensor([1, 1, 3])).sum()).backward()
    scaler.step(optimizer)
    assert embedding.weight.flatten().tolist() == [0.0, -2.0, 0.0, -1.0]


def test_sparse_gradient_whose_repetitions_add_up_to_infinity_skips():
    embedding = nn.Embedding(4, 1, sparse=True)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=1.0)
    scaler = GradScaler(2.0)
    scaler.scale((embedding(torch.tensor([1, 1])) * 1.5e38).sum()).backward()
    assert torch.isfinite(embedding.weight.grad._values()).all()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_num_skipped_steps() == 1


def test_reason_of_a_skipped_step_names_the_first_parameter():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    scaler = GradScaler("dynamic", named_parameters=model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    model[1].weight.grad[0, 1] = float("-inf")
    model[1].bias.grad[0] = float("nan")
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_skip_reason() == "the gradient of 1.weight is -inf in 1 of 6 places"
    optimizer.zero_grad()
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_skip_reason() is None


def test_reason_without_names_tells_the_place_in_the_optimizer():
    scaler, tensor = GradScaler(1.0), parameter(0.0, 1.0)
    optimizer = torch.optim.SGD([{"params": [parameter(1.0)]}, {"params": [tensor]}], lr=1.0)
    set_gradient(scaler, tensor, [float("nan"), float("inf")])
    scaler.step(optimizer)
    assert scaler.get_skip_reason() == "the gradient of parameter 0 of parameter group 1 is nan in 2 of 2 places"


def test_hysteresis_of_two_halves_on_the_second_overflow_in_a_row():
    scaler, tensor = GradScaler("dynamic", init_scale=8.0, hysteresis=2), parameter(0.0)
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    seen = []
    for gradient in (float("inf"), 1.0, float("inf"), float("inf")):
        set_gradient(scaler, tensor, [gradient])
        scaler.step(optimizer)
        scaler.update()
        seen.append(scaler.get_scale())
    assert seen == [8.0, 8.0, 8.0, 4.0]
    assert scaler.get_num_skipped_steps() == 3


def test_overflow_that_clipping_by_value_hides_is_still_skipped():
    scaler, tensor = GradScaler("dynamic", max_gradient_norm=10.0), parameter(0.0)
    optimizer = torch.optim.SGD([tensor], lr=1.0)
    set_gradient(scaler, tensor, [float("inf")])
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_value_([tensor], 1.0)
    assert not scaler.clip_gradients_and_return_isfinite(optimizer)
    scaler.step(optimizer)
    assert (tensor.item(), tensor.grad.item()) == (0.0, 1.0)
