"""The schedulers that a run file names, one within another where some are made of others."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch.optim import Optimizer

from golden.torch import optim
from golden.torch.training.by_name import build, find, fits, parameters_of, single
from golden.torch.training.parts import one_or_several
from golden.torch.training.run_file import Init

__all__ = ["is_ours", "schedulers_from"]

_WHERE = "trainer.init.schedulers"


def schedulers_from(init: Init) -> list[Callable[[Optimizer], Any]]:
    """Return functions that build the schedulers of ``trainer.init.schedulers``.

    If PyTorch and cerebras.pytorch share a name, the settings decide: ``LinearLR`` with `initial_learning_rate` comes
    from ``golden.torch.optim.lr_scheduler``, with `start_factor` from PyTorch. In a sequence without `milestones`, the
    `total_iters` of its schedulers give them, as in the Model Zoo.
    """
    return [partial(_scheduler, each, where=_WHERE) for each in one_or_several(init.schedulers)]


def is_ours(entry: Any) -> bool:
    """Return whether a scheduler of a run file is one of ``golden.torch.optim``."""
    name, settings = single(entry, _WHERE)
    return _classes(name, settings, _WHERE)[0].__module__.startswith("golden.torch.")


def _classes(name: Any, settings: dict[str, Any], where: str) -> list[Any]:
    """Return the classes of a name, the one first that takes the settings, and the schedulers within them."""
    places: list[ModuleType] = [optim.lr_scheduler, optim.weight_decay_scheduler, torch.optim.lr_scheduler]
    if inner := [*one_or_several(settings.get("schedulers")), *one_or_several(settings.get("scheduler"))]:
        if not any(map(is_ours, inner)):
            places.reverse()
        return find(name, places, where)[:1]
    found = find(name, places, where)
    return [each for each in found if fits(each, settings, 1)] or found


def _scheduler(entry: Any, optimizer: Optimizer, where: str) -> Any:
    name, settings = single(entry, where)
    targets, place = _classes(name, settings, where), f"{where}.{name}"
    parameters = parameters_of(targets[0])
    milestones = settings.get("milestones")
    if milestones is not None and not isinstance(milestones, list):
        raise ValueError(f"{place}.milestones: got {milestones!r}, must be a list of steps")
    if "schedulers" in parameters and (inner := one_or_several(settings.get("schedulers"))):
        if "milestones" in parameters and milestones is None:
            settings["milestones"] = _milestones(inner, place)
        settings["schedulers"] = [_scheduler(each, optimizer, f"{place}.schedulers") for each in inner]
    if "scheduler" in parameters and settings.get("scheduler") is not None:
        settings["scheduler"] = _scheduler(settings["scheduler"], optimizer, f"{place}.scheduler")
    first = next(iter(parameters), None)
    return build(targets, settings, place, *([optimizer] if first == "optimizer" else []))


def _milestones(entries: list[Any], place: str) -> list[int]:
    """Return the steps at which the schedulers of a sequence follow each other."""
    lengths = []
    for entry in entries[:-1]:
        name, settings = single(entry, f"{place}.schedulers")
        length = settings.get("total_iters")
        if not isinstance(length, int) or isinstance(length, bool):
            raise ValueError(
                f"{place}.milestones: is missing, must be given, the steps at which the next schedulers begin; or "
                f"total_iters of each but the last, the number of its steps: that of {name} is {length!r}"
            )
        lengths.append(length)
    return list(itertools.accumulate(lengths))
