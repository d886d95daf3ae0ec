"""Small parts of runs, each alone: outputs of a model, the record of a run, its speed, its processes."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from rich.console import Console
from torch.optim import optimizer

import golden.torch as cstorch
from golden.torch.cerebras import data_executor
from golden.torch.common import terminal
from golden.torch.common.arguments import check_count, outputs_of
from golden.torch.common.processes import batch_for, seed_everything
from golden.torch.common.pytorch import constant, run_as_written
from golden.torch.instruments.advise import measuring
from golden.torch.instruments.observe import tallies
from golden.torch.settings.draws import Draws
from golden.torch.settings.half_type import half_named
from golden.torch.settings.mapped import enter_map
from golden.torch.settings.scopes import Settings
from golden.torch.training.commands import advise as command
from golden.torch.training.commands import report
from golden.torch.training.commands.line import main
from golden.torch.training.identity import hash_of
from golden.torch.training.loggers import RunRecord
from golden.torch.training.older_form import as_today
from golden.torch.utils.tensorboard import SummaryWriter

from .report.made_up import settings, step, write

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
    monkeypatch.setattr(data_executor.time, "monotonic", lambda: next(clock))
    profiler = data_executor.Profiler()
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

    monkeypatch.setattr(tallies, "world_size", lambda: 3)
    monkeypatch.setattr(tallies.dist, "gather_object", gathered)
    monkeypatch.setattr(tallies, "rank", lambda: 0)
    found = tallies.merged({"shared": Numbers(2), "only here": Numbers(3)})
    assert {name: each.total for name, each in found.items()} == {"shared": 18, "only here": 3, "only there": 7}
    monkeypatch.setattr(tallies, "rank", lambda: 2)
    assert tallies.merged({"shared": Numbers(2)}) == {}
    assert asked == [True, False]


class Moved(torch.Tensor):
    """A tensor that says where it was moved."""

    def to(self, device, **_):
        return ("moved to", device)


def test_batch_of_a_model_on_a_card_is_moved_there_and_other_batches_stay():
    batch = {"x": torch.ones(2).as_subclass(Moved), "name": "first"}
    on_card = SimpleNamespace(parameters=lambda: iter([SimpleNamespace(device=torch.device("cuda", 1))]))
    assert batch_for(on_card, batch) == {"x": ("moved to", torch.device("cuda", 1)), "name": "first"}
    for model in (torch.nn.Linear(1, 1), torch.nn.ReLU()):
        assert batch_for(model, batch) is batch


def test_seed_beyond_32_bits_seeds_numpy_with_its_low_half():
    drawn = []
    for seed in (5, 2**32 + 5, 6):
        seed_everything(seed)
        drawn.append(np.random.random())  # noqa: NPY002 - the global generator is seeded
    assert drawn[0] == drawn[1] != drawn[2]


def test_hash_of_bytes_is_theirs():
    # FIPS 180-2, appendix B.1, and SHA-256 of the text of a number.
    assert hash_of(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert hash_of(7) == hash_of(b"7") == "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451"


def on_a_terminal(**given):
    """A console whose output can be read, and which draws as on a terminal."""
    assert given == {"stderr": True}
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def test_progress_bar_goes_when_it_is_done(monkeypatch):
    consoles = []
    monkeypatch.setattr(terminal, "Console", lambda **given: consoles.append(on_a_terminal(**given)) or consoles[0])
    assert list(terminal.shown([3, 4], "candidates", True)) == [3, 4]
    drawn = consoles[0].file.getvalue()
    assert "candidates" in drawn
    assert drawn.rpartition("\n")[2].endswith("\x1b[1A\x1b[2K")  # up to the bar, which is erased
    assert list(terminal.shown([3, 4], "candidates", False)) == [3, 4]
    assert consoles[1:] == [] or consoles[1].file.getvalue() == ""


def test_report_on_a_terminal_says_what_it_does_before_the_bar(monkeypatch, tmp_path, capsys):
    consoles = []
    monkeypatch.setattr(report, "Console", lambda **given: consoles.append(on_a_terminal(**given)) or consoles[-1])
    folder = write(tmp_path / "run", [settings(), step(1)])
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", consoles[0].file.getvalue())
    lines = [line for line in drawn.splitlines() if line.strip()]
    assert lines
    assert all(line.startswith("reading observations ") for line in lines)


def test_map_in_code_that_is_being_compiled_is_refused(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with pytest.raises(NotImplementedError, match=r"^levels: got a map within code that torch\.compile makes"):
        enter_map(object(), None)


def test_observation_takes_its_hook_of_optimizers_with_it():
    hooks = optimizer._global_optimizer_post_hooks
    before = dict(hooks)
    with cstorch.observe(torch.nn.Linear(2, 2), 1):
        assert len(hooks) == len(before) + 1
    assert hooks == before


@pytest.mark.parametrize("given", [3, "text", [1]])
def test_section_of_the_older_form_that_is_no_mapping_is_refused(given):
    with pytest.raises(ValueError, match=rf"^optimizer: got {re.escape(repr(given))}, must be a mapping of keys"):
        as_today({"runconfig": None, "optimizer": given})
    with pytest.raises(ValueError, match=r"^model: is missing, must be given$"):
        as_today({"runconfig": None})


def test_count_beyond_the_most_is_refused():
    assert check_count(4, "n", 2, 4) == 4
    with pytest.raises(ValueError, match=r"^n: got 5, must be 2 to 4$"):
        check_count(5, "n", 2, 4)


@pytest.mark.parametrize(
    ("batches", "message"), [(0, "--batches: got 0, must be at least 1"), (1, "advise: got several processes")]
)
def test_advise_takes_one_batch_and_one_process(monkeypatch, batches, message):
    monkeypatch.setattr(command, "world_size", lambda: 2)
    with pytest.raises(ValueError, match=f"^{message}"):
        command.advise(SimpleNamespace(batches=batches), {}, None)


@pytest.mark.parametrize(("recursively", "rest"), [(False, "DEFAULT"), (True, "SKIP")])
def test_function_that_runs_as_written_is_skipped_alone_or_with_what_it_calls(monkeypatch, recursively, rest):
    def function():
        return 3

    frames, told = torch._C._dynamo.eval_frame, []
    monkeypatch.setattr(frames, "set_code_exec_strategy", lambda *given: told.append(given))
    assert run_as_written(function, recursively=recursively) is function
    ((code, strategy),) = told
    assert code is function.__code__
    assert strategy.cur_action == frames._FrameAction.SKIP
    assert strategy.recursive_action == getattr(frames._FrameAction, rest)


def test_report_of_an_observed_run_is_120_letters_wide():
    model = torch.nn.ModuleDict({"long_" * 40: torch.nn.Linear(2, 2)})
    with cstorch.observe(model, 1) as report, cstorch.precision("bfloat16"):
        next(iter(model.values()))(torch.ones(1, 2)).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
    assert max(map(len, str(report).splitlines())) == 120


def test_settings_are_alike_whatever_they_let_pass_and_draw():
    half = half_named("bfloat16")
    settings = Settings(half, 1, 32, True, draws=Draws(5))
    settings.counted["mm", "head"] += 1
    assert settings == Settings(half, 1, 32, True)
    assert settings != Settings(half, 1, 32, True, unseen="warn")
    assert "mm" not in repr(settings)
    assert "Draws" not in repr(settings)


def test_constant_of_the_compiler_is_marked():
    def function():
        return 3

    assert constant(function) is function
    assert function._dynamo_marked_constant is True  # what torch.compiler.assume_constant_result sets


@pytest.mark.parametrize(("memory", "numbers", "sketched"), [(1199, 99, True), (1200, 99, False), (1199, 100, False)])
def test_gradients_are_sketched_where_whole_ones_need_more_memory(monkeypatch, memory, numbers, sketched):
    monkeypatch.setattr(measuring, "_MEMORY", memory)
    monkeypatch.setattr(measuring, "_SKETCH", numbers)
    measurement = SimpleNamespace(_places=None)
    measuring.Measurement._refer(measurement, SimpleNamespace(gradient=torch.full((100,), 0.5)), 3)  # of 4 bytes each
    assert measurement._norm == 5.0
    assert (measurement._places is not None) == sketched
