"""Backends, closures and the data executor: names and order of events of the original."""

import contextlib
import logging

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.settings.scopes import scopes

data = cstorch.utils.data


def loader(length=3, start=0):
    return data.DataLoader(lambda: [torch.full((2,), float(start + at)) for at in range(length)])


def test_backend_is_made_once_and_returned_afterwards():
    with pytest.raises(RuntimeError, match=r"^backend: this process has none yet"):
        cstorch.backend()
    assert not cstorch.use_cs()
    made = cstorch.backend("cpu", artifact_dir="somewhere")
    assert cstorch.backend() is made is cstorch.backend("CPU") is cstorch.current_backend()
    assert (made.is_cpu, made.is_csx, str(made.artifact_dir), made.torch_device.type) == (
        True,
        False,
        "somewhere",
        "cpu",
    )
    with pytest.raises(RuntimeError, match=r"^backend_type: this process has a backend already, CPU"):
        cstorch.backend("CSX")


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        (("TPU",), {}, ValueError, r"^backend_type: got 'TPU', must be 'CPU', 'GPU' or 'CSX'"),
        ((3,), {}, TypeError, r"^backend_type: got 3, must be"),
        (("CSX",), {"compile_dri": "x"}, TypeError, r"^compile_dri: the backend CSX has no .*did you mean compile_dir"),
        (("CSX",), {"cluster_config": 3}, TypeError, r"^cluster_config: got 3, must be a ClusterConfig"),
        ((), {"artifact_dir": "x"}, TypeError, r"^backend_type: got None beside options"),
    ],
)
def test_wrong_backend_is_refused(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        cstorch.backend(*args, **kwargs)


def test_csx_turns_mixed_precision_on_and_cpu_does_not():
    cstorch.backend("CSX")
    assert cstorch.use_cs()
    assert not cstorch.mixed_precision()
    assert cstorch.trace(cstorch.mixed_precision)()


def test_cpu_leaves_mixed_precision_as_it_is():
    cstorch.backend("CPU")
    assert not cstorch.trace(cstorch.mixed_precision)()


def test_gpu_says_where_it_runs(caplog):
    with caplog.at_level(logging.WARNING, logger="golden.torch"):
        backend = cstorch.backend("GPU", enable_distributed=False)
    assert backend.torch_device.type == "cpu"
    assert any("PyTorch finds no CUDA device" in record.getMessage() for record in caplog.records)


def test_flags_of_the_backends_keep_the_level_and_refuse_what_they_do_not_know():
    precision = cstorch.backends.csx.precision
    assert precision.optimization_level == 1
    precision.optimization_level = 2
    assert (precision.optimization_level, cstorch.current_pol()) == (2, (2, 2))
    cstorch.backends.csx.performance.micro_batch_size = 4
    assert cstorch.backends.csx.performance.micro_batch_size == 4
    cstorch.backends.reset()
    assert (precision.optimization_level, cstorch.backends.csx.performance.micro_batch_size) == (1, "auto")
    with pytest.raises(ValueError, match=r"^level: got 3"):
        precision.optimization_level = 3
    with pytest.raises(TypeError, match=r"^micro_batch: backends.csx.performance .*did you mean micro_batch_size"):
        cstorch.backends.csx.performance.micro_batch = 4
    with pytest.raises(AttributeError, match=r"^performance: is a group of flags"):
        cstorch.backends.csx.performance = 4


def test_cluster_configuration_checks_the_level_and_the_names():
    assert cstorch.CsConfig(precision_opt_level=2, num_csx=2).num_csx == 2
    with pytest.raises(ValueError, match=r"^precision_opt_level: got 3"):
        cstorch.utils.CSConfig(precision_opt_level=3)
    with pytest.raises(TypeError, match=r"^num_csxs: .*did you mean num_csx"):
        cstorch.distributed.ClusterConfig(num_csxs=2)


@pytest.mark.parametrize("kind", ["trace", "compile", "method"])
def test_level_of_the_cluster_configuration_holds(kind):
    cstorch.amp.set_half_dtype("bfloat16")
    cstorch.backend("CSX", cluster_config=cstorch.distributed.ClusterConfig(precision_opt_level=2))
    seen = []

    class Model(nn.Module):
        def forward(self, x):
            seen.append((cstorch.get_half_dtype_str(), cstorch.current_pol().fwd, cstorch.mixed_precision()))
            return x

        def encode(self, x):
            return self.forward(x)

    model = Model()
    if kind == "trace":
        cstorch.trace(model)(torch.ones(1))
    elif kind == "compile":
        assert cstorch.compile(model, "CSX") is model
        model(torch.ones(1))
    else:
        cstorch.compile(model).encode(torch.ones(1))
    assert seen == [("bfloat16", 2, True)]


@pytest.mark.parametrize("way", ["alone", "submodule", "traced", "in a precision"])
def test_level_map_of_a_compiled_model_holds(way):
    cstorch.amp.set_half_dtype("bfloat16")
    seen = []

    class Body(nn.Module):
        def forward(self, x):
            seen.append((cstorch.current_pol().fwd, cstorch.current_pol().bwd))
            return x

    model = nn.Sequential(Body(), nn.Sequential(Body()))
    cstorch.compile(model, levels={"1.*": {"fwd": 2, "bwd": 0}})
    run = model[1] if way == "submodule" else model
    if way == "traced":
        run = cstorch.trace(run)
    with cstorch.precision("float16", level=0) if way == "in a precision" else contextlib.nullcontext():
        run(torch.ones(1))
    around = (0, 0) if way == "in a precision" else (1, 1)
    assert seen == ([(2, 0)] if way == "submodule" else [around, (2, 0)])
    assert not scopes.maps
    assert not scopes.pols


def test_wrong_level_map_of_a_compiled_model_is_refused_when_it_is_compiled():
    with pytest.raises(ValueError, match=r"^levels: 'head' matches no module of Linear"):
        cstorch.compile(nn.Linear(1, 1), levels={"head": 2})
    with pytest.raises(TypeError, match=r"^levels: got 2, must be a mapping"):
        cstorch.compile(nn.Linear(1, 1), levels=2)


def test_precision_around_a_traced_step_decides():
    cstorch.amp.set_half_dtype("bfloat16")
    step = cstorch.trace(lambda: (cstorch.get_half_dtype_str(), cstorch.current_pol().fwd))
    assert step() == ("bfloat16", 1)
    with cstorch.precision(half="float16", level=0):
        assert step() == ("float16", 0)


def test_compile_of_something_else_is_refused():
    with pytest.raises(TypeError, match=r"^model: got 3, must be a torch.nn.Module"):
        cstorch.compile(3)
    with pytest.raises(TypeError, match=r"^backend: got 3, must be"):
        cstorch.compile(nn.Linear(1, 1), 3)
    with pytest.raises(TypeError, match=r"^step_fn: got 3, must be callable"):
        cstorch.trace(3)


def test_closures_run_at_the_end_of_their_step_with_the_values_of_then():
    cstorch.backend("CPU")
    events = []

    @cstorch.step_closure
    def inner(value):
        events.append(("inner", value))

    @cstorch.step_closure
    def outer(tensor):
        events.append(("outer", tensor.item()))
        inner(tensor.item())

    for batch in data.DataExecutor(loader(), num_steps=2):
        tensor = batch[0].clone()
        outer(tensor)
        tensor += 100
        events.append("end of the loop's body")
    body = "end of the loop's body"
    assert events == [body, ("outer", 0.0), ("inner", 0.0), body, ("outer", 1.0), ("inner", 1.0)]


def test_closure_without_a_backend_runs_at_once_and_after_a_traced_step_without_an_executor():
    events = []
    note = cstorch.step_closure(events.append)
    note(1)
    assert events == [1]
    cstorch.backend("CPU")

    @cstorch.trace
    def step():
        note(2)
        assert events == [1]

    step()
    assert events == [1, 2]


def test_closures_of_a_step_that_broke_off_do_not_run_later():
    cstorch.backend("CPU")
    events = []
    note = cstorch.step_closure(events.append)
    for _ in data.DataExecutor(loader()):
        note("broken off")
        break
    for _ in data.DataExecutor(loader(), num_steps=1):
        note("whole")
    assert events == ["whole"]


@pytest.mark.parametrize(
    ("given", "steps", "expected"),
    [(None, 5, []), (0, 5, []), (2, 5, [0, 2, 4, 5]), (9, 5, [0, 5]), (5, 5, [0, 5]), (1, 3, [0, 1, 2, 3])],
)
def test_checkpoint_closure_runs_on_checkpoint_steps(given, steps, expected):
    cstorch.backend("CPU")
    saved = []
    save = cstorch.checkpoint_closure(saved.append)
    save(0)
    executor = data.DataExecutor(loader(), num_steps=steps, checkpoint_steps=given)
    for step, _ in enumerate(executor, start=1):
        assert (executor.iteration, executor.user_iteration) == (step - 1, step)
        assert executor.on_final_iteration == (step == steps)
        save(step)
    assert saved == (expected or [0])


def test_checkpoint_closure_outside_of_a_run_is_refused():
    with pytest.raises(RuntimeError, match=r"^backend: this process has none yet"):
        cstorch.checkpoint_closure(print)()
    backend = cstorch.backend("CPU")
    cstorch.checkpoint_closure(print)()
    with pytest.raises(RuntimeError, match=r"^executor: none is running"):
        backend.run_step_closures()


def test_executor_begins_the_data_again_and_counts_samples(tmp_path):
    cstorch.backend("CPU", artifact_dir=tmp_path)
    executor = data.DataExecutor(loader(3), num_steps=7)
    assert len(executor) == 7
    assert [batch[0].item() for batch in executor] == [0, 1, 2, 0, 1, 2, 0]
    assert executor.profiler.total_samples == 14
    assert executor.profiler.rate_tracker.global_rate > 0
    assert list(tmp_path.iterdir()) == []
    assert executor.artifact_dir.is_dir()
    assert len(data.DataExecutor(loader(3))) == 3


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: data.DataExecutor([1]), TypeError, r"^dataloader: got \[1\], must be a cstorch.utils.data.DataLoader"),
        (lambda: data.DataExecutor(loader(), 0), ValueError, r"^num_steps: got 0"),
        (lambda: data.DataExecutor(loader(), 1, 2.5), TypeError, r"^checkpoint_steps: got 2.5"),
        (lambda: data.DataExecutor(loader(), cs_config=3), TypeError, r"^cs_config: got 3"),
        (
            lambda: data.DataExecutor(loader(), micro_batch=3),
            TypeError,
            r"^micro_batch: .*mean micro_batch_size",
        ),
        (lambda: data.DataExecutor(data.DataLoader(lambda: iter([1]))), ValueError, r"^num_steps: got None for data"),
        (lambda: data.DataLoader(3), TypeError, r"^input_fn: got 3"),
        (lambda: list(data.DataExecutor(loader(0), 1)), ValueError, r"^dataloader: has no batch"),
        (lambda: list(data.DataExecutor(data.DataLoader(lambda: [3]), 1)), TypeError, r"^dataloader: got the batch 3"),
    ],
)
def test_wrong_data_are_refused(make, error, message):
    cstorch.backend("CPU")
    with pytest.raises(error, match=message):
        make()


def test_generator_that_is_used_up_is_told():
    cstorch.backend("CPU")
    batches = data.DataLoader(lambda: (torch.ones(1) for _ in range(2)))
    with pytest.raises(ValueError, match=r"a generator that can be used once only"):
        list(data.DataExecutor(batches, num_steps=3))


def test_restartable_loader_saves_and_restores_its_state():
    class Counted:
        at = 0

        def __iter__(self):
            while self.at < 6:
                self.at += 1
                yield torch.tensor([float(self.at)])

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state_dict, strict=True):
            self.at = state_dict["at"]

        def aggregate_state_dict(self, worker_states):
            return worker_states[0]

        def deaggregate_state_dict(self, aggregated_state_dict, strict=True):
            return aggregated_state_dict

    cstorch.backend("CPU")
    states = []
    batches = data.DataLoader(Counted)
    save = cstorch.checkpoint_closure(lambda: states.append(batches.state_dict()))
    for _ in data.DataExecutor(batches, num_steps=4, checkpoint_steps=3):
        save()
    assert states == [{"at": 3}, {"at": 4}]
    again = data.DataLoader(Counted)
    again.load_state_dict(states[0])
    assert [batch.item() for batch in data.DataExecutor(again, num_steps=2)] == [4.0, 5.0]
    with pytest.raises(RuntimeError, match=r"^state_dict: list has no state to save"):
        loader().load_state_dict({})


def test_schedule_matches_its_steps():
    schedule = data.Schedule([data.Schedule.Range(1, 8, 3, True), data.Schedule.Range(10, 12, 1, False)])
    steps = [1, 4, 7, 10, 11]
    assert (list(schedule), len(schedule)) == (steps, 5)
    assert [step for step in range(20) if schedule.match(step)] == steps
    with pytest.raises(ValueError, match=r"^intervals: .*must not overlap"):
        data.Schedule([data.Schedule.Range(1, 8, 3, True), data.Schedule.Range(7, 12, 1, False)])
    with pytest.raises(ValueError, match=r"^end: got 1, must be at least 2"):
        data.Schedule.Range(1, 1, 1, False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"num_steps": 7}, 7),
        ({"num_epochs": 2}, 20),
        ({"num_epochs": 2, "grad_accum_steps": 3}, 6),
        ({"num_epochs": 2, "steps_per_epoch": 4}, 8),
        ({"max_steps": 30, "initial_step": 25, "num_epochs": 1}, 5),
    ],
)
def test_number_of_steps_is_the_smallest_limit(given, expected):
    assert data.compute_num_steps(range(10), **given) == expected


def test_synthetic_samples_follow_their_pattern():
    samples = list(data.SyntheticDataset({"x": torch.ones(2), "y": lambda at: torch.tensor(at)}, num_samples=3))
    assert [sample["y"].item() for sample in samples] == [0, 1, 2]
    assert torch.equal(samples[2]["x"], torch.ones(2))


def test_ranks_of_a_process_of_its_own():
    dist = cstorch.distributed
    assert (dist.num_tasks(), dist.num_streamers(), dist.num_receivers(), dist.get_ordinal()) == (1, 1, 1, 0)
    assert (dist.is_master_ordinal(), dist.is_streamer(), dist.is_receiver()) == (True, False, True)
    assert (dist.get_streaming_rank(), dist.get_streaming_batch_size(8)) == (0, 8)
