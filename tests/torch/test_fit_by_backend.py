"""``fit --backend NAME``: another back end computes all products of a run, and its weights are the same bits."""

from importlib import metadata

import pytest
import safetensors.torch
import torch

import golden
import golden.torch as cstorch
from hdl.engine import Engine
from tests.hdl.engine_double import Double

from .run_files import call, log, refused

pytestmark = pytest.mark.usefixtures("threads_as_before")

SMALL = ("--set", "trainer.init.model.hidden=[16]", "--set", "trainer.fit.train_dataloader.batch_size=16")


def weights(folder):
    (newest,) = (folder / "checkpoints").glob("step_*")
    return safetensors.torch.load_file(newest / "weights.safetensors")


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name].view(torch.int32), other[name].view(torch.int32)) for name in one)


class Behind:
    """Brings a back end of the name ``double`` as an entry point does; `value` names what this gives."""

    def __init__(self, monkeypatch):
        self.double, self.made = Double(size=1 << 18), 0
        entry = metadata.EntryPoint("double", f"{__name__}:made", "cbfloat.backends")
        monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
        monkeypatch.setattr("golden.arrays.backends._loaded", {})
        monkeypatch.setitem(globals(), "made", self.engine)

    def engine(self):
        self.made += 1
        return Engine(self.double)


@pytest.fixture
def behind(monkeypatch):
    return Behind(monkeypatch)


@pytest.fixture(scope="module")
def by_processor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processor")
    assert call("fit", "digits_mlp", folder, "--steps", "3", *SMALL) == 0
    return folder


def test_fit_by_another_backend_gives_the_same_weights_and_losses(behind, by_processor, tmp_path, capsys):
    assert call("fit", "digits_mlp", tmp_path, "--steps", "3", "--backend", "double", *SMALL) == 0
    assert same(weights(tmp_path), weights(by_processor))
    assert log(tmp_path) == log(by_processor)
    # Two layers: two forward, two gradients of weights and one of inputs in a step; the validation comes on top.
    assert len(behind.double.commands) > 3 * 5
    assert "products by the back end engine, 1 process" in capsys.readouterr().out
    assert call("validate", "digits_mlp", tmp_path, "--backend", "double", *SMALL) == 0
    assert behind.made == 1


def test_one_wrong_bit_of_a_backend_shows_in_the_weights(behind, by_processor, tmp_path):
    run = behind.double.run

    def wrong(tag):
        result = run(tag)
        command = behind.double.commands[-1]
        if len(behind.double.commands) == 7:
            behind.double.bytes[command["D_ADDRESS"] - behind.double.memory.base] ^= 1
        return result

    behind.double.run = wrong
    assert call("fit", "digits_mlp", tmp_path, "--steps", "3", "--backend", "double", *SMALL) == 0
    assert not same(weights(tmp_path), weights(by_processor))


@pytest.mark.long
def test_fit_with_biases_by_the_simulated_engine_gives_the_weights_of_the_processor(by_processor, tmp_path):
    assert call("fit", "digits_mlp", tmp_path, "--steps", "3", "--backend", "simulated", *SMALL) == 0
    assert same(weights(tmp_path), weights(by_processor))
    assert log(tmp_path) == log(by_processor)


def test_fit_with_biases_by_an_engine_without_initial_values_is_refused_with_the_reason(behind, tmp_path, capsys):
    behind.double = Double(initial=0)
    said = refused(capsys, "fit", "digits_mlp", tmp_path, "--steps", "3", "--backend", "double", *SMALL)
    assert "--backend: got 'engine', but the engine was built without initial values; " in said


def test_backend_that_is_none_is_told_with_those_that_are_there(behind, tmp_path, capsys):
    said = refused(capsys, "fit", "digits_mlp", tmp_path, "--backend", "doubel")
    assert "--backend: got 'doubel', must be one of " in said
    assert "numpy, exact, double; did you mean double?" in said


def test_product_that_a_backend_does_not_serve_ends_the_run_with_the_reason(behind, tmp_path, capsys):
    half = ("--set", "trainer.init.precision.fp16_type=cb16")
    said = refused(capsys, "fit", "digits_mlp", tmp_path, "--backend", "double", *half, *SMALL)
    assert "--backend: got 'engine', but the engine takes cbfloat16, float16, bfloat16, not cb16; " in said


def test_entry_point_that_gives_no_backend_is_told(behind, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(globals(), "made", dict)
    said = refused(capsys, "fit", "digits_mlp", tmp_path, "--backend", "double")
    assert "gave {}, must have name, obstacle and compute" in said
    missing = metadata.EntryPoint("double", "nothing_of_this_name:made", "cbfloat.backends")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [missing])
    said = refused(capsys, "fit", "digits_mlp", tmp_path, "--backend", "double")
    assert (
        "--backend: got 'double', but the entry point nothing_of_this_name:made of the group cbfloat.backends" in said
    )
    assert "cannot be loaded: No module named 'nothing_of_this_name'" in said


def trained(*, bias):
    torch.manual_seed(0)
    layers = torch.nn.Linear(12, 16, bias=bias), torch.nn.ReLU(), torch.nn.Linear(16, 5, bias=bias)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = cstorch.amp.GradScaler(loss_scale="dynamic", init_scale=2.0**31)
    x, y = torch.randn(16, 12), torch.randint(0, 5, (16,))
    for _ in range(3):
        optimizer.zero_grad()
        with cstorch.precision(half="cbfloat16", level=1):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return dict(model.named_parameters())


@pytest.mark.long
@pytest.mark.parametrize("bias", [False, True])
def test_steps_with_loss_scaling_by_the_rtl_give_the_weights_of_the_processor(bias):
    wanted = trained(bias=bias)
    with Engine.simulated(rows=2, columns=2) as engine:
        engine.clear_counters()
        with golden.backend(engine):
            found = trained(bias=bias)
        assert engine.counters()["beats"] > 1000
    assert same({name: each.detach() for name, each in found.items()}, {k: v.detach() for k, v in wanted.items()})
