"""Weights kept in 16 bits: every step rounds once, by bits of its place; runs repeat, and go on from checkpoints."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import golden
import golden.torch as cstorch
from golden import BF16, CBFLOAT16, FP32, reference
from golden.philox import philox4x32_10
from golden.torch import MixedPrecision
from golden.torch.amp.weights import STEPS
from golden.torch.optim import keep_weights

from .runs import bits, run

KEY = 2**64 - 2**32  # of seed 0


def moved(count, update, fmt, steps, **options):
    """Return weights that begin at 1 after steps of plain descent by an update."""
    weight = nn.Parameter(torch.ones(count))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    keep_weights(optimizer, fmt, **options)
    for _ in range(steps):
        weight.grad = torch.full_like(weight, -update)
        optimizer.step()
    return weight.detach().numpy()


@pytest.mark.parametrize("fmt", [CBFLOAT16, BF16], ids=str)
def test_weights_after_each_step_are_the_references(fmt):
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2, bias=False))
    groups = [{"params": layers[0].parameters()}, {"params": layers[1].parameters(), "lr": 0.3}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    keep_weights(optimizer, fmt, seed=5)
    for step in range(3):
        before = [each.detach().clone() for each in layers.parameters()]
        assert all(torch.equal(each, torch.from_numpy(golden.quantize(each.numpy(), fmt))) for each in before)
        layers[1](layers[0](torch.randn(4, 3))).square().sum().backward()
        rates = [0.1, 0.1, 0.3]
        for number, (weight, old, rate) in enumerate(zip(layers.parameters(), before, rates, strict=True)):
            old.add_(weight.grad, alpha=-rate)  # the step of the optimizer, in float32
            before[number] = old
        optimizer.step()
        optimizer.zero_grad()
        for call, (weight, exact) in enumerate(zip(layers.parameters(), before, strict=True)):
            values = exact.flatten().tolist()
            wanted = []
            for index, value in enumerate(values):
                word = philox4x32_10((index, 0, step, call), (5, 2**32 - 1))[0] >> 16
                code = reference.encode(value, fmt, rounding="stochastic", random=word)
                wanted.append(golden.convert(np.uint16(code), fmt, FP32).item())
            got = weight.detach().numpy().view(np.uint32).flatten().tolist()
            assert [hex(each) for each in got] == [hex(each) for each in wanted]


def test_small_updates_are_lost_to_nearest_and_kept_on_average_stochastically():
    update, steps = 2.0**-14, 64  # an ulp of 1 in cbfloat16 is 2**-9
    assert (moved(1000, update, CBFLOAT16, steps, rounding="nearest_even") == 1).all()
    gained = moved(1000, update, CBFLOAT16, steps) - 1
    expected, ulp = steps * update, 2.0**-9
    assert set(np.unique(gained) / ulp) <= set(range(20))
    chance = update / ulp
    assert abs(gained.mean() - expected) < 5 * ulp * np.sqrt(steps * chance * (1 - chance) / 1000)


def test_stochastic_weights_repeat_by_seed():
    first = moved(100, 2.0**-12, BF16, 9, seed=3)
    assert (first == moved(100, 2.0**-12, BF16, 9, seed=3)).all()
    assert (first != moved(100, 2.0**-12, BF16, 9, seed=4)).any()
    assert (moved(100, 2.0**-12, BF16, 9) == moved(100, 2.0**-12, BF16, 9, seed=0)).all()


def test_steps_beyond_32_bits_begin_again():
    weights = []
    for done in (0, 2**32):
        weight = nn.Parameter(torch.ones(50))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        keep_weights(optimizer, BF16)
        optimizer.param_groups[0][STEPS] = done
        weight.grad = torch.full_like(weight, -(2.0**-9))
        optimizer.step()
        weights.append(weight.detach())
    assert torch.equal(*weights)
    assert (weights[0] != 1).any()


def test_weights_no_longer_kept_are_float32_again():
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    keep_weights(optimizer, "bfloat16").remove()
    weight.grad = torch.full_like(weight, -(2.0**-20))
    optimizer.step()
    assert (weight == 1 + 2.0**-20).all()


def test_skipped_step_takes_no_random_bits():
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    keep_weights(optimizer)
    scaler = cstorch.amp.GradScaler("dynamic", init_scale=2.0)
    for gradient, steps in ((float("inf"), 0), (1.0, 1)):
        scaler.scale(weight.sum()).backward()
        weight.grad.fill_(gradient)
        scaler.step(optimizer)
        scaler.update()
        assert optimizer.param_groups[0][STEPS] == steps


RANDOM = MixedPrecision(
    fp16_type="cbfloat16", precision_opt_level=2, loss_scaling_factor="dynamic", rounding="stochastic", seed=6,
    weight_type="cbfloat16",
)  # fmt: skip


def stopped_run(folder, change=lambda trainer: None):
    first, data = run(folder, precision=RANDOM)
    before = first.fit(data, steps=4)
    torch.manual_seed(99)
    random.seed(99)
    second, data = run(folder, precision=RANDOM)
    change(second)
    return before + second.fit(data, steps=7, resume=True), bits(second)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_trainer_with_random_products_and_weights_goes_on_bit_for_bit(tmp_path, monkeypatch):
    whole, data = run(tmp_path / "whole", precision=RANDOM)
    expected = whole.fit(data, steps=7), bits(whole)
    weights = np.concatenate([each.detach().numpy().ravel() for each in whole.model.parameters()])
    assert (golden.quantize(weights, CBFLOAT16) == weights).all()
    assert whole.autocast.products == 7 * 2
    assert stopped_run(tmp_path / "stopped") == expected
    # Without the number of its products, or of its steps, the run ends with other bits.
    with monkeypatch.context() as patch:
        patch.setattr(cstorch.precision, "products", property(lambda self: 0, lambda self, number: None))
        assert stopped_run(tmp_path / "products lost") != expected

    def forgetful(trainer):
        trainer.optimizer.register_load_state_dict_post_hook(
            lambda optimizer: [group.update({STEPS: 0}) for group in optimizer.param_groups] and None
        )

    assert stopped_run(tmp_path / "steps lost", forgetful) != expected


def test_younger_settings_leave_what_older_checkpoints_say():
    from golden.torch.training.identity import precision_settings

    assert not {"rounding", "seed", "weight_type"} & precision_settings(MixedPrecision(fp16_type="bfloat16")).keys()
    told = precision_settings(RANDOM)
    assert (told["rounding"], told["seed"], told["weight_type"]) == ("stochastic", 6, "cbfloat16")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"fmt": "float8_e5m2"}, ValueError, "^fmt: got float8_e5m2, must be a format of 16 bits"),
        ({"fmt": "float32"}, ValueError, "^fmt: got float32, must be a format of 16 bits"),
        ({"rounding": "odd"}, ValueError, "^rounding: got 'odd', must be"),
        ({"seed": -1}, ValueError, "^seed: got -1, must be 0 to 4294967295$"),
        ({"seed": 1.5}, TypeError, "^seed: got 1.5, must be an int from 0 to 4294967295$"),
        ({"optimizer": None}, TypeError, "^optimizer: got None, must be a torch.optim.Optimizer"),
        ({"optimizer": torch.optim.SGD([torch.ones(1).bfloat16()], lr=1)}, TypeError, "^optimizer: .* torch.bfloat16"),
    ],
)  # fmt: skip
def test_keep_weights_wrong_argument_is_named(given, error, message):
    arguments = {"optimizer": torch.optim.SGD([torch.ones(1)], lr=1)} | given
    with pytest.raises(error, match=message):
        keep_weights(**arguments)


def test_keep_weights_twice_is_refused():
    optimizer = torch.optim.SGD([torch.ones(1)], lr=1)
    keep_weights(optimizer)
    with pytest.raises(ValueError, match=r"^optimizer: got one that keeps its weights in 16 bits already"):
        keep_weights(optimizer)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inner": "float8_e5m2"}, "^inner: got 'float8_e5m2', must be None or one of"),
        ({"inner": "cbfloat16"}, "^inner: got 'cbfloat16', must be None: fp16_type='bfloat16'"),
        ({"weight_type": "float32"}, "^weight_type: got 'float32', must be None or one of"),
        ({"rounding": "odd"}, "^rounding: got 'odd', must be"),
        ({"weight_rounding": "odd"}, "^weight_rounding: got 'odd', must be"),
        ({"seed": 2**32}, "^seed: got 4294967296, must be 0 to"),
    ],
)
def test_mixed_precision_wrong_addition_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        MixedPrecision(fp16_type="bfloat16", **given)


def test_rounding_is_an_argument_of_autocast_and_a_key_of_yaml():
    x = torch.full((1, 40), 1 / 3)
    with cstorch.precision("cbfloat16", 2, rounding="up", out_rounding="down"):
        wanted = x @ x.T
    with cstorch.amp.autocast("cbfloat16", 2, rounding="up", out_rounding="down"):
        assert torch.equal(x @ x.T, wanted)
    settings = cstorch.precision_from_yaml(
        {"trainer": {"init": {"precision": {
            "fp16_type": "cbfloat16", "precision_opt_level": 2, "loss_scaling_factor": "dynamic", "rounding": "up",
            "out_rounding": "down", "seed": 4, "weight_type": "bfloat16",
        }}}}
    )  # fmt: skip
    assert (settings.seed, settings.weight_type) == (4, "bfloat16")
    with settings.autocast():
        assert torch.equal(x @ x.T, wanted)
    with cstorch.precision("cbfloat16", 2):
        assert not torch.equal(x @ x.T, wanted)


def test_weight_without_axes_keeps_its_shape():
    # It was a RuntimeError: output with shape [] doesn't match the broadcast shape [1].
    weight = nn.Parameter(torch.tensor(1.001))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    keep_weights(optimizer, "cbfloat16", rounding="up")
    assert golden.encode(weight.detach().numpy(), CBFLOAT16) == 0x3E01
    weight.grad = torch.tensor(-(2.0**-20))
    optimizer.step()
    assert weight.shape == ()
    assert golden.encode(weight.detach().numpy(), CBFLOAT16) == 0x3E02
