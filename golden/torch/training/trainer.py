"""A training loop for any PyTorch model: precision, loss scaling, log, checkpoints, several processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from golden.torch.amp.configuration import MixedPrecision
from golden.torch.common.arguments import check_count, check_is
from golden.torch.common.processes import RandomState, capture, device_of_kind, rank, restore, seed_everything, state_to
from golden.torch.instruments.observe.observation import as_settings
from golden.torch.instruments.observe.report import ObservationReport
from golden.torch.training.bounds import begin_afresh, checkpoint_to_load, stopped, warn_of_no_step
from golden.torch.training.callback import Callback, Callbacks, Logger
from golden.torch.training.checkpoint import read_checkpoint
from golden.torch.training.divergence import Divergence
from golden.torch.training.epochs import Epochs
from golden.torch.training.identity import block_settings
from golden.torch.training.interruption import Interruption
from golden.torch.training.loggers import CsvLogger, Logging
from golden.torch.training.loop import TrainingLoop, ValidationLoop
from golden.torch.training.observed import ObservedRun
from golden.torch.training.parts import (
    NotOfTensorFlow,
    as_checkpoint,
    as_log_steps,
    as_loggers,
    as_loop,
    as_model,
    as_schedulers,
    device_of,
    one_or_several,
    optimizer_of,
)
from golden.torch.training.persistence import Position, Settings, go_on, save
from golden.torch.training.saving import Checkpoint
from golden.torch.training.validation import measured, validate
from golden.torch.training.zoo_callbacks import LoadCheckpointStates

__all__ = ["Trainer"]


class Trainer(NotOfTensorFlow):
    """Train a model in a precision.

    In a process group of ``torch.distributed`` (see ``torchrun``), every process trains on its own batches. The weights
    of process 0 are copied to all before the first step, gradients are averaged in every step, and an overflow in one
    process skips the step in all. Process 0 shows, logs and saves.

    Parameters
    ----------
    model : nn.Module or callable
        With parameters in float32; or a function without arguments that returns it, after `seed` is set.
    optimizer : Optimizer or callable, optional
        Of the model's parameters; or a function of the model that returns it. None: the trainer only validates.
    loss : callable, optional
        ``loss(model(inputs), targets)`` gives a scalar tensor; batches are pairs of inputs and targets. None:
        ``model(batch)`` gives the loss, alone, first in a tuple, or as ``"loss"`` in a dictionary.
    precision : MixedPrecision, optional
        cbfloat16 at level 1 with dynamic loss scaling unless given.
    model_dir : path, optional
        Folder of the run: ``log.csv``, ``metrics.csv`` and ``checkpoints/``. None writes nothing.
    checkpoint_steps : int, optional
        Steps between checkpoints; one more is written at the end. None: only that one.
    log_steps : int
        Steps between rows of the log.
    progress : bool
        Whether to show a progress bar on the terminal (standard error).
    device, backend : str or object, optional
        One of them, "CPU", "GPU" or "CSX". GPU moves the model, and batches as they come, to the current CUDA device
        if there is one; else everything runs on the CPU. Batches go to the device of a model that is on one already.
    schedulers : list, optional
        Schedulers, or functions that make one of the optimizer. Each makes a step after every step of the run.
    loop : TrainingLoop, optional
        The length of the run, unless `fit` is told; accumulation of gradients; how often to validate.
    checkpoint : Checkpoint, optional
        What `checkpoint_steps` says, and more.
    logging : Logging, optional
        What `log_steps` says.
    callbacks : list of Callback, optional
        Called at the turns of the run, in this order.
    logger, loggers : Logger or list of Logger, optional
        Destinations of figures, in addition to ``log.csv``.
    seed : int, optional
        Seeds PyTorch, Python and NumPy before the model is made, and again before the first step, with the number of
        the process added.
    observe : int or mapping, optional
        Steps from one whose products are looked into to the next, as `golden.torch.observe` does it; or a mapping of
        its `every`, `rows` and `tensorboard`. ``observations.jsonl`` is written into `model_dir`.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    """

    def __init__(
        self,
        model: nn.Module | Callable[[], nn.Module],
        optimizer: Optimizer | Callable[[nn.Module], Optimizer] | None = None,
        loss: Callable[[Any, Any], Tensor] | None = None,
        precision: MixedPrecision | None = None,
        *,
        model_dir: str | Path | None = None,
        checkpoint_steps: int | None = None,
        log_steps: int | None = None,
        progress: bool = True,
        device: str | None = None,
        backend: Any = None,
        schedulers: Any = None,
        loop: TrainingLoop | None = None,
        checkpoint: Checkpoint | None = None,
        logging: Logging | None = None,
        callbacks: Iterable[Callback] | None = None,
        logger: Logger | Iterable[Logger] | None = None,
        loggers: Logger | Iterable[Logger] | None = None,
        seed: int | None = None,
        observe: Any = None,
    ) -> None:
        if loss is not None and not callable(loss):
            raise TypeError(f"loss: got {loss!r}, must be callable, as loss(outputs, targets), or None")
        for name, given, kind in (
            ("precision", precision, MixedPrecision),
            ("loop", loop, TrainingLoop),
            ("checkpoint", checkpoint, Checkpoint),
            ("logging", logging, Logging),
        ):
            check_is(given, kind, name)
        if seed is not None:
            seed_everything(check_count(seed, "seed", 0, 2**64 - 1))
        self.backend, self.device = backend, device_of(backend, device)
        if not isinstance(model_dir, str | Path | None):
            raise TypeError(f"model_dir: got {model_dir!r}, must be a path or None")
        self.model_dir = None if model_dir is None else Path(model_dir)
        self.log_steps = as_log_steps(logging, log_steps)
        self.checkpoint = as_checkpoint(checkpoint, checkpoint_steps, model_dir)
        place = device_of_kind(self.device, "device" if backend is None else "backend")
        self.model = as_model(model) if place.type == "cpu" else as_model(model).to(place)
        self.optimizer = optimizer_of(optimizer, self.model)
        if self.optimizer is not None and place.type != "cpu":
            state_to(self.optimizer, place)
        self.loss, self.loop = loss, loop
        self.precision = precision or MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic")
        if self.optimizer is not None:
            self.precision.keep_weights(self.optimizer)
        self.autocast = self.precision.autocast(self.model)  # one for all steps: random bits go on in it
        self.scaler = self.precision.grad_scaler(self.model.named_parameters())
        self._settings = Settings(self.optimizer, seed)  # before a scheduler changes the learning rate
        self.schedulers = as_schedulers(schedulers, self.optimizer)
        self._settings.note_schedulers(self.schedulers)
        self.losses: list[float] = []
        self.last_validation: tuple[int, dict[str, float]] | None = None  # its step and its result
        self.under_way: str | None = None  # the work in progress, during which no checkpoint can be written
        self._progress, self._position = progress, Position()
        self._step_of_weights: int | None = None  # of the checkpoint that they come from, until the run goes on
        self._about: dict[str, Any] = {}
        self._loader: Any = ()
        own = [] if self.model_dir is None else [CsvLogger()]
        self.loggers = [*own, *as_loggers(logger, loggers)]
        self.callbacks = one_or_several(callbacks)
        settings = as_settings(observe)
        self._observed = None if settings is None else ObservedRun(settings, self.model_dir)
        if self._observed is not None:
            self.callbacks.append(self._observed)
        if not any(isinstance(each, Divergence) for each in self.callbacks):
            self.callbacks.append(Divergence())
        self._callbacks = Callbacks([*self.callbacks, *self.loggers])
        for hook in ("pre_setup", "setup", "post_setup"):
            self.call(hook)

    @property
    def step(self) -> int:
        """Steps trained, the skipped ones included."""
        return self._position.step

    @property
    def global_step(self) -> int:
        """`step` under the name of the Model Zoo."""
        return self.step

    @property
    def observations(self) -> ObservationReport | None:
        """The observations of the latest `fit`; None without `observe`."""
        return None if self._observed is None else self._observed.report

    def call(self, hook: str, *arguments: Any) -> None:
        """Call a hook of all callbacks and loggers."""
        self._callbacks.call(hook, self, *arguments)

    def log_metrics(self, **metrics: Any) -> None:
        """Hand figures to the loggers, as of the step that is done; arrays and tensors of one element as numbers."""
        if rank() == 0:
            step = self.step if self._step_of_weights is None else self._step_of_weights
            figures = {name: _as_number(each) for name, each in metrics.items()}
            for each in self.loggers:
                each.log_metrics(figures, step)

    def save_checkpoint(self) -> None:
        """Write a checkpoint of the step that is done, within `fit` (from a callback) or after it.

        Raises
        ------
        ValueError
            If there is no `model_dir`.
        RuntimeError
            In the middle of a step or a validation, from where no run goes on with the same bits.
        """
        if self.model_dir is None:
            raise ValueError("model_dir: got None, must be a folder to save a checkpoint in")
        if self.under_way is not None:
            raise RuntimeError(
                f"save_checkpoint: {self.under_way} is not complete, a run that goes on from here would have other "
                "bits; call it after a step, as in on_train_step_end once trainer.step has grown, or in "
                "on_validate_end. torch.save(trainer.model.state_dict(), ...) keeps the weights alone"
            )
        save(self, self._position, self._loader, self._about)

    def load_weights(self, ckpt_path: bool | str | Path) -> Path:
        """Load the weights of a checkpoint, of any run; True is the newest in `model_dir`. Return its folder."""
        path = self._where_from(..., ckpt_path)
        assert path is not None
        self._step_of_weights = read_checkpoint(path, self.model).step
        return path

    def fit(
        self,
        train_dataloader: Iterable[Any] | None = None,
        val_dataloader: Iterable[Any] | None = None,
        ckpt_path: str | Path | EllipsisType | None = ...,
        *,
        steps: int | None = None,
        epochs: int | None = None,
        resume: bool | str | Path = False,
        override: bool = False,
        train_loader: Iterable[Any] | None = None,
    ) -> list[float]:
        """Train up to a number of steps or epochs, counted from the beginning of the run, or as the loop says.

        A run that has made them already makes no step, with a warning that says what to give.

        Ctrl-C and SIGTERM end the run after the step under way, which is saved when there is a `model_dir`.

        Parameters
        ----------
        train_dataloader : iterable
            Batches; iterated once for each epoch. For a resumed run to be the same bit for bit it must be built as it
            was then. A distributed sampler is told the epoch.
        val_dataloader : iterable, optional
            Batches of a validation, as often as ``loop.eval_frequency`` says, at the end unless there is a loop.
        ckpt_path : path or None
            A checkpoint to go on from; None: none. Not given: the newest in `model_dir`, if the `checkpoint` of the
            Trainer loads it without being asked.
        steps, epochs : int, optional
            When to end, instead of the loop; one of them.
        resume : bool or path
            True: go on from the newest checkpoint in `model_dir`. A path: from this checkpoint.
        override : bool
            Whether to go on from a checkpoint of a run with other settings or data, with those of this run.
        train_loader : iterable, optional
            `train_dataloader` under its earlier name.

        Returns
        -------
        list of float
            The loss of every step of this call, its mean over the processes.

        Raises
        ------
        TypeError, ValueError
            If an argument or a batch is wrong, if a checkpoint is damaged or of another run, or if the processes have
            unequal numbers of batches.
        FileNotFoundError
            If there is nothing to resume from.
        FileExistsError
            If `model_dir` has checkpoints and the run is not resumed: it would mix two runs.
        RunStopped
            If a signal has ended the run; a `SystemExit`.
        """
        loader = train_loader if train_dataloader is None else train_dataloader
        if not isinstance(loader, Iterable):
            raise TypeError(f"train_dataloader: got {loader!r}, must be an iterable of batches, as a DataLoader")
        if val_dataloader is not None and not isinstance(val_dataloader, Iterable):
            raise TypeError(f"val_dataloader: got {val_dataloader!r}, must be an iterable of batches or None")
        if self.optimizer is None:
            raise ValueError("optimizer: got None, must be an optimizer to fit the model with")
        if not self.precision.enabled and (blocks := next(iter(block_settings(self.model)), None)) is not None:
            raise ValueError(
                f"precision.enabled: got False, must be True: the layer {blocks!r} has blocks, and exact products of "
                "the half type; enable the precision, or leave the layer a torch.nn.Linear"
            )
        loop = as_loop(self.loop, steps, epochs)
        path = self._where_from(ckpt_path, resume)
        self._loader, self.losses = loader, []
        self.under_way = self._step_of_weights = None
        self.scaler.abandon()  # an error may have ended the latest step in its middle
        self._about = self._settings.about(self, loader, loop.grad_accum_steps)
        with ExitStack() as stack, Interruption() as interruption:
            stack.callback(self._flush)
            self.call("on_enter_fit", stack, loader, val_dataloader, loop)
            try:
                where = self._begin(loader, path, override)
                run = Epochs(self, self._position, loader, val_dataloader, loop, interruption, override)
                self.call("on_fit_start", loader, val_dataloader, loop)
                if self.checkpoint.save_initial_checkpoint and self.step == 0:
                    self.save_checkpoint()
                run(where, visible=self._progress)
                if not self.losses and not run.signal:
                    given = steps is not None or epochs is not None
                    warn_of_no_step(run.ending, self.step, self._position.epoch, of_fit=given)
                if self.losses and self.model_dir is not None:
                    self.save_checkpoint()
            except Exception as error:
                self.call("on_fit_exception", error)
                raise
            if run.signal:
                raise stopped(self, run.signal)
            self.call("on_fit_end", loop)
        return self.losses

    def validate(
        self,
        val_dataloader: Iterable[Any] | None = None,
        ckpt_path: str | Path | EllipsisType | None = ...,
        loop: ValidationLoop | None = None,
    ) -> dict[str, float]:
        """Return the mean loss over validation data, in the precision of the training, and the metrics of the model.

        Parameters
        ----------
        val_dataloader : iterable
            Batches as those of the training.
        ckpt_path : path or None
            A checkpoint whose weights are loaded first; not given or None: the weights that the model has.
        loop : ValidationLoop, optional
            How many batches; as the loop of the Trainer says unless given.

        Returns
        -------
        dict of str to float
            ``val_loss``, the mean over the batches of all processes, and what each metric within the model computes.
        """
        if not isinstance(val_dataloader, Iterable):
            raise TypeError(f"val_dataloader: got {val_dataloader!r}, must be an iterable of batches, as a DataLoader")
        check_is(loop, ValidationLoop, "loop")
        if ckpt_path is not ... and ckpt_path is not None:
            self.load_weights(ckpt_path)
        loop = loop or (self.loop.val_loop if self.loop is not None else ValidationLoop())
        try:
            result = validate(self, val_dataloader, loop, None, self._progress)
            self.last_validation = (self.step, result)
            self.log_metrics(**result)
        finally:
            self._flush()
        return result

    def evaluate(self, loader: Iterable[Any], measure: Callable[[Any, Any], Tensor]) -> float:
        """Return the mean of a measure over batches, in the precision of the training.

        Parameters
        ----------
        loader : iterable of (inputs, targets)
            The batches.
        measure : callable
            ``measure(model(inputs), targets)`` gives one number for each example, or one for the batch.
        """
        return measured(self, loader, measure, self._progress)

    def _where_from(self, ckpt_path: str | Path | EllipsisType | None, resume: bool | str | Path) -> Path | None:
        """Return the checkpoint to go on from, None to begin."""
        autoload = self.step == 0 and self.checkpoint.autoload_last_checkpoint
        return checkpoint_to_load(self.model_dir, ckpt_path, resume, autoload=autoload)

    def _begin(self, loader: Iterable[Any], path: Path | None, override: bool) -> RandomState:
        """Load a checkpoint or begin afresh; return the state of the generators to go on from."""
        partly = [each for each in self.callbacks if isinstance(each, LoadCheckpointStates)]
        if path is not None and not all(each.takes_all(path, self.model_dir) for each in partly):
            read_checkpoint(path, self.model)
            path = None
        if path is not None:
            self._position, where = go_on(self, path, loader, self._about, override)
            if where is not None:
                restore(where, loader)  # callbacks may save before the first step
            return where or capture(loader)
        if self.step == 0:
            begin_afresh(self.model, self.model_dir, self._settings.seed)
        return capture(loader)

    def _flush(self) -> None:
        for each in self.loggers:
            each.flush()


def _as_number(figure: Any) -> Any:
    is_array = isinstance(figure, (Tensor, np.ndarray, np.generic))
    return figure.item() if is_array and math.prod(figure.shape) == 1 else figure
