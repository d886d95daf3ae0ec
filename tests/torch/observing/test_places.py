"""The place of every product: its module, its pass, its operation."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import golden.torch as cstorch
from golden.torch.common import terminal
from golden.torch.instruments.observe.attribution import Attribution
from golden.torch.settings.scopes import scopes

from ..oracle import normal
from .training import Mlp, places, train

FORWARD, INPUT, WEIGHT = "forward", "gradient_of_input", "gradient_of_weight"


def of_layer(name, operation="linear", passes=(FORWARD, INPUT, WEIGHT), bias=True, calls=1):
    """Return the places of a layer, with the sum that is the gradient of its bias."""
    found = {(name, each, operation): calls for each in passes}
    return found | ({(name, WEIGHT, "sum"): calls} if bias else {})


def observed(model, *inputs, **settings):
    """Train a model for one step on the sum of its results."""

    def loss_of(model):
        return model(*inputs).float().sum()

    report, _ = train(model, 1, every=1, loss_of=loss_of, **settings)
    return report


def test_observe_of_linear_layers_tells_module_and_pass():
    found = places(observed(Mlp(), normal(4, 6)))
    assert found == of_layer("body.0", passes=(FORWARD, WEIGHT)) | of_layer("head")


def test_observe_when_gradients_are_taken_for_each_other_is_noticed(monkeypatch):
    monkeypatch.setattr(Attribution, "note_gradient_of", lambda self, operand: None)
    with pytest.raises(AssertionError):
        test_observe_of_linear_layers_tells_module_and_pass()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.MultiheadAttention(8, 2, batch_first=True, bias=False)

    def forward(self, x):
        return self.mix(x, x, x, need_weights=False)[0]


def test_observe_of_attention_tells_scores_from_values():
    found = places(observed(Attention(), normal(2, 5, 8, grad=True)))
    of_inputs = {("mix", each, "linear"): 1 for each in (FORWARD, INPUT, WEIGHT)}
    inner = {("mix", FORWARD, f"attention {each}"): 1 for each in ("scores", "values")}
    inner |= {("mix", INPUT, f"attention {each}"): 2 for each in ("scores", "values")}
    assert found == of_inputs | inner | of_layer("mix.out_proj", bias=False)


def test_observe_of_convolutions_tells_them_from_transposed_ones():
    model = nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.ConvTranspose2d(4, 3, 2, bias=False))
    found = places(observed(model, normal(2, 2, 6, 6)))
    plain = of_layer("0", "convolution", passes=(FORWARD, WEIGHT))
    assert found == plain | of_layer("1", "transposed convolution", bias=False)


def test_observe_of_a_recurrent_layer_counts_a_call_for_each_position():
    model = nn.LSTM(4, 5)

    def loss_of(model):
        return model(normal(7, 2, 4))[0].sum()

    report, _ = train(model, 1, every=1, loss_of=loss_of)
    found = places(report)
    assert found["", FORWARD, "recurrent layer"] == 1 + 7  # the inputs of all positions are one product
    assert found["", INPUT, "recurrent layer"] == 6  # the first state has no gradient
    assert found["", WEIGHT, "recurrent layer"] == 2


def test_observe_of_a_cell_names_it():
    cell = nn.GRUCell(4, 5)
    found = places(observed(cell, normal(2, 4), normal(2, 5)))
    assert {operation for _, _, operation in found} == {"recurrent cell", "sum"}


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(normal(3, 4, 5))

    def forward(self, x):
        return cstorch.grouped_mm(x, self.weight, torch.tensor([2, 5, 6]))


def test_observe_of_grouped_products_counts_a_call_for_each_group():
    found = places(observed(Experts(), normal(6, 4, grad=True)))
    assert found == {("", each, "grouped product"): 3 for each in (FORWARD, INPUT, WEIGHT)}


class Pair(nn.Module):
    """A model, another one, and a product of their results that belongs to neither."""

    def __init__(self, model):
        super().__init__()
        self.model, self.other = model, nn.Linear(6, 3)

    def forward(self, x):
        return self.model(x) @ self.other(x).T


class Gram(nn.Module):
    def forward(self, x):
        return x @ x.T


@pytest.fixture
def told(monkeypatch, caplog):
    """The log's lines about products that are left out."""
    monkeypatch.setattr(terminal, "_said", set())
    return lambda: [each.getMessage() for each in caplog.records if "left out" in each.getMessage()]


def beside(model, other, x):
    return model(x).sum() + other(x).sum()


def behind(model, other, x):
    return other(torch.cat([model(x), model(x)], 1)).sum()


def as_teacher(model, other, x):
    with torch.no_grad():
        wanted = other(x)
    return (model(x) - wanted).square().sum()


@pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("compiled", [False, True], ids=["", "compiled"])
@pytest.mark.parametrize("loss_of", [beside, behind, as_teacher])
def test_observe_leaves_out_another_model_and_says_so_once(told, loss_of, compiled):
    torch._dynamo.reset()
    model, other, x = Mlp(), Mlp(), normal(4, 6)
    if compiled:
        other = torch.compile(other, backend="aot_eager")
    report, _ = train(model, 2, every=1, loss_of=lambda model: loss_of(model, other, x))
    alone, _ = train(Mlp(), 2, every=1, loss_of=lambda model: model(x).sum())
    calls = 2 if loss_of is behind else 1
    assert places(report) == {place: calls * count for place, count in places(alone).items()}
    (said,) = told()
    assert "no module of the observed Mlp" in said


def test_observe_of_part_of_a_model_leaves_out_its_other_parts(told):
    model = Mlp()
    pair = Pair(model)

    def loss_of(model):
        return pair(normal(4, 6)).sum()

    report, _ = train(model, 1, every=1, loss_of=loss_of)
    own = of_layer("body.0", passes=(FORWARD, WEIGHT)) | of_layer("head")
    assert places(report) == own | {("", FORWARD, "matmul"): 1, ("", INPUT, "matmul"): 2}
    (said,) = told()
    assert "a product of Linear" in said


def test_observe_takes_a_product_of_a_module_without_parameters_for_one_outside_of_modules(told):
    report, _ = train(Mlp(), 1, every=1, loss_of=lambda model: Gram()(model(normal(4, 6))).sum())
    own = of_layer("body.0", passes=(FORWARD, WEIGHT)) | of_layer("head")
    assert places(report) == own | {("", FORWARD, "matmul"): 1, ("", INPUT, "matmul"): 2}
    assert not told()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.letters.weight

    def forward(self, codes):
        return self.head(self.letters(codes))


def test_observe_of_tied_weights_names_the_layer_that_multiplies():
    found = places(observed(Tied(), torch.tensor([1, 2, 3])))
    assert found == of_layer("head", bias=False)


@pytest.mark.parametrize("reentrant", [False, True])
def test_observe_of_a_checkpoint_tells_what_is_computed_again(reentrant):
    model, x = Mlp(), normal(4, 6, grad=True)

    def loss_of(model):
        return model.head(checkpoint(model.body, x, use_reentrant=reentrant)).sum()

    report, _ = train(model, 1, every=1, loss_of=loss_of)
    assert places(report) == of_layer("body.0") | {("body.0", FORWARD, "linear"): 2} | of_layer("head")
    again = {(row.module, row.direction): row.recomputed for row in report.rows if row.recomputed}
    assert again == {("body.0", FORWARD): 1}


def test_observe_of_levels_tells_the_level_of_each_pass():
    model = Mlp()
    head = cstorch.pol(fwd_level=2, bwd_level=0)(model.head)

    def loss_of(model):
        return head(model.body(normal(4, 6))).sum()

    report, _ = train(model, 1, every=1, loss_of=loss_of)
    levels = {(row.module, row.direction): row.level for row in report.rows if row.operation == "linear"}
    assert levels == {
        ("body.0", FORWARD): 1,
        ("body.0", WEIGHT): 1,
        ("head", FORWARD): 2,
        ("head", INPUT): 0,
        ("head", WEIGHT): 0,
    }


@pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
def test_observe_of_compiled_code_finds_layers_by_their_weights():
    torch._dynamo.reset()
    eager, compiled = Mlp(), Mlp()
    compiled.load_state_dict(eager.state_dict())
    runs = [train(each, 3, every=2) for each in (eager.eval(), torch.compile(compiled.eval(), backend="aot_eager"))]
    assert runs[0][1] == runs[1][1]
    wanted = {
        (row.step, row.module, row.direction): row.products for row in runs[0][0].rows if row.operation == "linear"
    }
    found = {
        (row.step, row.module, row.direction): row.products for row in runs[1][0].rows if row.operation == "linear"
    }
    assert found == wanted


@pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
def test_observe_of_compiled_code_compiles_nothing_again():
    torch._dynamo.reset()
    made = []

    def counting(graph, inputs):
        made.append(graph)
        return graph

    train(torch.compile(Mlp().eval(), backend=counting), 5, every=2)
    assert len(made) == 1


def test_observe_of_a_step_that_is_not_observed_sees_nothing():
    seen = []

    def loss_of(model):
        seen.append(scopes.observer is not None)
        return model(normal(4, 6)).sum()

    report, _ = train(Mlp(), 5, every=3, loss_of=loss_of, scale=1.0)
    assert seen == [True, False, False, True, False]
    assert [row.observed for row in report.steps] == seen
    assert {row.step for row in report.rows} == {1, 4}


def test_observe_leaves_out_what_runs_in_evaluation_mode_between_steps():
    model = Mlp()

    def loss_of(model):
        model.eval()
        with torch.no_grad():
            model(normal(4, 6))
        model.train()
        return model(normal(4, 6)).sum()

    report, _ = train(model, 1, every=1, loss_of=loss_of)
    assert places(report)["head", FORWARD, "linear"] == 1
