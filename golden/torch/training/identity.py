"""The identity of a run, which must survive a resume: optimizer, schedulers, precision, seed and data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import Dataset

from golden.torch.amp.configuration import MixedPrecision
from golden.torch.cerebras.schedule import Scheduler
from golden.torch.common.arguments import length_of
from golden.torch.products.functions.layers import Linear

__all__ = [
    "as_json",
    "block_settings",
    "data_of",
    "differences",
    "hash_of",
    "optimizer_settings",
    "precision_settings",
    "scheduler_settings",
]

_YOUNGER = {
    "inner",
    "levels",
    "out_rounding",
    "reduction",
    "rounding",
    "seed",
    "subnormals",
    "weight_rounding",
    "weight_type",
}
_SAMPLE = 1 << 18  # numbers of a tensor that are hashed; a larger one is looked at in even strides


def as_json(value: Any) -> Any:
    """Return settings as they come back from a JSON file; anything else (a function, say) becomes its name."""
    if isinstance(value, Tensor):
        value = value.tolist() if value.numel() <= 16 else f"tensor {_hash_of([value])}"
    if isinstance(value, Mapping):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(each) for each in (sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.loads(json.dumps(value))
    return getattr(value, "__qualname__", type(value).__qualname__)


def block_settings(model: nn.Module) -> dict[str, str]:
    """Return the settings of the layers that compute with blocks of narrow numbers, by name."""
    return {name: layer.settings for name, layer in model.named_modules() if isinstance(layer, Linear)}


def optimizer_settings(optimizer: Optimizer) -> dict[str, Any]:
    """Return the settings of an optimizer: of its one group of parameters, or of each group by its number."""
    groups = [
        as_json({name: value for name, value in group.items() if name not in ("params", "param_names")})
        for group in optimizer.param_groups
    ]
    for group, of_group in zip(groups, optimizer.param_groups, strict=True):
        group["parameters"] = len(of_group["params"])
    return groups[0] if len(groups) == 1 else {f"group {number}": group for number, group in enumerate(groups)}


def scheduler_settings(schedulers: Iterable[Any]) -> dict[str, Any]:
    """Return class and settings of schedulers that have made no step, by their number."""
    found = {}
    for number, each in enumerate(schedulers):
        curve = {"curve": as_json(each.settings())} if isinstance(each, Scheduler) else {}
        found[str(number)] = {"class": type(each).__name__, **as_json(each.state_dict()), **curve}
    return found


def precision_settings(precision: MixedPrecision) -> dict[str, Any]:
    """Return the settings that change the numbers of a run; what its log shows does not.

    Younger settings are left out where they are what every run had before them, so that its checkpoints still fit.
    """
    younger = {each.name: each.default for each in fields(precision) if each.name in _YOUNGER}
    return {
        name: value
        for name, value in asdict(precision).items()
        if name != "log_loss_scale" and (name not in younger or value != younger[name])
    }


def data_of(loader: Any) -> dict[str, Any]:
    """Describe a data loader without drawing from it: length, batch size, and data set with a hash of its arrays.

    No example is read: that could draw random numbers, and take long.
    """
    about: dict[str, Any] = {"loader": type(loader).__name__}
    sampler = getattr(loader, "batch_sampler", None)
    for name in ("batch_size", "drop_last"):
        given = getattr(loader, name, None)
        about[name] = given if given is not None else getattr(sampler, name, None)
    order = getattr(loader, "sampler", None)
    about["order"] = None if order is None else type(order).__name__
    about["batches"] = length_of(loader)
    dataset = getattr(loader, "dataset", loader if isinstance(loader, (list, tuple)) else None)
    if dataset is not None:
        about["dataset"] = type(dataset).__name__
        about["examples"] = length_of(dataset)
        about["content"] = _hash_of(_arrays(dataset, 0))
    return as_json({name: value for name, value in about.items() if value is not None})


def hash_of(batch: Any) -> str:
    """Return a hash of the arrays, numbers and texts in a batch."""
    return _hash_of(_arrays(batch, 0))


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Name everything that a checkpoint has otherwise than the run, as ``optimizer.lr is 0.1 there and 0.2 here``."""
    names = [*wanted, *(name for name in found if name not in wanted)]
    told = []
    for name in names:
        mine, its = wanted.get(name, "nothing"), found.get(name, "nothing")
        if isinstance(mine, Mapping) and isinstance(its, Mapping):
            told += differences(its, mine, f"{prefix}{name}.")
        elif mine != its:
            told.append(f"{prefix}{name} is {its} there and {mine} here")
    return told


def _arrays(given: Any, depth: int) -> Iterator[Tensor | np.ndarray | bytes]:
    """Give the arrays, numbers and texts within a batch, or within a data set and its nested data sets."""
    if isinstance(given, (Tensor, np.ndarray)):
        yield given
    elif isinstance(given, Mapping):
        for name, each in given.items():
            yield str(name).encode()
            yield from _arrays(each, depth + 1)
    elif isinstance(given, (list, tuple, range)):
        yield str(len(given)).encode()
        for each in given[:: max(1, len(given) // 1024)]:
            yield from _arrays(each, depth + 1)
    elif isinstance(given, (bool, int, float, str, bytes)):
        yield given if isinstance(given, bytes) else repr(given).encode()
    elif isinstance(given, Dataset) and depth < 8:
        for name, each in vars(given).items():
            # Numbers and texts of a data set may count its uses; its arrays are its data.
            if isinstance(each, (Tensor, np.ndarray, list, tuple, Dataset)):
                yield name.encode()
                yield from _arrays(each, depth + 1)


def _hash_of(parts: Iterable[Tensor | np.ndarray | bytes]) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        if not isinstance(part, bytes):
            array = part.detach().cpu() if isinstance(part, Tensor) else part
            hashed.update(f"{array.dtype} {tuple(array.shape)}".encode())
            flat: Any = array.reshape(-1)
            flat = flat[:: max(1, len(flat) // _SAMPLE)]
            if isinstance(flat, Tensor):
                flat = flat.contiguous().view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)
            elif flat.dtype.hasobject:
                flat = np.frombuffer(repr(flat.tolist()).encode(), np.uint8)
            part = np.ascontiguousarray(flat).tobytes()
        hashed.update(part)
    return hashed.hexdigest()
