"""Level maps with a format for each pass: results take the one, gradients the other."""

import pickle
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import golden
import golden.torch as cstorch
from golden.torch.products.functions.gradients import round_to_half, softmax_in_half
from golden.torch.settings.half_type import HalfType
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.plan import plan_of, rule_of

from .oracle import normal

FORWARD, BACKWARD = "bfloat16", "float8_e5m2"
EACH = {"layer": {"level": 2, "half": {"fwd": FORWARD, "bwd": BACKWARD}, "inner": "float16"}}


class Layer(nn.Module):
    def __init__(self, layer, run=None):
        super().__init__()
        self.layer, self.run = layer, run or (lambda layer, x: layer(x))

    def forward(self, x):
        return self.run(self.layer, x)


class Grouped(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(normal(2, 12, 3, seed=1).bfloat16())

    def forward(self, x):
        return torch.nn.functional.grouped_mm(x.bfloat16(), self.weight, offs=torch.tensor([4, 6], dtype=torch.int32))


def positive(layer):
    """Make the pre-activations of a recurrent layer positive, so that its slopes are 1 in any format."""
    with torch.no_grad():
        for each in layer.parameters():
            each.abs_()
    return layer


LAYERS = {
    "linear": (lambda: nn.Linear(12, 3), None, (6, 12)),
    "convolution": (lambda: nn.Conv1d(2, 3, 3), None, (2, 2, 9)),
    "transposed": (lambda: nn.ConvTranspose1d(2, 3, 3), None, (2, 2, 9)),
    "grouped": (Grouped, None, (6, 12)),
    "recurrent": (
        lambda: positive(nn.RNN(12, 3, nonlinearity="relu")),
        lambda layer, x: layer(x.abs(), torch.ones(1, 6, 3))[0],
        (1, 6, 12),
    ),
    "checkpoint": (lambda: nn.Linear(12, 3), lambda layer, x: checkpoint(layer, x, use_reentrant=False), (6, 12)),
}


def ran(name, levels):
    """Return result and gradients of a layer with a level map; the gradient of the result has few bits."""
    make, run, shape = LAYERS[name]
    torch.manual_seed(3)
    net, x = Layer(make(), run), normal(*shape, seed=1, grad=True)
    with cstorch.precision("cbfloat16", 0, levels=levels, model=net):
        result = net(x)
    result.backward(normal(*result.shape, seed=2).to(torch.float8_e5m2).to(result.dtype))
    return result.float(), [x.grad.float(), *(each.grad.float() for each in net.parameters())]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.filterwarnings("ignore:.*grouped_mm")
def test_level_map_with_a_format_for_each_pass_has_results_of_one_and_gradients_of_the_other(name):
    result, gradients_of_it = ran(name, EACH)
    forward, others = ran(name, {"layer": {"level": 2, "half": FORWARD}})
    _, backward = ran(name, {"layer": {"level": 2, "half": BACKWARD, "inner": "float16"}})
    assert torch.equal(result, forward)
    assert all(torch.equal(one, other) for one, other in zip(gradients_of_it, backward, strict=True))
    assert not torch.equal(gradients_of_it[0], others[0])  # the formats tell


def test_level_map_with_a_format_for_each_pass_and_a_fault_is_seen(monkeypatch):
    monkeypatch.setattr(HalfType, "of_gradients", property(lambda self: self))
    assert torch.equal(ran("linear", EACH)[1][0], ran("linear", {"layer": {"level": 2, "half": FORWARD}})[1][0])


@pytest.mark.parametrize("function", [softmax_in_half, lambda x, half: round_to_half(x, half, torch.float32)])
def test_rounding_of_a_gradient_is_to_the_format_of_its_pass(function):
    half = LevelMap.of({"a": {"half": {"fwd": "cbfloat16", "bwd": "bfloat16"}}}).rules[0][1].half
    for transformed in (False, True):
        x, upstream = normal(4, 7, seed=5, grad=True), normal(4, 7, seed=6)
        run = torch.func.vmap(lambda row: function(row, half)) if transformed else lambda x: function(x, half)
        found = run(x)
        found.backward(upstream)
        assert torch.equal(found, function(x.detach(), half))
        assert torch.equal(x.grad, x.grad.bfloat16().float())
        x.grad, other = None, function(x, half.of_gradients.__class__(half.format, half.dtype))
        other.backward(upstream)
        assert not torch.equal(x.grad, x.grad.bfloat16().float())


def test_level_map_with_a_format_for_each_pass_has_a_document_of_yaml_and_is_copied():
    made = LevelMap.of({"a": {"half": {"fwd": torch.float16, "bwd": torch.float8_e5m2}, "inner": "bfloat16"}})
    assert made.document == {"a": {"half": {"fwd": "float16", "bwd": "float8_e5m2"}, "inner": "bfloat16"}}
    assert LevelMap.of(made.document).rules == made.rules == pickle.loads(pickle.dumps(made)).rules
    assert LevelMap.of({"a": {"half": {"fwd": "float16", "bwd": "float16"}}}).rules == (
        LevelMap.of({"a": {"half": "float16"}}).rules
    )


@pytest.mark.parametrize(
    ("half", "message"),
    [
        ({"half": {"fwd": "float16"}}, "'a': half: got {'fwd': 'float16'}, must be a format, or a mapping with one"),
        ({"half": {"fwd": "float16", "bwd": "x"}}, "'a': half: bwd: got 'x', must be 'float16'"),
        ({"half": {"fwd": "float16", "bwd": "bfloat16"}, "inner": "float16"}, "inner: got 'float16', must be None"),
    ],
)
def test_level_map_with_wrong_formats_of_passes_is_an_error_that_says_what(half, message):
    with pytest.raises(ValueError, match=message):
        LevelMap.of({"a": half})


def test_plan_of_gradients_is_that_of_their_level_and_format():
    half = LevelMap.of(EACH).rules[0][1].half
    plan = plan_of(half, 2, 1, 32, rule_of("toward_zero", "up"))
    modes = {"rounding": "toward_zero", "out_rounding": "up"}
    level_2 = golden.Reduction.for_level(2, golden.BF16)
    assert plan.reduction == replace(level_2, operand=golden.BF16, out=golden.BF16, **modes)
    level_1 = golden.Reduction.for_level(1, golden.FLOAT8_E5M2, inner=golden.FP16)
    backward = replace(level_1, operand=golden.FLOAT8_E5M2, out=golden.FP16, **modes)
    assert plan.of_gradients == (half.backward, backward, backward)
    assert plan.branch(1) is plan  # where nothing is random
