"""Levels that the report advises are tried with a step that was observed, and offered if they help."""

import copy
import io
import json
import logging
import pickle

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.instruments.report.page import page
from golden.torch.instruments.report.reading import read_run
from golden.torch.settings.scopes import Process


class Breaks(nn.Module):
    """Sums of the middle layer grow to 98,304 before they come back to 0: at level 2, float16 has no such total."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(4, 128), nn.Linear(128, 8), nn.Linear(8, 2)
        self.dropped = nn.Dropout(0.5)
        with torch.no_grad():
            self.first.weight.fill_(0.0)
            self.first.bias.fill_(48.0)
            self.middle.weight.fill_(32.0)[:, 64:] *= -1

    def forward(self, x):
        return self.dropped(self.last(self.middle(self.first(x))))


class Harmless(nn.Module):
    """Nearly all addends are swamped, and together they are nothing beside the first."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 8, bias=False)

    def forward(self, x):
        return self.layer(x * torch.tensor([1.0] + [2.0**-20] * 63))


def step(model, x=None, *, level=2, half="float16", **changes):
    precision = cstorch.precision(half, level=level, **changes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with precision:
        loss = model(torch.ones(3, next(model.parameters()).shape[1]) if x is None else x).square().mean()
        loss.backward()
    optimizer.step()


def observed(model, folder=None, **changes):
    with cstorch.observe(model, folder=folder) as report:
        step(model, **changes)
    return report


def test_levels_that_mend_the_results_are_tried_and_offered():
    torch.manual_seed(1)
    report = observed(Breaks())
    assert report.trial.levels == report.new_levels() == {"middle": {"fwd": 1}}
    assert (report.trial.step, report.trial.before, report.trial.helps) == (1, None, True)
    assert report.trial.after < 0.01
    said = str(report)
    assert "Totals overflow at level 2, while the sum of each chunk fits." in said
    assert "It helps: in a trial step after step 1, results and gradients," in " ".join(said.split())
    assert "\n  middle: {fwd: 1}\n" in said


def test_levels_that_change_little_are_tried_and_not_offered():
    torch.manual_seed(1)
    report = observed(Harmless(), level=1)
    assert report.trial.levels == {"layer": {"fwd": 0, "bwd": 0}}
    assert not report.trial.helps
    assert report.new_levels() == {}
    (said,) = [each for each in report.advice() if each.title == "Addends are swamped within a chunk."]
    assert (said.levels, said.setting) == ({}, "")
    assert said.change.startswith("Other levels do not help: in a trial step after step 1")
    assert "New levels" not in str(report)


def test_levels_that_do_not_help_come_after_all_other_advice():
    torch.manual_seed(1)
    model = Harmless()
    with torch.no_grad():
        model.layer.weight *= 2.0**16  # touches the top of float16
    report = observed(model, level=1)
    assert [each.title for each in report.advice()][-1] == "Addends are swamped within a chunk."
    assert len(report.advice()) > 1


def test_trial_leaves_no_trace_in_model_generators_and_guard():
    def train(level):
        torch.manual_seed(1)
        model = Breaks()
        notes = Process.products
        with cstorch.observe(model) as report:
            step(model, level=level)
            before = Process.products, Process.latest, [each.grad.clone() for each in model.parameters()]
        after = Process.products, Process.latest, [each.grad for each in model.parameters()]
        assert notes < before[0] == after[0]
        assert before[1] is after[1]
        for one, other in zip(before[2], after[2], strict=True):
            assert torch.equal(one.view(torch.int32), other.view(torch.int32))
        return report.trial, torch.rand(4)

    (trial, tried), (none, untried) = train(2), train(0)
    assert trial.helps
    assert none is None
    assert torch.equal(tried, untried)


def test_model_that_is_copied_or_pickled_while_it_is_observed_takes_no_hook_along():
    model = Breaks()
    with cstorch.observe(model):
        other = copy.deepcopy(model)
        file = io.BytesIO(pickle.dumps(model))
        step(other)
        step(pickle.load(file))
        step(model)
    assert not model._forward_hooks


@pytest.mark.parametrize("kind", ["own precision", "pol around", "broken off"])
def test_levels_that_cannot_be_tried_are_offered_as_untried(kind, caplog):
    torch.manual_seed(1)
    model = Breaks()
    if kind == "own precision":
        model.forward = cstorch.precision("float16", level=2)(model.forward)
    run = cstorch.pol(2)(step) if kind == "pol around" else step
    with caplog.at_level(logging.WARNING, "golden.torch"):
        try:
            with cstorch.observe(model) as report:
                run(model)
                if kind == "broken off":
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
    assert report.trial is None
    assert report.new_levels() == {"middle": {"fwd": 1}}
    assert "It is untried." in str(report)


def test_page_of_a_run_tells_what_the_trial_has_shown(tmp_path):
    torch.manual_seed(1)
    report = observed(Breaks(), tmp_path)
    last = json.loads((tmp_path / "observations.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["levels"], last["helps"]) == ("trial", {"middle": {"fwd": 1}}, True)
    assert (
        cstorch.observing.ObservationReport(cstorch.observing.read_rows(tmp_path / "observations.jsonl")).trial
        == report.trial
    )
    text = page([read_run(tmp_path, "run")])
    assert "It helps: in a trial step after step 1" in text
    lines = (tmp_path / "observations.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "observations.jsonl").write_text("".join(lines[:-1]))
    assert "It is untried." in page([read_run(tmp_path, "run")])


@pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
def test_model_that_is_compiled_while_it_is_observed_is_compiled_once():
    torch.manual_seed(1)
    model = nn.Linear(4, 2)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with cstorch.observe(model, every=2) as report:
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        for _ in range(4):
            with cstorch.precision("float16", level=2):
                compiled(torch.ones(3, 4)).square().mean().backward()
            torch.optim.SGD(model.parameters(), lr=0.0).step()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert [each.observed for each in report.steps] == [True, False, True, False]
    assert not model._forward_hooks
