"""Passes over validation data in the precision of the training, which leave the training as it was."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from golden.torch.common.arguments import loss_of
from golden.torch.common.processes import batch_for, capture, message, rank, restore, world_size
from golden.torch.common.terminal import shown
from golden.torch.settings.draws import rewound, taken
from golden.torch.training.interruption import Interruption
from golden.torch.training.loop import ValidationLoop
from golden.torch.training.run import Run
from golden.torch.training.step import forward

__all__ = ["measured", "validate"]


@contextlib.contextmanager
def _aside(trainer: Run, loader: Iterable[Any]) -> Iterator[Callable[[], None]]:
    """Run the model in evaluation mode; put back the mode of each of its modules and all random generators.

    The generators of the loader are among them: the training may draw from the same. So are the numbers of layers that
    round stochastically. The function that this gives puts back the generators at once.
    """
    modes, states = {each: each.training for each in trainer.model.modules()}, capture(loader)
    numbers = taken()
    around = trainer.under_way

    def put_back_generators() -> None:
        restore(states, loader)
        rewound(numbers)
        trainer.under_way = around

    trainer.model.eval()
    try:
        with torch.no_grad():
            yield put_back_generators
    finally:
        for each, was_training in modes.items():
            each.training = was_training
        put_back_generators()


def validate(
    trainer: Run, loader: Iterable[Any], loop: ValidationLoop, interruption: Interruption | None, visible: bool
) -> dict[str, float]:
    """Return the mean loss over the batches of all processes, and the metrics of the model.

    The random generators are put back, so that a run draws the same numbers whether it validates or not.
    """
    with _aside(trainer, loader) as put_back_generators:
        try:
            result = _validated(trainer, loader, loop, interruption, visible)
            put_back_generators()  # a checkpoint that a callback saves now is one of the training
            trainer.call("on_validate_end", trainer.model, loop)
            return result
        except Exception as error:
            trainer.call("on_validate_exception", error)
            raise


def _validated(
    trainer: Run, loader: Iterable[Any], loop: ValidationLoop, interruption: Interruption | None, visible: bool
) -> dict[str, float]:
    model, metrics = trainer.model, _metrics(trainer.model)
    for each in metrics.values():
        each.reset()
    trainer.call("on_validate_start", model, loader, loop)
    trainer.under_way = trainer.under_way or "a validation"
    # Float64 holds every sum of losses closely enough; the number of batches travels with it.
    total = message([0.0, 0.0], torch.float64) if world_size() > 1 else torch.zeros(2, dtype=torch.float64)
    batches = itertools.islice(loader, loop.eval_steps)
    for number, batch in enumerate(shown(batches, "validating", visible and rank() == 0)):
        if interruption is not None and interruption.signal:
            break
        trainer.call("on_validate_batch_start", model, batch, number)
        with trainer.precision.autocast(model):
            outputs = forward(trainer, batch)
        total += torch.tensor([loss_of(outputs).item(), 1.0], dtype=torch.float64, device=total.device)
        trainer.call("on_validate_batch_end", model, outputs, batch, number)
    if world_size() > 1:
        dist.all_reduce(total)
    stopped = interruption is not None and interruption.signal
    if not total[1] and not stopped:
        raise ValueError("val_dataloader: it gives no batch, must give at least one")
    result = {"val_loss": (total[0] / total[1]).item()}
    return result if stopped else result | {name: float(each.compute()) for name, each in metrics.items()}


def measured(trainer: Run, loader: Iterable[Any], measure: Callable[[Any, Any], Tensor], visible: bool) -> float:
    """Return the mean of a measure of outputs and targets over batches, in the precision of the training."""
    model = trainer.model
    with _aside(trainer, loader), trainer.precision.autocast(model):
        values = [
            measure(model(inputs), targets).double().reshape(-1)
            for batch in shown(loader, "evaluating", visible=visible and rank() == 0)
            for inputs, targets in (batch_for(model, batch),)
        ]
    return torch.cat(values).mean().item()


def _metrics(model: nn.Module) -> dict[str, Any]:
    """Return the metrics within a model by their names: modules that are reset, updated in forward and computed."""
    found = defaultdict[str, list[Any]](list)
    for path, each in model.named_modules():
        if callable(getattr(each, "compute", None)) and callable(getattr(each, "reset", None)):
            name = getattr(each, "name", None)
            found[name if isinstance(name, str) and name else path].append(each)
    # Several of one name are numbered, as in `get_all_metrics`.
    return {
        f"{name}.{number}" if len(several) > 1 else name: each
        for name, several in found.items()
        for number, each in enumerate(several)
    }
