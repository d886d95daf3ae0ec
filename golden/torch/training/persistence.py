"""Saving a run and going on with it: everything that makes the next step the same bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.optim import Optimizer

from golden.torch.common.processes import RandomState, capture, rank, seed_everything, world_size
from golden.torch.training.checkpoint import CheckpointContent, prune_checkpoints, read_checkpoint, write_checkpoint
from golden.torch.training.identity import (
    as_json,
    block_settings,
    data_of,
    optimizer_settings,
    precision_settings,
    scheduler_settings,
)
from golden.torch.training.run import Run

__all__ = ["Position", "Settings", "go_on", "save"]


@dataclass
class Position:
    """The position of a run in its data."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # of this epoch
    epoch_start: RandomState | None = None  # the random generators at its beginning; None between two epochs
    digest: str | None = None  # hash of its first batch, of this process; None if a checkpoint does not tell
    iterator: Any = None  # the data themselves, if they can be iterated once only


class Settings:
    """The initial settings of a run, taken before its first step."""

    def __init__(self, optimizer: Optimizer | None, seed: int | None) -> None:
        self.optimizer = {} if optimizer is None else optimizer_settings(optimizer)
        self.schedulers: dict[str, Any] = {}
        self.seed = seed

    def note_schedulers(self, schedulers: Iterable[Any]) -> None:
        """Take the settings of the schedulers, too."""
        self.schedulers = scheduler_settings(schedulers)

    def about(self, trainer: Run, loader: Any, grad_accum_steps: int) -> dict[str, Any]:
        """Return the properties that a resumed run must share with this one."""
        return {
            "optimizer": type(trainer.optimizer).__name__,
            "ranks": world_size(),
            "precision": precision_settings(trainer.precision),
            "blocks": block_settings(trainer.model),
            "optimizer_settings": self.optimizer,
            "schedulers": self.schedulers,
            "grad_accum_steps": grad_accum_steps,
            "seed": self.seed,
            "data": _data_of_all_ranks(loader),
        }


def _data_of_all_ranks(loader: Any) -> dict[str, Any]:
    """Describe the data of every process: they may differ."""
    of_ranks = _of_all_ranks(data_of(loader))
    return of_ranks[0] if len(of_ranks) == 1 else {f"rank {number}": each for number, each in enumerate(of_ranks)}


def _of_all_ranks(mine: Any) -> list[Any]:
    of_ranks = [mine] * world_size()
    if world_size() > 1:
        dist.all_gather_object(of_ranks, mine)
    return of_ranks


def save(trainer: Run, position: Position, loader: Any, about: dict[str, Any]) -> None:
    """Write a checkpoint; every process must take part."""
    assert trainer.model_dir is not None
    assert trainer.optimizer is not None
    mine = {"now": capture(loader), "epoch_start": position.epoch_start, "digest": position.digest}
    of_ranks = _of_all_ranks(mine)
    of_callbacks: dict[str, Any] = {}
    trainer.call("on_save_checkpoint", of_callbacks)
    folder = trainer.model_dir / "checkpoints"
    if rank() == 0:
        state = {
            "optimizer": trainer.optimizer.state_dict(),
            "schedulers": [each.state_dict() for each in trainer.schedulers],
            "scaler": trainer.scaler.state_dict(),
            "products": trainer.autocast.products,
            "random": of_ranks,
            "epoch": position.epoch,
            "batch": position.batch,
            "callbacks": of_callbacks,
        }
        write_checkpoint(folder, position.step, trainer.model, state, about)
        if trainer.checkpoint.keep is not None:
            prune_checkpoints(folder, trainer.checkpoint.keep)
    if world_size() > 1:
        dist.barrier()
    trainer.call("on_after_save_checkpoint", folder / f"step_{position.step:08}")


def go_on(
    trainer: Run, path: Path, loader: Any, about: dict[str, Any], override: bool
) -> tuple[Position, RandomState | None]:
    """Load a checkpoint; return where the run goes on, and the states of the random generators there.

    With `override`, changed settings replace the settings of the checkpoint, and changed data begin with their first
    batch.
    """
    found = read_checkpoint(path, trainer.model, about, override=override)
    if found.differences:
        warnings.warn(f"override: going on from {path} though {'; '.join(found.differences)}", stacklevel=4)
    state, now = found.state, as_json(about)
    changed = {name for name in now if name in found.about and found.about[name] != now[name]}
    _load_optimizer(trainer, found, now, changed)
    if not changed & {"precision"} or _same_scaling(found.about["precision"], now["precision"]):
        trainer.scaler.load_state_dict(state["scaler"])
    trainer.autocast.products = state.get("products", 0)  # which older checkpoints lack
    trainer.call("on_load_checkpoint", state.get("callbacks", {}))
    if changed & {"data", "ranks"}:
        return Position(found.step, state["epoch"]), None
    mine = state["random"][rank()]
    position = Position(found.step, state["epoch"], state["batch"], mine["epoch_start"], mine.get("digest"))
    if "seed" in changed and now["seed"] is not None:
        seed_everything(now["seed"] + rank())
        return position, capture(loader)
    return position, mine["now"]


def _same_scaling(its: dict[str, Any], mine: dict[str, Any]) -> bool:
    return all(its.get(name) == mine[name] for name in ("enabled", "fp16_type", "loss_scaling_factor"))


def _load_optimizer(trainer: Run, found: CheckpointContent, now: dict[str, Any], changed: set[str]) -> None:
    """Load the optimizer and the schedulers, but keep the settings that are changed on purpose."""
    optimizer, state = trainer.optimizer, found.state
    assert optimizer is not None
    settings = now["optimizer_settings"]
    then = found.about.get("optimizer_settings", settings)
    if "optimizer" in changed or _sizes(then) != _sizes(settings):
        return  # another optimizer: nothing of the old one means anything to it
    given = [dict(group) for group in optimizer.param_groups]
    optimizer.load_state_dict(state["optimizer"])
    for number, group in enumerate(optimizer.param_groups):
        its, mine = (each if len(given) == 1 else each[f"group {number}"] for each in (then, settings))
        for name in mine:
            if name in group and mine[name] != its.get(name):
                loaded, group[name] = group[name], given[number][name]
                if name == "lr" and trainer.schedulers and its.get(name):
                    # The schedule has moved the rate that the run began with; the new one goes as far.
                    group[name] = loaded * (mine[name] / its[name])
    its, mine = found.about.get("schedulers", now["schedulers"]), now["schedulers"]
    if [each["class"] for each in its.values()] != [each["class"] for each in mine.values()]:
        return
    for number, (scheduler, loaded) in enumerate(zip(trainer.schedulers, state.get("schedulers", ()), strict=False)):
        own, was, is_now = scheduler.state_dict(), its[str(number)], mine[str(number)]
        kept = {name: own[name] for name in own if name[:1] != "_" and is_now.get(name) != was.get(name)}
        scheduler.load_state_dict({**loaded, **kept})
        # Some schedules of PyTorch go by the last rate; alone, they can also tell it.
        closed_form = getattr(scheduler, "_get_closed_form_lr", None)
        if kept and closed_form is not None and len(trainer.schedulers) == 1:
            for group, rate in zip(optimizer.param_groups, closed_form(), strict=True):
                group["lr"] = rate


def _sizes(settings: dict[str, Any]) -> list[Any]:
    groups = [settings] if "parameters" in settings else list(settings.values())
    return [group.get("parameters") for group in groups]
