"""The advisor: its choice against every combination, where a model breaks, its number of steps, and its traces."""

import copy
import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
import yaml
from rich.console import Console
from torch import nn

import golden.torch as cstorch
from golden.torch import MixedPrecision
from golden.torch.examples.digits import DigitsCnn, DigitsMlp
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.instruments.advise import measuring, search
from golden.torch.instruments.advise.advice import Advice, AdviceRow
from golden.torch.instruments.advise.choosing import Setting
from golden.torch.instruments.advise.costs import Costs, vector_unit
from golden.torch.instruments.advise.formats import Formats

from .oracle import normal

MODELS = {
    "digits_mlp": (lambda: DigitsMlp(name="digits_mlp", hidden=(48,)), None),
    "digits_cnn": (lambda: DigitsCnn(name="digits_cnn", channels=(4, 8)), ["3", "7"]),
    "character_gpt": (
        lambda: CharacterGpt(name="character_gpt", layers=1, width=48, heads=1, context=8),
        ["blocks.0.mlp.2", "head"],
    ),
}


def example(name):
    """Return a bundled model, small, with a batch, its loss, and the layers to choose for."""
    make, layers = MODELS[name]
    torch.manual_seed(0)
    task = make().task()
    return task.model, tuple(torch.stack([task.train[i][k] for i in range(16)]) for k in (0, 1)), task.loss, layers


def mixed(name, **given):
    return MixedPrecision(fp16_type=name, loss_scaling_factor="dynamic", **given)


def advise(model, batch, loss, name="bfloat16", **given):
    return cstorch.advise(model, [batch], loss=loss, precision=mixed(name), show=False, **given)


def change(model, batch, loss, name, levels, scale):
    """Return how much a level map changes the loss or the gradient of a step, the larger of both."""
    steps = []
    for each in ({}, levels):
        net = copy.deepcopy(model)
        with cstorch.precision(name, 0, levels=each or None, model=net if each else None):
            value = loss(net(batch[0]), batch[1])
            (value * scale).backward()
        steps.append((value.item(), torch.cat([p.grad.flatten().double() for p in net.parameters()]) / scale))
    (before, reference), (after, gradient) = steps
    return max(abs(after - before) / abs(before), ((gradient - reference).norm() / reference.norm()).item())


def units_of(advice):
    return list({(row.layer, row.run): row.products for row in advice.rows}.items())


def chosen_levels(advice):
    chosen = {(row.layer, row.run): row.level for row in advice.rows if row.chosen}
    return {unit: chosen.get(unit, 0) for unit, _ in units_of(advice)}


def every_combination(model, batch, loss, name, advice):
    """Return cost and change of every combination of levels, by its levels."""
    units, found = units_of(advice), {}
    for levels in itertools.product((0, 1, 2), repeat=len(units)):
        rules = {}
        for ((layer, run), _), level in zip(units, levels, strict=True):
            rules.setdefault(layer, {})[run] = level
        cost = sum(count / vector_unit(level, 32) for (_, count), level in zip(units, levels, strict=True))
        found[levels] = cost, change(model, batch, loss, name, rules, advice.loss_scale)
    return found


def excess(name, fmt, budgets):
    """Return, for each budget, by how much the choice's change exceeds the least at no more cost, and the choice."""
    model, batch, loss, layers = example(name)
    excesses, found = [], None
    for budget in budgets:
        advice = advise(model, batch, loss, fmt, budget=budget, layers=layers)
        found = found or every_combination(model, batch, loss, fmt, advice)
        cost, mine = found[tuple(chosen_levels(advice).values())]
        least = min(each for its, each in found.values() if its <= cost * (1 + 1e-12))
        assert mine <= budget
        assert max(abs(advice.loss_change), advice.gradient_change) == pytest.approx(mine, rel=1e-6)
        excesses.append((mine / least - 1 if least else mine, tuple(chosen_levels(advice).values())))
    return excesses


@pytest.mark.turns
@pytest.mark.parametrize("fmt", ["cbfloat16", "bfloat16"])
@pytest.mark.parametrize("name", MODELS)
def test_advise_on_a_bundled_model_is_within_5_percent_of_every_combination_at_its_cost(name, fmt):
    found = excess(name, fmt, [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.03])
    assert max(each for each, _ in found) <= 0.05, found
    assert len({choice for _, choice in found}) >= 3  # the budgets tell


def test_advise_with_a_fault_in_the_costs_is_farther_from_every_combination(monkeypatch):
    monkeypatch.setattr(search.Search, "_saved", lambda self, candidate: 1e9 / self._counts[candidate.unit])
    found = excess("digits_mlp", "bfloat16", [0.002, 0.003, 0.005])
    assert max(each for each, _ in found) > 0.05


class Swamping(nn.Module):
    """Three layers; the middle one sums 8192 equal products, more than bfloat16 can add one to at level 2."""

    def __init__(self, width=8192):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.wide, self.head = nn.Linear(6, width), nn.Linear(width, 4, bias=False), nn.Linear(4, 3)
        with torch.no_grad():
            self.first.weight.mul_(0.01)
            self.first.bias.fill_(1.0)
            self.wide.weight.copy_(torch.rand(4, width) * 0.2 + 0.9).div_(width)

    def forward(self, x):
        return self.head(self.wide(self.first(x)))


def swamping(width=8192, **given):
    batch = normal(8, 6, seed=1), torch.arange(8) % 3
    return cstorch.advise(
        Swamping(width),
        [batch],
        loss=nn.functional.cross_entropy,
        precision=mixed("bfloat16", chunk=4),
        budget=0.1,
        show=False,
        **given,
    )


def test_advise_of_a_model_that_breaks_at_level_2_in_one_layer_names_that_layer():
    advice = swamping()
    levels = chosen_levels(advice)
    assert levels.pop(("wide", "fwd")) == 1
    assert set(levels.values()) == {2}
    assert [(row.layer, row.run, row.level) for row in advice.broken] == [("wide", "fwd", 2)]
    assert any("level 2 alone changes the gradient by" in line and "fwd of wide" in line for line in advice.lines())
    assert advice.levels == {"first": 2, "wide": {"fwd": 1, "bwd": 2}, "head": 2}


def test_advise_diagnosis_follows_the_model_and_the_measured_change(monkeypatch):
    assert set(chosen_levels(swamping(width=64)).values()) == {2}  # nothing breaks where nothing swamps
    # A fault: the levels of a candidate do not reach its layer, so that nothing changes.
    monkeypatch.setattr(search.Search, "_map", lambda *_, common=False: {})
    assert chosen_levels(swamping())["wide", "fwd"] == 2


@pytest.mark.parametrize("trials", [0, 3, 1000])
@pytest.mark.parametrize("budget", [1e-4, 0.002, 0.005, 0.5])
def test_advise_takes_at_most_two_steps_per_candidate_and_one_more(budget, trials, monkeypatch):
    model, batch, loss, layers = example("digits_mlp")
    ran = Counter()
    monkeypatch.setattr(model, "forward", lambda x: ran.update(["forward"]) or type(model).forward(model, x))
    advice = advise(model, batch, loss, budget=budget, layers=layers, trials=trials)
    assert ran["forward"] == advice.steps == advice.reference_steps + advice.candidates + len(advice.trials)
    assert advice.candidates == 8  # two layers, two passes, two levels
    assert advice.reference_steps == 1
    assert len(advice.trials) <= 1 + min(trials, advice.candidates)
    assert advice.steps <= advice.reference_steps + 2 * advice.candidates + 1


def test_advise_measures_what_it_says_and_its_map_gives_the_same_bits():
    model, batch, loss, layers = example("character_gpt")
    advice = advise(model, batch, loss, "cbfloat16", budget=0.001, layers=layers)
    measured = change(model, batch, loss, "cbfloat16", advice.levels, advice.loss_scale)
    assert measured == pytest.approx(max(abs(advice.loss_change), advice.gradient_change), rel=1e-6)
    for row in advice.rows:
        alone = change(model, batch, loss, "cbfloat16", {row.layer: {row.run: row.level}}, advice.loss_scale)
        assert alone == pytest.approx(max(abs(row.loss_change), row.gradient_change), rel=1e-6)


def test_advise_counts_the_products_of_each_layer_and_pass():
    model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Flatten(), nn.Linear(4 * 36, 5))
    x = normal(3, 2, 6, 6, seed=1)
    advice = cstorch.advise(model, [(x, torch.tensor([0, 1, 2]))], loss=nn.functional.cross_entropy, show=False)
    convolution, linear = 3 * 4 * 36 * 2 * 9, 3 * 5 * 4 * 36
    assert dict(units_of(advice)) == {
        ("0", "fwd"): convolution,
        ("0", "bwd"): convolution,  # of the weight alone
        ("2", "fwd"): linear,
        ("2", "bwd"): 2 * linear,
    }
    assert advice.fixed_products == 3 * 5 + 3 * 4 * 36  # the gradients of the biases
    total = 2 * convolution + 3 * linear
    at_2 = sum(row.products for row in advice.rows if row.chosen and row.level == 2)
    assert advice.shares[2] == pytest.approx(at_2 / total)
    cycles = sum(count / vector_unit(chosen_levels(advice)[unit], 32) for unit, count in units_of(advice))
    assert advice.speed == pytest.approx(total / 2 / cycles)


def test_advise_leaves_the_model_and_the_generators_as_they_were():
    model = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3))
    model[0].weight.grad = torch.ones(6, 8)
    before, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    given = {"loss": nn.functional.cross_entropy, "show": False}
    batch = normal(4, 8, seed=1), torch.arange(4) % 3
    first = cstorch.advise(model, [batch], **given)
    assert cstorch.advise(model, [batch], **given) == first  # dropout draws the same in every step
    assert torch.equal(torch.get_rng_state(), random)
    assert model[0].weight.grad.eq(1).all()
    assert model[3].weight.grad is None
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_advise_of_batches_in_any_form_a_model_takes_gives_the_same():
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.net = nn.Linear(40, 3)

        def forward(self, x, y):
            return nn.functional.cross_entropy(self.net(x), y)

    x, y = normal(4, 40, seed=1), torch.arange(4) % 3
    found = [cstorch.advise(Loss(), [batch], show=False) for batch in ((x, y), [x, y], {"x": x, "y": y})]
    assert found[0] == found[1] == found[2]
    compiled = torch.compile(Loss(), backend="eager")
    assert cstorch.advise(compiled, [(x, y)], show=False) == found[0]


def test_advise_chooses_a_chunk_length_that_both_passes_of_a_layer_share():
    model = nn.Sequential(nn.Linear(512, 4, bias=False))
    batch = normal(64, 512, seed=1), torch.arange(64) % 4
    given = {"loss": nn.functional.cross_entropy, "precision": mixed("bfloat16"), "show": False}
    advice = cstorch.advise(model, [batch], chunks=[8, 64], levels=[1], budget=0.5, **given)
    assert {row.chunk for row in advice.rows} == {8, 64}
    assert advice.levels == {"0": {"fwd": 1, "bwd": 1, "chunk": 64}}  # the cheaper one
    dear = {0: 2.0, 1: {8: 4.0, 64: 3.0}}
    advice = cstorch.advise(model, [batch], chunks=[8, 64], levels=[1], budget=0.5, costs=dear, **given)
    assert advice.levels == {"0": {"fwd": 1, "bwd": 1, "chunk": 8}}


def test_advise_level_that_overflows_is_never_chosen():
    model = nn.Sequential(nn.Linear(64, 2, bias=False))
    with torch.no_grad():
        model[0].weight.fill_(1.0)
    x = torch.full((4, 64), 1500.0)
    x[:, 32:] = -1500.0  # 48000 in a chunk of float16, and 64 of them on the way with a longer one
    given = {"loss": lambda y, t: (y - t).square().mean() * 1e-3, "budget": 0.5, "show": False}
    precision = MixedPrecision(fp16_type="float16", loss_scaling_factor=4.0)
    advice = cstorch.advise(model, [(x, torch.ones(4, 2))], precision=precision, chunks=[32, 64], **given)
    assert np.isfinite([row.gradient_change for row in advice.rows if row.chunk == 32]).all()
    x.fill_(1500.0)
    x[:, 48:] = -1500.0 * 2.9
    advice = cstorch.advise(model, [(x, torch.ones(4, 2))], precision=precision, chunks=[None], **given)
    assert chosen_levels(advice)["0", "fwd"] == 0
    assert {row.level for row in advice.broken if row.gradient_change == np.inf} == {1, 2}
    assert any("overflows in fwd of 0" in line for line in advice.lines())


def test_advise_tells_how_far_partial_sums_stay_below_the_largest_value():
    model = nn.Sequential(nn.Linear(64, 2, bias=False))
    with torch.no_grad():
        model[0].weight.fill_(1.0)
    x = torch.ones(4, 64)
    x[:, 32:] = -1.0  # the sums grow to 32 and end at 0
    precision = MixedPrecision(fp16_type="float16", loss_scaling_factor=1024.0)
    given = {"loss": lambda y, t: (y - t).square().mean(), "precision": precision, "show": False}
    advice = cstorch.advise(model, [(x, torch.ones(4, 2))], **given)
    found = {row.run: row.headroom for row in advice.rows}
    assert found["fwd"] == pytest.approx(np.log2(65504) - 5)
    assert found["bwd"] == pytest.approx(np.log2(65504) - 10)  # 4 gradients of 2 / 8 times the scale
    assert "nearest to overflow: bwd of 0, where sums of samples stay 6.0 powers of two" in "".join(advice.lines())


def test_advise_lowers_a_loss_scale_that_overflows_and_counts_the_steps():
    model = nn.Linear(8, 3)
    batch = normal(4, 8, seed=1), torch.arange(4) % 3
    precision = mixed("float16", initial_loss_scale=2.0**20, max_loss_scale=2.0**20)
    advice = cstorch.advise(
        nn.Sequential(model), [batch], loss=nn.functional.cross_entropy, precision=precision, show=False
    )
    assert advice.reference_steps == 2
    assert advice.loss_scale == 2.0**16


def test_sketched_gradients_have_nearly_the_inner_products_of_whole_ones(monkeypatch):
    model, batch, loss, layers = example("digits_mlp")
    whole = advise(model, batch, loss, budget=0.005, layers=layers)
    monkeypatch.setattr(measuring, "_MEMORY", 0)
    monkeypatch.setattr(measuring, "_SKETCH", 1024)  # of 3,610
    sketched = advise(model, batch, loss, budget=0.005, layers=layers)
    assert sketched.rows == whole.rows
    assert sketched.levels == whole.levels
    changes = [max(abs(each.loss_change), each.gradient_change) for each in whole.trials]
    assert [each.within_budget for each in whole.trials] == [each <= 0.005 for each in changes]
    assert 0.005 < max(changes) < 0.01


def test_advice_as_yaml_is_a_level_map_that_a_precision_takes():
    model, batch, loss, layers = example("digits_mlp")
    advice = advise(model, batch, loss, budget=0.002, layers=layers)
    read = yaml.safe_load(advice.yaml())
    assert read == {"levels": advice.levels}
    assert mixed("bfloat16", levels=read["levels"]).levels == advice.levels
    assert advice.table().row_count == 4


def test_table_of_an_advice_has_the_change_of_each_level_or_its_overflow(capsys):
    rows = [
        AdviceRow("head", "fwd", 1, 32, 64, 0.0, 0.0125, True, None),
        AdviceRow("head", "fwd", 2, 32, 64, math.inf, math.inf, False, None),
    ]
    budget = {"loss": 0.01, "gradient": 0.01}
    found = Advice({"head": 1}, 0.0, 0.0125, budget, rows, [], 1.88, {0: 0.0, 1: 1.0}, 3, 1, 1.0, 0)
    Console(width=100).print(found.table())
    shown = capsys.readouterr().out.splitlines()
    columns = next(line for line in shown if "pass" in line).split("┃")
    assert [each.strip() for each in columns[1:-1]] == ["layer", "pass", "products", "level 1", "level 2", "chosen"]
    line = next(line for line in shown if "head" in line)
    assert line.split() == ["│", "head", "│", "fwd", "│", "64", "│", "1.25%", "│", "overflow", "│", "1", "│"]


def test_costs_of_the_vector_unit_are_lanes_and_the_ends_of_chunks():
    assert vector_unit(0, 32) == vector_unit(0, None) == 2.0
    assert [round(vector_unit(level, 32), 2) for level in (1, 2)] == [3.76, 3.88]
    assert vector_unit(1, 16) < vector_unit(1, 32) < vector_unit(1, None) == 4.0
    given = Costs({0: 1, 1: {16: 2.0, None: 4}}, (1,), (16, None), Formats("bfloat16"))
    assert given.cycles(8, Setting(1, None)) == 2.0


def test_advise_shows_its_progress_and_its_table(capsys):
    model, batch, loss, layers = example("digits_mlp")
    cstorch.advise(model, [batch], loss=loss, layers=layers)
    shown = capsys.readouterr()
    assert "levels within 1.00%" in shown.out
    assert "gains:" in shown.out
