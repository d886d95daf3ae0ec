"""amp.initialize and amp.autocast: a model runs exactly without a context at every call."""

import copy

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch import amp

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
    ],
)
def test_wrong_argument_is_refused_when_called(arguments, error, message):
    with pytest.raises(error, match=message):
        amp.initialize(**{"model": nn.Linear(1, 1)} | arguments)


def test_second_initialisation_is_refused():
    model = amp.initialize(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match=r"^model: it has been initialised already"):
        amp.initialize(model)
