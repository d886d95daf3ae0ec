"""amp.initialize and amp.autocast: a model runs exactly without a context at every call."""

import copy
import inspect
import pickle

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch import amp
from golden.torch.settings.scopes import scopes

X = torch.linspace(-1, 1, 6).view(2, 3) / 3


def test_initialised_model_computes_what_a_context_computes():
    model = nn.Linear(3, 4)
    plain = model(X)
    with cstorch.precision(half="cbfloat16", level=2):
        expected = model(X)
    assert not torch.equal(plain, expected)
    assert amp.initialize(model, half="cbfloat16", level=2) is model
    assert torch.equal(model(X), expected)
    assert torch.equal(copy.deepcopy(model)(X), expected)


def test_copy_of_an_initialised_model_runs_its_own_parameters():
    model = amp.initialize(nn.Linear(3, 4), half="bfloat16")
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.weight.zero_()
        twin.bias.zero_()
    assert not twin(X).any()
    assert model(X).any()


def test_half_type_is_that_of_the_call_of_initialize():
    amp.set_half_dtype("bfloat16")
    model = amp.initialize(nn.Linear(3, 4))
    amp.set_half_dtype("float16")
    assert model(X).dtype == torch.bfloat16


def test_disabled_initialisation_leaves_the_model_to_pytorch():
    model = nn.Linear(3, 4)
    plain = model(X)
    assert torch.equal(amp.initialize(model, enabled=False)(X), plain)


def test_optimizers_come_back_as_given():
    model = nn.Linear(3, 4)
    optimizers = [torch.optim.SGD(model.parameters(), lr=1.0)]
    assert amp.initialize(model, optimizers)[1] is optimizers


def test_autocast_is_the_precision_context():
    assert isinstance(amp.autocast("cbfloat16"), cstorch.precision)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": 3}, TypeError, r"^model: got 3, must be a torch.nn.Module"),
        ({"optimizers": [3]}, TypeError, r"^optimizers: got 3, must be a torch.optim.Optimizer"),
        ({"half": "float8"}, ValueError, r"^half: got 'float8', must be"),
        ({"level": 3}, ValueError, r"^level: got 3, must be"),
        ({"chunk": 0}, ValueError, r"^chunk: got 0, must be"),
        ({"levels": 2}, TypeError, r"^levels: got 2, must be a mapping"),
        ({"levels": {"head": 2}}, ValueError, r"^levels: 'head' matches no module of Linear"),
    ],
)
def test_wrong_argument_is_refused_when_called(arguments, error, message):
    with pytest.raises(error, match=message):
        amp.initialize(**{"model": nn.Linear(1, 1)} | arguments)


def test_second_initialisation_is_refused():
    model = amp.initialize(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match=r"^model: it has been initialised already"):
        amp.initialize(model)


class Encoder(nn.Module):
    """Ways into a model: forward, a method that multiplies by itself, a submodule, a generator of steps."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.table = nn.Parameter(torch.linspace(-1, 1, 9).view(3, 3) / 3)

    def encode(self, x):
        return self.body(x) @ self.table

    def forward(self, x):
        with cstorch.precision(enabled=False):
            return self.encode(x)

    def generate(self, x, steps=2):
        for _ in range(steps):
            x = self.encode(x)
        return x

    @property
    def width(self):
        return self.table.shape[0]

    @staticmethod
    def twice(x):
        return x @ x.mT


WAYS = {
    "encode": lambda model: model.encode(X),
    "generate": lambda model: model.generate(X, steps=3),
    "submodule": lambda model: model.body(X),
    "submodule of a submodule": lambda model: model.body[0](X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("copied", [None, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_every_way_into_an_initialised_model_is_exact(way, copied):
    model = Encoder()
    with cstorch.precision(half="cbfloat16", level=2):
        expected = WAYS[way](model)
    assert not torch.equal(WAYS[way](model), expected)
    amp.initialize(model, half="cbfloat16", level=2)
    if copied is not None:
        given, model = model, copied(model)
        with torch.no_grad():
            for each in given.parameters():
                each.zero_()
    assert torch.equal(WAYS[way](model), expected)
    assert not cstorch.mixed_precision()


def test_precision_entered_within_an_initialised_model_decides():
    model = Encoder()
    plain = model(X)
    assert torch.equal(amp.initialize(model, half="cbfloat16")(X), plain)


def test_initialised_model_keeps_its_state_dict_signatures_and_saving(tmp_path):
    model = Encoder()
    names, signature = list(model.state_dict()), inspect.signature(model.generate)
    amp.initialize(model, half="bfloat16", level=0)
    assert list(model.state_dict()) == names
    assert inspect.signature(model.generate) == signature
    assert (model.width, model.twice(X).shape) == (3, (2, 2))
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(loaded.encode(X), model.encode(X))
    assert loaded.encode(X).dtype == torch.bfloat16
    with cstorch.precision("bfloat16", level=2):
        expected = cstorch.linear(X, model.body[0].weight, model.body[0].bias)
    assert torch.equal(cstorch.pol(level=2)(model.body[0])(X), expected)


def test_initialised_submodule_keeps_its_own_precision():
    model = Encoder()
    amp.initialize(model.body, half="float16")
    amp.initialize(model, half="bfloat16")
    assert model.body(X).dtype == torch.float16
    assert model.encode(X).dtype == torch.bfloat16


LEVELS = {"body": {"fwd": 2, "bwd": 1}, "body.2": {"level": 2, "chunk": 4}}


def wide_encoder():
    """An encoder of sums that differ between the levels."""
    torch.manual_seed(3)
    model = Encoder()
    model.body[0] = nn.Linear(3, 40)
    model.table = nn.Parameter(torch.randn(40, 3))
    model.body.append(nn.Linear(40, 40))
    return model


MAPPED_WAYS = {name: way for name, way in WAYS.items() if name != "submodule of a submodule"} | {
    "submodule of a submodule": lambda model: model.body[2](torch.linspace(-1, 1, 80).view(2, 40) / 3),
}


@pytest.mark.parametrize("way", MAPPED_WAYS)
@pytest.mark.parametrize("copied", [None, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_level_map_of_an_initialised_model_holds_whichever_way_it_is_entered(way, copied):
    def gradients(model, result):
        result.float().square().sum().backward()
        return [result] + [each.grad for each in model.parameters() if each.grad is not None]

    model = wide_encoder()
    with cstorch.precision(half="bfloat16", level=0, levels=LEVELS, model=model):
        expected = gradients(model, MAPPED_WAYS[way](model))
    model = wide_encoder()
    with cstorch.precision(half="bfloat16", level=0):
        other = gradients(model, MAPPED_WAYS[way](model))
    assert not all(map(torch.equal, other, expected))
    model = amp.initialize(wide_encoder(), half="bfloat16", level=0, levels=LEVELS)
    if copied is not None:
        model = copied(model)
    found = gradients(model, MAPPED_WAYS[way](model))
    assert len(found) == len(expected)
    assert all(map(torch.equal, found, expected))
    assert not scopes.maps
    assert not scopes.pols
    assert not scopes.mapped
