"""Layers of blocks in models: conversion, random bits that a checkpoint repeats, and runs that resume."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import golden.torch as cstorch
from golden import Randomness
from golden.torch import mx
from golden.torch.settings.draws import branched
from golden.torch.training.commands.line import main

from ..copied import ROOT
from .oracle import assert_same_tensors, normal
from .runs import bits, run

STOCHASTIC = {"element": "nvfp4", "gradient_element": "nvfp4", "gradient_rounding": "stochastic"}


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(40, 32), nn.ReLU(), nn.Sequential(nn.Linear(32, 24), nn.Linear(24, 8)))


def passed(net, x, wrap=lambda net, x: net(x)):
    """The results and gradients of two passes."""
    found = []
    for number in range(2):
        net.zero_grad()
        with cstorch.precision("cbfloat16", level=1):
            result = wrap(net, x)
        (result.float() * normal(*result.shape, seed=number)).sum().backward()
        found += [result, *(each.grad.clone() for each in net.parameters())]
    return found


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert_same_tensors(one, other)


def differ(found, wanted):
    return any((one != other).any() for one, other in zip(found, wanted, strict=True))


def test_layer_is_the_function_with_the_number_of_its_forward_pass():
    layer, x, upstream = mx.Linear(40, 8, random=Randomness(9, 5, 2), **STOCHASTIC), normal(6, 40), normal(6, 8)
    for number in range(3):
        weights = [each.detach().clone().requires_grad_() for each in (layer.weight, layer.bias)]
        random = Randomness(9, 5 + number * 2**32, 2)
        layer.zero_grad()
        with cstorch.precision("cbfloat16"):
            found, wanted = layer(x), mx.linear(x, *weights, random=random, **STOCHASTIC)
        for each in (found, wanted):
            each.backward(upstream)
        assert_same([found, layer.weight.grad, layer.bias.grad], [wanted, *(each.grad for each in weights)])
    assert layer.get_extra_state() == {"calls": 3}


def test_converted_model_has_the_same_parameters_names_hooks_and_ties():
    plain = model()
    plain[2][1].register_forward_hook(lambda *_: seen.append(1))
    plain.tied = plain[0]
    seen, before = [], [*plain.parameters()]
    keys = [*plain.state_dict()]
    assert mx.convert(plain, "float8_e4m3fn", scale="round_up", gradient_element="float8_e5m2") is plain
    assert all(one is other for one, other in zip(plain.parameters(), before, strict=True))
    assert [*plain.state_dict()] == keys
    assert plain.tied is plain[0]
    with cstorch.precision("cbfloat16"):
        plain[2](torch.ones(1, 32))
    assert seen == [1]
    assert str(plain[0]) == (
        "Linear(in_features=40, out_features=32, bias=True, blocks=(element=float8_e4m3fn block=32 scale=round_up), "
        "gradients=(element=float8_e5m2 block=32 scale=ocp_floor))"
    )
    mx.convert(plain, **STOCHASTIC)  # again, with other settings
    assert [key for key in plain.state_dict() if key not in keys] == [
        f"{name}._extra_state" for name in ("0", "2.0", "2.1", "tied")
    ]


def test_converted_layers_have_random_bits_by_their_place_among_all_layers():
    net, x = model(), normal(6, 40, seed=30)
    mx.convert(net, keep=["2.0"], random=Randomness(8, 7, 1), **STOCHASTIC)
    last = mx.Linear(24, 8, random=branched(Randomness(8, 7, 1), 3), **STOCHASTIC)
    last.load_state_dict({name: each for name, each in net[2][1].state_dict().items() if name != "_extra_state"})
    assert_same(passed(net[2][1], normal(6, 24, seed=31)), passed(last, normal(6, 24, seed=31)))
    wide = model()
    mx.convert(wide, random=Randomness(8, 7, 1), **STOCHASTIC)
    with cstorch.precision("cbfloat16"):
        kept = wide[0](x)
    assert type(net[2][0]) is nn.Linear
    with cstorch.precision("cbfloat16"):
        assert_same_tensors(net[0](x), kept)


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ((), []),
        (["2.1"], ["2.1"]),
        (["2.*"], ["2.0", "2.1"]),
        (["0", "*.0"], ["0", "2.0"]),
        (["*"], ["0", "2.0", "2.1"]),
    ],
)
def test_layers_that_are_kept_are_those_of_the_names_and_patterns(keep, kept):
    net = mx.convert(model(), "nvfp4", keep=keep)
    assert [name for name, each in net.named_modules() if type(each) is nn.Linear] == kept


def test_layer_of_another_class_stays_and_a_layer_alone_is_converted():
    attention = nn.MultiheadAttention(8, 2)
    with pytest.raises(ValueError, match=r"^model: got a MultiheadAttention without a torch.nn.Linear, must have one"):
        mx.convert(attention, "nvfp4")
    assert type(mx.convert(nn.Linear(32, 2), "nvfp4")) is mx.Linear


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"keep": "2.1"}, TypeError, "^keep: got '2.1', must be a list of names of layers"),
        ({"keep": [1]}, TypeError, "^keep: got 1 in it, must be a list of names of layers"),
        ({"keep": ["2.11"]}, ValueError, r"^keep: got '2.11', must match .* in the model; did you mean 2.1\?"),
        ({"keep": ["head.*"]}, ValueError, r"^keep: got 'head.\*', must match .*, such as '0', '2.0', '2.1'"),
        ({"random": Randomness()}, ValueError, "^random: got .*, must be None: only a rounding 'stochastic' takes"),
        ({"random": 7}, TypeError, "^random: got 7, must be a golden.Randomness or None"),
        ({"rounding": "stochastic", "random": Randomness(seed=2**32)}, ValueError, "^random: got a seed of 4294967296"),
        ({"element": None}, TypeError, "^element: got None, must be a FloatFormat or the name of one, or 'nvfp4'"),
        ({"gradient_scale": "round_up"}, ValueError, "^gradient_scale: got 'round_up' without gradient_element"),
    ],
)
def test_bad_conversion_is_named_and_changes_nothing(options, error, message):
    net = model()
    with pytest.raises(error, match=message):
        mx.convert(net, **{"element": "float8_e4m3fn", **options})
    assert not any(isinstance(each, mx.Linear) for each in net.modules())
    if "keep" not in options:
        with pytest.raises(error, match=message):
            mx.Linear(32, 4, **options)


def test_bad_shape_or_state_of_a_layer_is_named():
    with pytest.raises(TypeError, match=r"^in_features: got 1\.5, must be an int from 0"):
        mx.Linear(1.5, 2)
    with pytest.raises(RuntimeError, match=r"^in_features, out_features, device, dtype: "):
        mx.Linear(2, 2, device="nowhere")
    with pytest.raises(TypeError, match=r"^input: got a tensor of torch\.float64, must be torch\.float32"):
        mx.Linear(2, 2)(torch.ones(2, 2, dtype=torch.float64))
    for given in ((torch.ones(2, 32), torch.tensor(1.0)), (torch.tensor(1.0), torch.ones(2, 32))):
        with pytest.raises(ValueError, match=r"^(x|weight): got a tensor of shape \(\), must have an axis for"):
            mx.linear(*given)
    with pytest.raises(ValueError, match=r"^state: got 3, must be \{'calls': N\}, as get_extra_state\(\) returns it"):
        mx.Linear(2, 2).set_extra_state(3)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("copied", [False, True])
def test_checkpoint_computes_the_same_bits_again_and_later_passes_have_the_numbers_that_follow(reentrant, copied):
    def wrap(net, x):
        return net[2](checkpoint(net[:2], x, use_reentrant=reentrant))

    x = normal(6, 40, seed=32, grad=True)
    plain, net = (mx.convert(model(), rounding="stochastic", **STOCHASTIC) for _ in range(2))
    if copied:
        net = pickle.loads(pickle.dumps(copy.deepcopy(net)))
    wanted = passed(plain, x)
    assert differ(wanted[:7], wanted[7:])  # each pass has other bits
    assert_same(passed(net, x, wrap), wanted)
    assert net[0].get_extra_state() == plain[0].get_extra_state() == {"calls": 2}


def test_state_dictionary_keeps_the_numbers_and_takes_the_weights_of_plain_layers():
    x, net = normal(6, 40, seed=33), mx.convert(model(), **STOCHASTIC)
    first = passed(net, x)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    later = mx.convert(model(), **STOCHASTIC)
    later.load_state_dict(torch.load(file, weights_only=True))
    wanted = passed(net, x)
    assert differ(first, wanted)
    assert_same(passed(later, x), wanted)
    again = mx.convert(model(), **STOCHASTIC)
    again.load_state_dict(model().state_dict())  # strictly
    assert_same(passed(again, x), first)
    model().load_state_dict(mx.convert(model(), "nvfp4", rounding="up").state_dict())


def trained(folder, *, stop=None, validates=False, **arguments):
    def net():
        torch.manual_seed(7)
        made = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 3))
        return mx.convert(made, random=Randomness(seed=arguments.get("seed", 1)), **STOCHASTIC)

    for steps in (stop, 7) if stop else (7,):
        trainer, data = run(folder, net=net())
        torch.manual_seed(5)
        losses = trainer.fit(data, steps=steps, resume=steps == 7 and stop is not None)
        if validates:
            trainer.validate(data)
            losses += trainer.fit(data, steps=9)
    return losses, bits(trainer)


def test_resumed_run_has_the_bits_of_one_that_never_stopped(tmp_path):
    losses, wanted = trained(tmp_path / "whole")
    after, found = trained(tmp_path / "parts", stop=3)
    assert found == wanted
    assert after == losses[3:]
    assert trained(tmp_path / "other", seed=2)[1] != wanted


def test_validation_takes_no_numbers_from_the_training(tmp_path):
    net = mx.convert(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), rounding="stochastic", **STOCHASTIC)
    trainer, data = run(tmp_path, net=net)
    trainer.fit(data, steps=2)
    before = net[0].get_extra_state()
    first, second = trainer.validate(data), trainer.validate(data)
    assert first == second
    assert net[0].get_extra_state() == before == {"calls": 2}
    trainer.evaluate(data, lambda outputs, _: outputs)
    assert net[0].get_extra_state() == before


def test_audit_leaves_the_numbers_as_they_are():
    net = mx.convert(model(), **STOCHASTIC)
    assert cstorch.audit(net, torch.ones(2, 40), show=False).exact == 11
    assert net[0].get_extra_state() == {"calls": 0}


@pytest.mark.usefixtures("threads_as_before")
def test_bundled_run_trains_with_blocks_and_resumes(tmp_path, capsys):
    place, folder = "trainer.init.model.blocks", tmp_path / "run"

    def fit(folder, *arguments, run="digits_mlp", keep="5"):
        blocks = {"element": "nvfp4", "gradient_element": "nvfp4", "gradient_rounding": "stochastic", "seed": "3"}
        blocks["keep"] = f'["{keep}"]'
        words = (word for key, value in blocks.items() for word in ("--set", f"{place}.{key}={value}"))
        assert main(["fit", run, "--model-dir", str(folder), "--no-progress", *words, *arguments]) == 0
        return [line.rpartition(",")[0] for line in (folder / "log.csv").read_text().splitlines()]

    whole = fit(tmp_path / "whole", "--steps", "4")
    assert (
        "linear layers of blocks: 2, the first is Linear(in_features=64, out_features=64, bias=True, "
        "blocks=(element=nvfp4 block=16 scale=nvidia_nvfp4), gradients=(element=nvfp4 block=16 scale=nvidia_nvfp4 "
        "rounding=stochastic))"
    ) in capsys.readouterr().out
    fit(folder, "--steps", "2")
    assert fit(folder, "--steps", "4", "--resume") == whole
    names = [each / "checkpoints/step_00000004/weights.safetensors" for each in (folder, tmp_path / "whole")]
    assert names[0].read_bytes() == names[1].read_bytes()
    fit(tmp_path / "gpt", "--steps", "1", run="character_gpt", keep="head")
    assert "linear layers of blocks: 8, the first is Linear(in_features=64, out_features=192" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("element=nvpf4", "trainer.init.model.blocks.element: got 'nvpf4', must be a FloatFormat or one of"),
        ("elment=nvfp4", "trainer.init.model.blocks.elment: is not a known key; did you mean element?"),
        ("scale=round_upp", "trainer.init.model.blocks.scale: got 'round_upp', must be one of ocp_floor, round_up, "),
        ('keep=["7"]', "trainer.init.model.blocks.keep: got '7', must match the name of a torch.nn.Linear"),
        ("seed=-1", "trainer.init.model.blocks.seed: got -1, must be greater than or equal to 0"),
    ],
)
def test_bad_section_of_blocks_is_named(tmp_path, capsys, setting, message):
    settings = ("element=float8_e4m3fn", setting)
    words = [word for each in settings for word in ("--set", f"trainer.init.model.blocks.{each}")]
    with pytest.raises(SystemExit):
        main(["fit", "digits_mlp", "--model-dir", str(tmp_path), "--no-progress", *words])
    assert message in capsys.readouterr().err


def test_example_of_the_training_guide_trains_with_blocks():
    guide = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (text,) = [block for block in guide.split("```python\n")[1:] if "cstorch.mx.convert(" in block]
    net, x = nn.Sequential(nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 8)), normal(5, 32, seed=34)
    net.head = nn.Linear(8, 4)
    before = net[0].weight.detach().clone()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scope = {
        "cstorch": cstorch, "golden": __import__("golden"), "model": net, "optimizer": optimizer, "inputs": x,
        "targets": torch.arange(5) % 4, "loss_fn": nn.functional.cross_entropy,
        "grad_scaler": cstorch.amp.GradScaler("dynamic"),
    }  # fmt: skip
    exec(text.split("```")[0], scope)
    assert type(net[0]) is mx.Linear
    assert type(net.head) is nn.Linear
    assert (net[0].weight != before).any()
    assert net[0].get_extra_state() == {"calls": 1}
