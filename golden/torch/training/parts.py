"""The parts of a `Trainer`, made of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from torch import nn
from torch.optim import Optimizer

from golden.torch.amp.iteration import as_optimizer
from golden.torch.common.arguments import check_count
from golden.torch.training.callback import Logger
from golden.torch.training.loggers import Logging
from golden.torch.training.loop import TrainingLoop
from golden.torch.training.saving import Checkpoint

__all__ = [
    "NotOfTensorFlow",
    "as_checkpoint",
    "as_log_steps",
    "as_loggers",
    "as_loop",
    "as_model",
    "as_schedulers",
    "device_of",
    "one_or_several",
    "optimizer_of",
]


_KINDS = ("CPU", "GPU", "CSX")


def device_of(backend: Any, device: str | None) -> str:
    """Return "CPU", "GPU" or "CSX" from the name of a device, or from what ``backend("CPU")`` of a script gave.

    That is anything with the name of a device, or the name, in any case; one of the two arguments is given at most.
    """
    if backend is not None and device is not None:
        raise ValueError(f"device: got {device!r} beside a backend, must be one of the two, and the other None")
    argument, given = ("backend", backend) if backend is not None else ("device", device)
    if given is None:
        return "CPU"
    name = given
    for attribute in ("device_type", "backend_type", "device", "type", "name"):
        if isinstance(name, str):
            break
        name = getattr(name, attribute, name)
    if not isinstance(name, str):
        raise TypeError(f"{argument}: got {given!r}, must be 'CPU', 'GPU', 'CSX' or an object with such a device type")
    kind = name.upper()
    if kind not in _KINDS:
        raise ValueError(f"{argument}: got {name!r}, must be 'CPU', 'GPU' or 'CSX'")
    return kind


def as_model(given: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """Return a model, from a function without arguments if one is given."""
    if isinstance(given, nn.Module):
        return given
    if not callable(given):
        raise TypeError(f"model: got {given!r}, must be a torch.nn.Module, or a function that returns one")
    made = given()
    if not isinstance(made, nn.Module):
        raise TypeError(f"model: got a function that returns {made!r}, must return a torch.nn.Module")
    return made


def optimizer_of(given: Optimizer | Callable[[nn.Module], Optimizer] | None, model: nn.Module) -> Optimizer | None:
    """Return an optimizer, from a function of the model if one is given."""
    if given is None:
        return None
    if isinstance(given, type) and "params" in inspect.signature(given).parameters:
        raise TypeError(
            f"optimizer: got the class {given.__name__}, must be an optimizer, or a function that makes one of the "
            f"model: lambda model: {given.__name__}(model.parameters(), ...)"
        )
    made = as_optimizer(given(model) if callable(given) and not isinstance(given, Optimizer) else given)
    if _needs(made.step, "closure"):
        raise TypeError(
            f"optimizer: got {type(made).__name__}, whose step() needs a closure, must be one whose step() needs none: "
            "the gradients that a closure computes would stay scaled"
        )
    return made


def as_schedulers(given: Any, optimizer: Optimizer | None) -> list[Any]:
    """Return the schedulers of an optimizer, each given itself or as a function of the optimizer."""
    made = []
    for each in one_or_several(given):
        if isinstance(each, type) or not hasattr(each, "state_dict"):
            if not callable(each) or optimizer is None:
                raise TypeError(
                    f"schedulers: got {each!r}, must be schedulers, or functions that make one of the optimizer"
                )
            each = each(optimizer)
        if not all(callable(getattr(each, name, None)) for name in ("step", "state_dict", "load_state_dict")):
            raise TypeError(f"schedulers: got {each!r}, must have step, state_dict and load_state_dict")
        if _needs(each.step, "metrics"):
            raise TypeError(
                f"schedulers: got {type(each).__name__}, whose step() needs metrics, must be one whose step() needs "
                "none; call this one in the on_validate_end of a callback"
            )
        made.append(each)
    return made


def _needs(function: Callable[..., Any], argument: str) -> bool:
    """Return whether a function cannot be called without an argument of this name."""
    found = inspect.signature(function).parameters.get(argument)
    return found is not None and found.default is inspect.Parameter.empty


def as_checkpoint(given: Checkpoint | None, steps: int | None, model_dir: str | Path | None) -> Checkpoint:
    """Return how a run saves itself, with the argument of the Trainer's older form put in."""
    if steps is not None:
        check_count(steps, "checkpoint_steps")
        if given is not None:
            raise ValueError(
                f"checkpoint_steps: got {steps} beside checkpoint, must be None then; set checkpoint.steps"
            )
    wanted = steps or (given is not None and (given.steps or given.save_initial_checkpoint))
    if wanted and model_dir is None:
        argument = "checkpoint_steps" if given is None else "checkpoint"
        raise ValueError(f"model_dir: got None, must be a folder when {argument} is given")
    # Without a word, a run does not go on with one that it finds.
    return Checkpoint(steps, autoload_last_checkpoint=False) if given is None else given


def as_log_steps(given: Logging | None, steps: int | None) -> int:
    """Return the steps between rows of the log, with the argument of the Trainer's older form put in."""
    if steps is not None:
        check_count(steps, "log_steps")
    return steps or (given or Logging()).log_steps


def as_loggers(*given: Logger | Iterable[Logger] | None) -> list[Logger]:
    """Return the loggers given one by one or in lists."""
    found = [each for some in given for each in one_or_several(some)]
    for each in found:
        if not isinstance(each, Logger):
            raise TypeError(f"loggers: got {each!r}, must be objects of a subclass of Logger")
    return found


def as_loop(loop: TrainingLoop | None, steps: int | None, epochs: int | None) -> TrainingLoop:
    """Return the loop of a call of `fit`, whose arguments come before the loop of the Trainer."""
    if steps is None and epochs is None and loop is not None:
        return loop
    if (steps is None) == (epochs is None):
        raise ValueError(
            f"steps: got {steps} beside epochs {epochs}, must be one of the two, and the other None; or give the "
            "Trainer a loop"
        )
    check_count(epochs if steps is None else steps, "epochs" if steps is None else "steps")
    return replace(loop or TrainingLoop(max_steps=1), num_steps=None, max_steps=steps, num_epochs=epochs)


def one_or_several(given: Any) -> list[Any]:
    """Return a list of the objects given: none, one or several."""
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


_COUNTERPARTS = (
    "params: got a dictionary, or a name of the TensorFlow era; here, Trainer takes the model and an optimizer: "
    "optimizer = cstorch.optim.configure_optimizer(...) for optimizer_type and its settings, "
    "cstorch.MixedPrecision(fp16_type, loss_scaling_factor, ...) for mixed_precision and loss scaling, then "
    "cstorch.Trainer(model, optimizer, loss, precision).fit(...)"
)


class NotOfTensorFlow:
    """The base of the trainer, which tells calls of the TensorFlow era what to do instead."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Refuse the parameters of that era, before anything else sees them."""
        if (args and isinstance(args[0], Mapping)) or {"params", "tf_summary", "mixed_precision"} & kwargs.keys():
            raise TypeError(_COUNTERPARTS)
        return super().__new__(cls)

    def build_train_ops(self, total_loss: object) -> NoReturn:
        """Refuse to build a graph.

        Raises
        ------
        TypeError
            Always; it names the counterpart.
        """
        raise TypeError(
            "build_train_ops: there is no graph to build; call trainer.fit(...), or in a loop of one's own "
            "cstorch.amp.optimizer_step(loss, optimizer, grad_scaler)"
        )
