"""The callbacks of the Model Zoo's release 2.10: those that work here, and one table of what becomes of each name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from golden.torch.amp.configuration import MixedPrecision
from golden.torch.amp.gradients import common_norm, l2_norm, number_of, parameters_of
from golden.torch.cerebras.cluster import swap_flags
from golden.torch.common.arguments import check_items
from golden.torch.common.terminal import say_once
from golden.torch.training.callback import Callback
from golden.torch.training.divergence import CheckLoss
from golden.torch.training.loggers import Logging
from golden.torch.training.loop import TrainingLoop, ValidationLoop
from golden.torch.training.run import Run
from golden.torch.training.saving import Checkpoint, KeepNCheckpoints

__all__ = [
    "CALLBACKS",
    "ComputeNorm",
    "GlobalFlags",
    "LoadCheckpointStates",
    "LogOptimizerParamGroup",
    "ScopedTrainFlags",
    "ScopedValidateFlags",
    "WithoutEffect",
    "callback_named",
]


class _Figures(Callback):
    """Base of callbacks that measure a step before the optimizer makes it, and log it under its number after."""

    def __init__(self) -> None:
        self._figures: dict[str, float] = {}

    def measured(self, model: nn.Module, optimizer: Optimizer) -> dict[str, float]:
        """Return the figures of a step, whose gradients are unscaled and not yet clipped."""
        raise NotImplementedError

    def on_before_optimizer_step(self, trainer: Run, model: nn.Module, optimizer: Optimizer) -> None:
        """Measure a step that is logged."""
        if (trainer.step + 1) % trainer.log_steps == 0:
            self._figures = self.measured(model, optimizer)

    def on_train_batch_end(
        self, trainer: Run, model: nn.Module, outputs: dict[str, Any], batch: Any, batch_idx: int
    ) -> None:
        """Log the measured norms."""
        if self._figures:
            trainer.log_metrics(**self._figures)
        self._figures = {}


class ComputeNorm(_Figures):
    """Logs L2 norms at each logged step: of all weights before it, of all gradients, and of each layer's.

    Layers are told by their names, which have ``layers.``, a number and a dot in them.
    """

    def measured(self, model: nn.Module, optimizer: Optimizer) -> dict[str, float]:
        """Return ``model_wise_params_norm``, ``model_wise_grad_norm`` and ``per_layer_grad_norm/layer_N``."""
        of_layers: dict[str, list[torch.Tensor]] = {}
        for name, each in model.named_parameters():
            if each.grad is not None and (found := re.match(r".*layers\.(\d+)\.", name)):
                of_layers.setdefault(f"per_layer_grad_norm/layer_{found[1]}", []).append(each)
        trained = [each.detach() for each in model.parameters() if each.requires_grad]
        norms = [torch.linalg.vector_norm(each, dtype=torch.float64).item() for each in trained]
        return {
            "model_wise_params_norm": common_norm(norms),
            "model_wise_grad_norm": l2_norm(parameters_of(optimizer)),
            **{name: l2_norm(those) for name, those in of_layers.items()},
        }


class LogOptimizerParamGroup(_Figures):
    """Logs settings of the optimizer's groups, such as ``lr``, at each logged step: those that the step is made with.

    Parameters
    ----------
    keys : str or iterable of str
        Their names; each is logged as ``KEY/GROUP``.
    """

    def __init__(self, keys: str | Iterable[str]) -> None:
        super().__init__()
        self.keys = [keys] if isinstance(keys, str) else check_items(keys, "keys", "settings of the optimizer")

    def setup(self, trainer: Run) -> None:
        """Look for the keys."""
        for group in [] if trainer.optimizer is None else trainer.optimizer.param_groups:
            for key in self.keys:
                if key not in group:
                    raise ValueError(f"keys: got {key!r}, must be settings of the optimizer: {', '.join(group)}")

    def measured(self, model: nn.Module, optimizer: Optimizer) -> dict[str, float]:
        """Return the settings by key and number of the group."""
        groups = list(enumerate(optimizer.param_groups))
        return {f"{key}/{number}": number_of(group[key]) for key in self.keys for number, group in groups}


class GlobalFlags(Callback):
    """Sets flags of ``backends`` by their paths, such as ``csx.performance.micro_batch_size``, for the whole process.

    Only a wafer understands them: each is reported once.

    Parameters
    ----------
    **flags
        Values by paths.
    """

    def __init__(self, **flags: Any) -> None:
        if "csx.precision.optimization_level" in flags:
            raise ValueError(
                "csx.precision.optimization_level: got it as a flag, must be the precision_opt_level of the precision"
            )
        swap_flags(swap_flags(flags))  # an unknown one is refused now
        self.flags = flags

    def pre_setup(self, trainer: Any) -> None:
        """Set them."""
        swap_flags(self.flags)


class _ScopedFlags(GlobalFlags):
    def pre_setup(self, trainer: Any) -> None:
        """Leave them as they are."""

    def _set(self, *_: Any, **__: Any) -> None:
        self._before = swap_flags(self.flags)

    def _restore(self, *_: Any, **__: Any) -> None:
        swap_flags(self._before)


class ScopedTrainFlags(_ScopedFlags):
    """Sets flags as `GlobalFlags` does, while the run trains."""

    on_train_start, on_train_end = _ScopedFlags._set, _ScopedFlags._restore


class ScopedValidateFlags(_ScopedFlags):
    """Sets flags as `GlobalFlags` does, during validations."""

    on_validate_start, on_validate_end = _ScopedFlags._set, _ScopedFlags._restore


class LoadCheckpointStates(Callback):
    """Chooses the states that a run takes from another run's checkpoint; from its own it takes everything.

    Parameters
    ----------
    load_checkpoint_states : "all" or "model"
        ``"model"``: the weights alone. The run then begins with its first step.
    """

    def __init__(self, load_checkpoint_states: str | list[str] = "all") -> None:
        if load_checkpoint_states not in ("all", "model", ["model"]):
            raise ValueError(
                f"load_checkpoint_states: got {load_checkpoint_states!r}, must be 'all' or 'model'; a run cannot go on "
                "with some of the other states"
            )
        self._weights_alone = load_checkpoint_states != "all"

    def takes_all(self, path: Path, model_dir: Path | None) -> bool:
        """Return whether a run with this folder takes all states of a checkpoint."""
        own = model_dir is not None and path.resolve().parent == (model_dir / "checkpoints").resolve()
        return own or not self._weights_alone


class WithoutEffect(Callback):
    """Base of the callbacks of the Model Zoo that are accepted, reported once, and do nothing here."""

    why = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        say_once(f"{type(self).__name__}: {self.why}; accepted, and without effect here")


_WORK = (
    *(Callback, CheckLoss, Checkpoint, ComputeNorm, GlobalFlags, KeepNCheckpoints, LoadCheckpointStates),
    *(LogOptimizerParamGroup, Logging, MixedPrecision, ScopedTrainFlags, ScopedValidateFlags, TrainingLoop),
    ValidationLoop,
)
_WITHOUT_EFFECT = {
    "fit tells how many parameters there are": "CountParams",
    "log.csv tells the seconds of each step": "DurationProfiler FlopUtilization Profiler RateProfiler "
    "SavePerformanceData",
    "it is for a wafer": "DebugArgsPath OpProfiler",
    "nothing is sent from here": "EmailNotification SlackNotification",
    "the Trainer logs the metrics of the model by itself": "ModelEvalMetrics",
    "a run keeps its own settings": "ModelZooParamsMetadata",
    "it is for a data loader of the Model Zoo": "SamplesStreamedInfo",
}
_NOT_PROVIDED = {
    "the Trainer does its work, as its own arguments say": "ArtifactDirCallback AutoRestart BackendCallback "
    "CoreCallback DataLoaderCallback EarlyExit GradientAccumulationCallback LoopCallback LossAccumulationCallback "
    "ModelCallback OptimizerCallback Precision Reproducibility RunSchedule SchedulersCallback",
    "there is no sparsity and no compression here": "LogSparsity SelectiveGrad SparsityCallback WeightCompression",
    "change the model or the data before the Trainer gets them": "Lora SkipSamples",
    "observe= of the Trainer looks into the products, CheckLoss ends a run at a loss that is no number, and a Callback "
    "of your own sees everything else": "ComputeNormGNS DumpActivations DumpAvailableTensorNames LogInputSummaries "
    "NaNChecker NormTensorListener SummaryTensorListener",
    "write a Callback with on_after_save_checkpoint": "SaveCheckpointState",
    "give each Trainer its callbacks": "register_global_callback",
    "run its program after the training": "BigCodeEvalHarness EleutherEvalHarness ValidationCallback",
    "set HF_HOME in the environment": "HFCacheDir",
}
#: The class of each name of release 2.10, which may be one without effect; or why it is not provided.
CALLBACKS: dict[str, type | str] = {
    **{each.__name__: each for each in _WORK},
    **{
        name: type(name, (WithoutEffect,), {"__module__": __name__, "__doc__": f"Without effect: {why}.", "why": why})
        for why, names in _WITHOUT_EFFECT.items()
        for name in names.split()
    },
    **{name: why for why, names in _NOT_PROVIDED.items() for name in names.split()},
}


def callback_named(name: str) -> type:
    """Return the class of a name of the Model Zoo, or raise ImportError with what to do instead."""
    found = CALLBACKS.get(name)
    if found is None:
        raise AttributeError(f"{name}: is no callback of the Model Zoo")
    if isinstance(found, str):
        raise ImportError(f"{name}: is not provided here: {found}")
    return found
