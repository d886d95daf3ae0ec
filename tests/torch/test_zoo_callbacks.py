"""The callbacks of the Model Zoo's release 2.10: their effect here, and the words of the page and the errors."""

import csv
import importlib
import re

import numpy as np
import pytest
import torch
import yaml

import golden.torch as cstorch
from golden.modelzoo.trainer import callbacks
from golden.modelzoo.trainer.callbacks import (
    Callback,
    Checkpoint,
    ComputeNorm,
    GlobalFlags,
    LoadCheckpointStates,
    LogOptimizerParamGroup,
    ScopedTrainFlags,
    ScopedValidateFlags,
    TrainingLoop,
)
from golden.torch.common.section import parse
from golden.torch.training.callback import Logger
from golden.torch.training.run_file import Init
from golden.torch.training.run_parts import callbacks_of, optimizer_from
from golden.torch.training.zoo_callbacks import CALLBACKS, WithoutEffect

from .run_files import NEWER, ROOT, call, refused
from .run_models import Net
from .runs import bits, run

RELEASE = """
ArtifactDirCallback AutoRestart BackendCallback Callback CheckLoss Checkpoint ComputeNorm ComputeNormGNS CoreCallback
CountParams DataLoaderCallback DebugArgsPath DumpActivations DumpAvailableTensorNames DurationProfiler EarlyExit
EmailNotification FlopUtilization GlobalFlags GradientAccumulationCallback KeepNCheckpoints LoadCheckpointStates
LogInputSummaries LogOptimizerParamGroup LogSparsity Logging LoopCallback Lora LossAccumulationCallback MixedPrecision
ModelCallback ModelEvalMetrics ModelZooParamsMetadata NaNChecker NormTensorListener OpProfiler OptimizerCallback
Precision Profiler RateProfiler Reproducibility RunSchedule SamplesStreamedInfo SaveCheckpointState SavePerformanceData
SchedulersCallback ScopedTrainFlags ScopedValidateFlags SelectiveGrad SkipSamples SlackNotification SparsityCallback
SummaryTensorListener TrainingLoop ValidationCallback ValidationLoop WeightCompression register_global_callback
"""
EXTENSIONS = ["BigCodeEvalHarness", "EleutherEvalHarness", "HFCacheDir"]
WITHOUT_EFFECT = [
    name for name, each in CALLBACKS.items() if isinstance(each, type) and issubclass(each, WithoutEffect)
]
NOT_PROVIDED = [name for name, each in CALLBACKS.items() if isinstance(each, str)]
BATCH = "csx.performance.micro_batch_size"


@pytest.fixture(autouse=True)
def flags_as_before():
    yield
    cstorch.backends.reset()


def init_with(**changes):
    return parse(Init, yaml.safe_load(NEWER)["trainer"]["init"] | changes)


class Kept(Logger):
    """Keeps the figures by step and name."""

    def __init__(self):
        self.figures = {}

    def log_step(self, row, step):
        pass

    def log_metrics(self, metrics, step):
        self.figures |= {(step, name): value for name, value in metrics.items()}


def test_every_callback_of_the_release_is_in_its_row_of_the_page():
    text = (ROOT / "docs" / "cerebras.md").read_text(encoding="utf-8").partition("## Callbacks\n")[2]
    rows = [re.findall(r"`(\w+)`", line) for line in text.splitlines() if line.startswith("| ") and "`" in line]
    of_table = [[name for name in CALLBACKS if name not in (*WITHOUT_EFFECT, *NOT_PROVIDED)]]
    assert rows == [sorted(names) for names in (*of_table, WITHOUT_EFFECT, NOT_PROVIDED)]
    assert sorted(CALLBACKS) == sorted([*RELEASE.split(), *EXTENSIONS])


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_callback_without_effect_is_accepted_and_reported_once(caplog, name):
    for _ in range(2):
        (made,) = callbacks_of(init_with(callbacks=[{name: {"any_setting": 3}}]))
    assert type(made) is getattr(callbacks, name)
    assert isinstance(made, Callback)
    (text,) = caplog.messages
    assert re.fullmatch(f"{name}: .+; accepted, and without effect here", text)


@pytest.mark.parametrize("name", NOT_PROVIDED)
def test_callback_that_is_not_provided_says_so_in_yaml_and_in_python(name):
    with pytest.raises(ValueError, match=rf"^trainer\.init\.callbacks\.{name}: is not provided here: "):
        callbacks_of(init_with(callbacks=[{name: {}}]))
    with pytest.raises(ImportError, match=rf"^{name}: is not provided here: "):
        getattr(importlib.import_module("golden.modelzoo.trainer.callbacks"), name)


def test_name_that_the_release_has_not_is_no_attribute():
    assert not hasattr(callbacks, "ComputeNorms")


def test_norms_of_each_logged_step_are_those_of_numpy():
    class Norms(Callback):
        def __init__(self):
            self.wanted = {}

        def on_before_optimizer_step(self, trainer, model, optimizer):
            def norm(*tensors):
                values = [each.detach().double().numpy().ravel() for each in tensors]
                return np.float32(np.sqrt(np.sum(np.concatenate(values) ** 2)))

            step, (w0, b0, w3, b3) = trainer.step + 1, model.parameters()
            self.wanted |= {
                (step, "model_wise_params_norm"): norm(w0, b0, w3, b3),
                (step, "model_wise_grad_norm"): norm(w0.grad, b0.grad, w3.grad, b3.grad),
                (step, "per_layer_grad_norm/layer_0"): norm(w0.grad, b0.grad),
                (step, "per_layer_grad_norm/layer_3"): norm(w3.grad, b3.grad),
            }

    norms, kept = Norms(), Kept()
    trainer, loader = run(None, net=Net(), callbacks=[ComputeNorm(), norms], loggers=[kept], log_steps=2)
    trainer.fit(loader, steps=5)
    assert len(norms.wanted) == 20
    assert list(kept.figures) == [each for each in norms.wanted if each[0] in (2, 4)]
    assert list(kept.figures.values()) == pytest.approx([norms.wanted[each] for each in kept.figures], rel=2**-22)


def test_settings_of_the_optimizer_are_those_of_the_step_that_they_are_logged_for():
    kept = Kept()
    schedule = [lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]
    logged = LogOptimizerParamGroup(["lr", "weight_decay"])
    trainer, loader = run(None, callbacks=[logged], loggers=[kept], schedulers=schedule)
    trainer.fit(loader, steps=3)
    assert [value for (_, name), value in kept.figures.items() if name == "lr/0"] == [0.01, 0.005, 0.0025]
    assert kept.figures[3, "weight_decay/0"] == 0.01
    with pytest.raises(ValueError, match=r"^keys: got 'rate', must be settings of the optimizer: params, lr, "):
        run(None, callbacks=[LogOptimizerParamGroup("rate")])


def test_scoped_flags_are_set_while_they_shall_and_put_back(caplog):
    seen = []

    class Seen(Callback):
        def on_after_forward(self, trainer, model, outputs, batch):
            flags = cstorch.backends.csx
            seen.append((model.training, flags.performance.micro_batch_size, flags.debug.compile_crd_memory_gi))

    given = [
        *(GlobalFlags(**{"csx.debug.compile_crd_memory_gi": 64}), ScopedTrainFlags(**{BATCH: 30})),
        *(ScopedValidateFlags(**{BATCH: 7}), Seen()),
    ]
    assert cstorch.backends.csx.debug.compile_crd_memory_gi is None
    trainer, loader = run(None, callbacks=given, loop=TrainingLoop(max_steps=1, eval_steps=1))
    assert cstorch.backends.csx.performance.micro_batch_size == "auto"
    trainer.fit(loader, loader)
    assert seen == [(True, 30, 64), (False, 7, 64)]
    performance = cstorch.backends.csx.performance
    assert (performance.micro_batch_size, cstorch.backends.csx.debug.compile_crd_memory_gi) == ("auto", 64)
    assert caplog.messages == [
        f"backends.{path}: is for a wafer; accepted, and without effect here"
        for path in ("csx.debug.compile_crd_memory_gi", BATCH)
    ]


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("csx.performance.micro_batch", "micro_batch: backends.csx.performance has no such parameter, must be one of "),
        ("csx.perform.micro_batch_size", "perform: backends.csx has no such parameter, must be one of "),
        ("csx.debug.ini.stall", "ini: backends.csx.debug has no such parameter, must be one of "),
        ("csx.precision.optimization_level", "must be the precision_opt_level of the precision"),
    ],
)
def test_flag_that_is_unknown_or_a_setting_of_the_run_is_refused(flag, message):
    with pytest.raises(ValueError, match=rf"^trainer\.init\.callbacks\.GlobalFlags: .*{re.escape(message)}"):
        callbacks_of(init_with(callbacks=[{"GlobalFlags": {flag: 3}}]))
    assert cstorch.backends.csx.precision.optimization_level == 1


def test_weights_alone_are_loaded_from_another_run_and_everything_from_its_own(tmp_path):
    first, loader = run(tmp_path / "first")
    first.fit(loader, steps=2)
    path = tmp_path / "first" / "checkpoints" / "step_00000002"

    class Begun(Callback):
        def on_fit_start(self, trainer, train_dataloader, val_dataloader, loop):
            self.step, self.weights = trainer.step, bits(trainer)[0]

    def fit(steps, **where):
        begun = Begun()
        trainer, loader = run(tmp_path / "second", callbacks=[LoadCheckpointStates("model"), begun])
        trainer.fit(loader, steps=steps, **where)
        return begun, trainer

    begun, second = fit(3, ckpt_path=path)
    assert (begun.step, begun.weights) == (0, bits(first)[0])
    assert second.step == 3
    resumed, _ = fit(4, resume=True)
    assert (resumed.step, resumed.weights) == (3, bits(second)[0])
    whole, loader = run(tmp_path / "third", callbacks=[LoadCheckpointStates()])
    whole.fit(loader, steps=4, ckpt_path=path)
    assert len(whole.losses) == 2
    with pytest.raises(ValueError, match=r"^load_checkpoint_states: got 'model,optimizer', must be 'all' or 'model'"):
        LoadCheckpointStates("model,optimizer")


@pytest.mark.parametrize(
    ("name", "kind"), [("AdamW", cstorch.optim.AdamW), ("adamw", cstorch.optim.AdamW), ("Adam", cstorch.optim.Adam)]
)
def test_correct_bias_of_a_stock_file_reaches_the_optimizer(name, kind):
    settings = {"betas": [0.9, 0.95], "eps": 1e-8, "correct_bias": True, "weight_decay": 0.1}
    for given in (True, False):
        init = init_with(optimizer={name: settings | {"correct_bias": given}})
        made = optimizer_from(init, Net())
        assert type(made) is kind
        assert made.defaults["correct_bias"] is given


def test_stock_file_trains_with_its_callbacks(tmp_path, capsys, caplog, written):
    given = yaml.safe_load(NEWER)
    given["trainer"]["init"] |= {
        "optimizer": {"AdamW": {"betas": [0.9, 0.95], "eps": 1e-9, "correct_bias": True, "weight_decay": 0.1}},
        "checkpoint": {"steps": 6, "save_initial_checkpoint": False, "disable_strict_checkpoint_loading": True},
        "logging": {"log_steps": 2, "log_level": "INFO"},
        "callbacks": [
            *({"ComputeNorm": {}}, {"ScopedTrainFlags": {BATCH: 30}}, {"ScopedValidateFlags": {BATCH: 30}}),
            *({"GlobalFlags": {"csx.debug.execute_crd_memory_gi": 120}}, {"RateProfiler": None}),
            {"LoadCheckpointStates": {"load_checkpoint_states": "model"}},
        ],
    }
    assert call("fit", written(yaml.safe_dump(given)), tmp_path / "run") == 0
    with (tmp_path / "run" / "metrics.csv").open() as file:
        rows = [(row["step"], row["name"]) for row in csv.DictReader(file)]
    assert [step for step, name in rows if name == "model_wise_grad_norm"] == ["2", "4", "6"]
    assert sorted(text.partition(":")[0] for text in caplog.messages) == [
        *("RateProfiler", "backends.csx.debug.execute_crd_memory_gi", f"backends.{BATCH}"),
        *("disable_strict_checkpoint_loading", "log_level"),
    ]
    lora = ("--set", "trainer.init.callbacks=[{Lora: {lora_params: {}}}]")
    told = refused(capsys, "fit", written(NEWER), tmp_path / "other", *lora)
    assert "trainer.init.callbacks.Lora: is not provided here: change the model" in told


def test_validation_is_logged_under_the_step_of_its_checkpoint(tmp_path, capsys, written):
    path, folder = written(NEWER), tmp_path / "run"
    call("fit", path, folder)
    capsys.readouterr()
    call("validate", path, folder)
    assert "\nstep 6  val_loss " in capsys.readouterr().out
    call("validate", path, folder, "--checkpoint", str(folder / "checkpoints" / "step_00000004"))
    assert "\nstep 4  val_loss " in capsys.readouterr().out


def test_validation_of_an_older_checkpoint_keeps_the_rows_of_later_steps(tmp_path):
    trainer, loader = run(tmp_path, checkpoint=Checkpoint(steps=1), loop=TrainingLoop(max_steps=3, eval_frequency=1))
    trainer.fit(loader, loader)
    trainer.validate(loader, tmp_path / "checkpoints" / "step_00000001")
    trainer.validate(loader)
    trainer.fit(loader, loader, steps=4)
    with (tmp_path / "metrics.csv").open() as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    assert steps == [1, 2, 3, 1, 1, 4]
