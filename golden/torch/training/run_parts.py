"""The objects that a run file names: model, data, optimizer, callbacks, loggers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from golden.torch import optim
from golden.torch.common.arguments import unknown_key
from golden.torch.common.processes import world_size
from golden.torch.examples.task import Task
from golden.torch.training import divergence, loggers
from golden.torch.training.by_name import build, find, is_import_path, parameters_of, single
from golden.torch.training.callback import Callback
from golden.torch.training.parts import one_or_several
from golden.torch.training.run_file import Dataloader, ImportedModel, Init
from golden.torch.training.run_schedules import is_ours
from golden.torch.training.zoo_callbacks import CALLBACKS

__all__ = ["Parts", "callbacks_of", "data_from", "loggers_of", "optimizer_from", "parts_of"]

_OF_LOADER = ("batch_size", "shuffle", "drop_last", "num_workers")
_OLDER_KEY = {"drop_last_batch": "drop_last"}


@dataclass(frozen=True)
class Parts:
    """A model, its loss, and the bundled data that belong to it, if any."""

    model: nn.Module
    loss: Callable[[Any, Any], Tensor] | None
    task: Task | None


def parts_of(init: Init) -> Parts:
    """Build the model that ``trainer.init.model`` names."""
    if not isinstance(init.model, ImportedModel):
        task = init.model.task()
        return Parts(task.model, task.loss, task)
    where = "trainer.init.model"
    model = build(find(init.model.name, (), f"{where}.name"), init.model.settings, where)
    if not isinstance(model, nn.Module):
        raise ValueError(f"{where}.name: got {init.model.name!r}, which makes {model!r}, must make a torch.nn.Module")
    loss = None
    if init.loss is not None:
        place = "trainer.init.loss"
        if not is_import_path(init.loss):
            raise ValueError(
                f"{place}: got {init.loss!r}, must be an import path, as torch.nn.functional:cross_entropy"
            )
        (loss,) = find(init.loss, (), place)
    return Parts(model, loss, None)


def data_from(section: Dataloader, task: Task | None, where: str, seed: int, *, train: bool) -> Iterable[Any]:
    """Build a data loader: of the data of a bundled model, or of what ``data_processor`` makes.

    A class with ``create_dataloader`` is asked for its loader. A data set is put into one, with `batch_size`,
    `shuffle`, `drop_last` and `num_workers`; on several processes each draws its part.
    """
    settings = {_OLDER_KEY.get(name, name): value for name, value in section.settings.items()}
    if section.data_processor is None:
        if task is None:
            raise ValueError(f"{where}.data_processor: is missing, must be given with a model by its import path")
        made: Any = task.train if train else task.validation
        settings = ({"shuffle": True, "drop_last": True} if train else {"batch_size": 256}) | settings
        if "batch_size" not in settings:
            raise ValueError(f"{where}.batch_size: is missing, must be given")
    else:
        targets = find(section.data_processor, (), f"{where}.data_processor")
        takes = parameters_of(targets[0])
        takes_all = any(each.kind is each.VAR_KEYWORD for each in takes.values()) or {"config", "params"} & takes.keys()
        own = {name: value for name, value in settings.items() if takes_all or name in takes or name not in _OF_LOADER}
        made = build(targets, own, where)
        settings = {name: value for name, value in settings.items() if name in _OF_LOADER}
        if callable(getattr(made, "create_dataloader", None)):
            made = made.create_dataloader()
    if isinstance(made, DataLoader) or not isinstance(made, Dataset):
        if not isinstance(made, Iterable):
            raise ValueError(f"{where}: got {made!r} from {section.data_processor}, must be a data set or iterable")
        return made
    for name in settings:
        if name not in _OF_LOADER:
            raise ValueError(unknown_key(where, name, (*_OF_LOADER, "data_processor")))
    return _loader(made, settings, seed)


def _loader(dataset: Dataset[Any], settings: dict[str, Any], seed: int) -> DataLoader[Any]:
    shuffle, drop_last = settings.pop("shuffle", False), settings.pop("drop_last", False)
    if isinstance(dataset, torch.utils.data.IterableDataset):
        return DataLoader(dataset, drop_last=drop_last, **settings)
    if world_size() > 1 and shuffle:
        sampler = DistributedSampler[Any](dataset, seed=seed)
        return DataLoader(dataset, sampler=sampler, drop_last=drop_last, **settings)
    return DataLoader(dataset, shuffle=shuffle, drop_last=drop_last, **settings)


def optimizer_from(init: Init, model: nn.Module) -> Optimizer:
    """Build the optimizer of ``trainer.init.optimizer``: of PyTorch, of ``golden.torch.optim``, or by import path."""
    where = "trainer.init.optimizer"
    (name,) = init.optimizer.model_fields_set
    checked = getattr(init.optimizer, name)
    if name in type(init.optimizer).model_fields:
        settings = checked.model_dump(exclude_unset=True)
    else:
        name, settings = single({name: checked}, where)
        name = {each.lower(): each for each in optim.__all__}.get(name.lower(), name)
        if "learning_rate" in settings:
            settings["lr"] = settings.pop("learning_rate")
    # A schedule of cerebras.pytorch sets the rate itself, of an optimizer of its kind.
    ours = any(map(is_ours, one_or_several(init.schedulers)))
    if "lr" not in settings and ours:
        settings["lr"] = 1.0
    if "lr" not in settings and name == "SGD" and init.schedulers is None:
        raise ValueError(f"{where}.SGD.lr: is missing, must be given")
    targets = find(name, [optim] if ours else [torch.optim, optim], where)
    return build(targets, settings, f"{where}.{name}", model.parameters())


def callbacks_of(init: Init) -> list[Callback]:
    """Build the callbacks of ``trainer.init.callbacks``; one with the value false is left out."""
    of_zoo = {name: each for name, each in CALLBACKS.items() if isinstance(each, type) and issubclass(each, Callback)}
    return _several(init.callbacks, (divergence, of_zoo), "trainer.init.callbacks", Callback)


def loggers_of(init: Init) -> list[loggers.Logger]:
    """Build the loggers of ``trainer.init.logger`` and ``trainer.init.loggers``."""
    return [
        *_several(init.logger, (loggers,), "trainer.init.logger", loggers.Logger),
        *_several(init.loggers, (loggers,), "trainer.init.loggers", loggers.Logger),
    ]


def _several(given: Any, places: Iterable[ModuleType | Mapping[str, type]], where: str, kind: type) -> list[Any]:
    made = []
    for entry in one_or_several(given):
        if isinstance(entry, dict) and list(entry.values()) == [False]:
            continue
        name, settings = single(entry, where)
        if isinstance(why := CALLBACKS.get(name), str):
            raise ValueError(f"{where}.{name}: is not provided here: {why}")
        each = build(find(name, list(places), where), settings, f"{where}.{name}")
        if not isinstance(each, kind):
            raise ValueError(f"{where}.{name}: makes {each!r}, must make an object of a subclass of {kind.__name__}")
        made.append(each)
    return made
