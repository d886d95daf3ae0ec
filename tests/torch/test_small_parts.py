"""Small parts of runs, each alone: outputs of a model, the record of a run, its speed, its processes."""

from types import SimpleNamespace

import pytest
import torch
import yaml

from golden.torch.observing import across_ranks
from golden.torch.runs.record import RunRecord
from golden.torch.training.callback import outputs_of
from golden.torch.utils.data import rate
from golden.torch.utils.tensorboard import SummaryWriter

ONE, SEVERAL = torch.tensor(1.0), torch.tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        (ONE, {"loss": ONE}),
        (SEVERAL, {"output": SEVERAL}),
        ({"loss": ONE, "more": 3}, {"loss": ONE, "more": 3}),
        ((ONE, SEVERAL), {"loss": ONE, "logits": SEVERAL}),
        ([ONE, SEVERAL, 3], {"loss": ONE, "logits": [SEVERAL, 3]}),
        ((ONE,), {"loss": ONE, "logits": ()}),
        ((), {"output": ()}),
        ("text", {"output": "text"}),
    ],
    ids=["number", "tensor", "dictionary", "pair", "list", "single", "empty", "other"],
)
def test_outputs_of_a_model_are_told_apart(result, wanted):
    got = outputs_of(result)
    assert list(got) == list(wanted)
    assert all(got[name] is each or got[name] == each for name, each in wanted.items())


def test_run_that_goes_on_keeps_a_record_that_cannot_be_read(tmp_path):
    (tmp_path / "run.yaml").write_text("steps: [1, 2")
    RunRecord({"steps": 3}, ["told"], tmp_path).on_fit_start(SimpleNamespace(step=7), None, None, None)
    assert (tmp_path / "run_to_step_00000007.yaml").read_text() == "steps: [1, 2"
    assert (tmp_path / "run.yaml").read_text() == "# told\nsteps: 3\n"
    RunRecord({"steps": 3}, [], tmp_path).on_fit_start(SimpleNamespace(step=8), None, None, None)
    assert yaml.safe_load((tmp_path / "run.yaml").read_text()) == {"steps": 3}
    assert len(list(tmp_path.iterdir())) == 2


def test_rate_is_that_of_the_latest_step_and_of_all(monkeypatch):
    clock = iter([10.0, 12.0, 16.0])
    monkeypatch.setattr(rate.time, "monotonic", lambda: next(clock))
    profiler = rate.Profiler()
    assert (profiler.rate, profiler.global_rate, profiler.total_time) == (0.0, 0.0, 0.0)
    profiler.step(6)
    assert (profiler.rate, profiler.global_rate) == (3.0, 3.0)
    profiler.step(8)
    assert (profiler.rate, profiler.total_samples, profiler.total_time) == (2.0, 14, 6.0)
    assert profiler.rate_tracker.samples_per_sec == 14 / 6


def test_summary_writer_that_was_never_made_has_no_attributes():
    with pytest.raises(AttributeError, match=r"^_writer$"):
        SummaryWriter.__new__(SummaryWriter).add_scalar("loss", 1.0, 1)


class Numbers:
    """Stands for a tally."""

    def __init__(self, total):
        self.total = total

    def merge(self, other):
        self.total += other.total


def test_observations_of_all_processes_are_summed_on_the_first(monkeypatch):
    asked = []

    def gathered(mine, of_ranks):
        asked.append(of_ranks is not None)
        if of_ranks is not None:
            of_ranks[:] = [mine, {"shared": Numbers(5), "only there": Numbers(7)}, {"shared": Numbers(11)}]

    monkeypatch.setattr(across_ranks, "world_size", lambda: 3)
    monkeypatch.setattr(across_ranks.dist, "gather_object", gathered)
    monkeypatch.setattr(across_ranks, "rank", lambda: 0)
    found = across_ranks.merged({"shared": Numbers(2), "only here": Numbers(3)})
    assert {name: each.total for name, each in found.items()} == {"shared": 18, "only here": 3, "only there": 7}
    monkeypatch.setattr(across_ranks, "rank", lambda: 2)
    assert across_ranks.merged({"shared": Numbers(2)}) == {}
    assert asked == [True, False]
