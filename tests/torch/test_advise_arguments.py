"""Wrong arguments of the advisor: each error names the argument, its value and the allowed ones."""

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch import MixedPrecision

GIVEN = {"batches": [(torch.ones(2, 4), torch.tensor([0, 1]))], "loss": nn.functional.cross_entropy, "show": False}

MORE = {"formats": ["float16"]}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"model": 1}, TypeError, "model: got 1, must be a torch.nn.Module"),
        ({"model": nn.ReLU()}, ValueError, "model: has no parameters that require a gradient"),
        ({"model": nn.BatchNorm1d(4)}, ValueError, "model: none of its modules multiplies on these batches"),
        ({"batches": torch.ones(2, 4)}, TypeError, "batches: got Tensor, must be a list of batches"),
        ({"batches": []}, ValueError, "batches: has no batch"),
        ({"batches": [(1, 2, 3)]}, ValueError, "batches: got a batch that is a tuple, must be a pair"),
        ({"loss": lambda y, t: y.sum() * 0}, ValueError, "model: its gradient is zero on these batches"),
        ({"loss": 5}, TypeError, "loss: got 5, must be callable"),
        ({"loss": lambda y, t: torch.ones(())}, ValueError, "loss: got a loss that depends on no parameter"),
        ({"loss": lambda y, t: y}, ValueError, r"loss: got a tensor of shape \(2, 3\), must be a tensor of one"),
        ({"budget": 0}, ValueError, "budget: got 0, must be finite and above 0"),
        ({"budget": "1%"}, TypeError, "budget: got '1%', must be a number"),
        ({"budget": {"loss": 0.1}}, ValueError, "must be a number, or a mapping with loss and gradient"),
        ({"precision": 5}, TypeError, "precision: got 5, must be a MixedPrecision or the name"),
        ({"precision": MixedPrecision(enabled=False)}, ValueError, "precision: got one that is not enabled"),
        ({"levels": [0]}, ValueError, r"levels: got \[0\], must be some of 0, 1 and 2"),
        ({"levels": [3]}, ValueError, r"levels: got \[3\], must be some of"),
        ({"chunks": []}, ValueError, "chunks: got none"),
        ({"chunks": [0]}, ValueError, "chunk: got 0, must be at least 1"),
        ({"layers": ["x"]}, ValueError, "layers: 'x' matches none of the layers 0"),
        ({"costs": 5}, TypeError, "costs: got 5, must be a mapping"),
        ({"costs": {0: 1, 1: 2}}, ValueError, "costs: has no entry for level 2"),
        ({"costs": {0: 1, 1: 2, 2: 0}}, ValueError, "costs: got 0 for level 2, must be finite and above 0"),
        ({"costs": {0: 1, 1: 2, 2: "x"}}, TypeError, "costs: got 'x' for level 2"),
        ({"costs": {0: 1, 1: {16: 1}, 2: 3}}, ValueError, "costs: level 1 has no entry for chunk 32"),
        ({"costs": {0: 1, 1: 2, 2: 3, 5: 1}}, ValueError, "costs: got an entry for 5"),
        ({"costs": {"float16": {0: 1, 1: 2, 2: 3}}}, ValueError, "costs: got an entry for 'float16', must be for the"),
        (
            {**MORE, "costs": {"float16": {0: 1, 1: 2, 2: 3}}},
            ValueError,
            "costs: has no entry for cbfloat16, must have",
        ),
        (
            {**MORE, "costs": {"float16": 2.0, "cbfloat16": 2.0}},
            TypeError,
            "costs: cbfloat16: got 2.0, must be a mapping",
        ),
        (
            {**MORE, "costs": {"float16": {0: 1}, "cbfloat16": {0: 1, 1: 2, 2: 3}}},
            ValueError,
            "costs: float16: has no entry for level 1",
        ),
        (
            {**MORE, "costs": {key: {0: 1, 1: 2, 2: 3, 4: 1} for key in ("float16", "cbfloat16")}},
            ValueError,
            "costs: cbfloat16: got an entry for 4",
        ),
        ({"formats": "float16"}, TypeError, "formats: got 'float16', must be a list of names"),
        ({"formats": []}, ValueError, r"formats: got \[\], must have one besides the cbfloat16 of the precision"),
        ({"formats": ["cbfloat16"]}, ValueError, "must have one besides the cbfloat16"),
        ({"formats": ["fp8"]}, ValueError, "formats: got 'fp8', must be of float16, bfloat16"),
        ({"formats": [{}]}, ValueError, "formats: got {}, must be of float16, bfloat16"),
        ({"trials": -1}, ValueError, "trials: got -1, must be an int of at least 0"),
        ({"show": 1}, TypeError, "show: got 1, must be True or False"),
    ],
)
@pytest.mark.filterwarnings("ignore:loss_scaling_factor")
def test_advise_of_a_wrong_argument_is_an_error_that_says_what(given, error, message):
    arguments = {"model": nn.Sequential(nn.Linear(4, 3)), **GIVEN, **given}
    with pytest.raises(error, match=message):
        cstorch.advise(arguments.pop("model"), arguments.pop("batches"), **arguments)


def test_advise_of_a_model_that_is_not_finite_at_level_0_is_an_error():
    model = nn.Sequential(nn.Linear(4, 3))
    with torch.no_grad():
        model[0].bias.fill_(torch.inf)
    with pytest.raises(ValueError, match="model: its loss or gradient is not finite at level 0"):
        cstorch.advise(model, **GIVEN)


def test_advise_of_a_model_that_is_not_finite_in_fp32_is_an_error():
    model = nn.Sequential(nn.Linear(4, 3))
    with torch.no_grad():
        model[0].bias.fill_(torch.inf)
    with pytest.raises(ValueError, match="model: its loss or gradient is not finite in fp32, must be"):
        cstorch.advise(model, **GIVEN, formats=["float16"])
