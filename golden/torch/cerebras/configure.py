"""Optimizers and schedulers by name and parameters, as the older releases and the Model Zoo make them."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Mapping
from typing import Any

from golden.torch.cerebras import adam, adaptive, descent, lr_scheduler
from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.common.arguments import check_mapping
from golden.torch.common.terminal import say_once

__all__ = ["configure_lr_scheduler", "configure_optimizer", "configure_optimizer_params", "configure_scheduler_params"]

_OPTIMIZERS = {name.lower(): getattr(module, name) for module in (adam, adaptive, descent) for name in module.__all__}
_SCHEDULERS = {
    name.lower(): getattr(lr_scheduler, name) for name in lr_scheduler.__all__ if name not in ("LRScheduler",)
}


def _parameters(cls: type) -> list[str]:
    """Return the names of the parameters of a class; schedules use the names of the learning rate."""
    signatures = (inspect.signature(vars(each)["__init__"]) for each in cls.__mro__ if "__init__" in vars(each))
    names = list(next(each for each in signatures if "kwargs" not in each.parameters).parameters)[2:]
    if not issubclass(cls, lr_scheduler.LRScheduler):
        return names
    back = {curve: name for name, curve in lr_scheduler.LRScheduler.renamed.items()}
    if cls is not lr_scheduler.ConstantLR:
        del back["val"]
    return [back.get(name, name) for name in names]


def configure_optimizer_params(
    optimizer_type: str, kwargs: Mapping[str, Any]
) -> tuple[type[Optimizer], dict[str, Any]]:
    """Return the class of an optimizer and the parameters that it takes.

    Parameters
    ----------
    optimizer_type : str
        Its name, in upper or lower case.
    kwargs : mapping
        Its parameters; ``learning_rate``, when it is a number, is another name of ``lr``. A parameter that it does not
        take is reported once and left out.

    Raises
    ------
    ValueError
        If there is no such optimizer.
    """
    cls = _OPTIMIZERS.get(str(optimizer_type).lower())
    if cls is None:
        raise ValueError(f"optimizer_type: got {optimizer_type!r}, must be one of {', '.join(sorted(_OPTIMIZERS))}")
    given = check_mapping(kwargs, "kwargs", "parameters to values")
    rate = given.pop("learning_rate", None)
    given.setdefault("lr", float(rate) if isinstance(rate, int | float | str) else 0.1 if _needs_rate(cls) else None)
    if given["lr"] is None:
        del given["lr"]
    unknown = sorted(given.keys() - set(_parameters(cls)))
    if unknown:
        say_once(
            f"{cls.__name__}: does not take {', '.join(unknown)}, which has no effect; it takes "
            f"{', '.join(_parameters(cls))}"
        )
    return cls, {name: value for name, value in given.items() if name not in unknown}


def _needs_rate(cls: type[Optimizer]) -> bool:
    return inspect.signature(cls).parameters["lr"].default is inspect.Parameter.empty


def configure_optimizer(optimizer_type: str, params: Any, **kwargs: Any) -> Optimizer:
    """Return an optimizer by its name; parameters as for `configure_optimizer_params`.

    Raises
    ------
    TypeError, ValueError
        If the name or a parameter is wrong.
    """
    cls, given = configure_optimizer_params(optimizer_type, kwargs)
    return cls(params, **given)


def configure_scheduler_params(
    learning_rate: Mapping[str, Any],
) -> tuple[type[lr_scheduler.LRScheduler], dict[str, Any]]:
    """Return the class of a schedule of the learning rate and its parameters.

    Parameters
    ----------
    learning_rate : mapping
        ``scheduler``, the name of the class with or without ``LR``, and its parameters.

    Raises
    ------
    TypeError, ValueError
        If the name or a parameter is unknown.
    """
    given = check_mapping(learning_rate, "learning_rate", "parameters to values, with the name of its scheduler")
    name = str(given.pop("scheduler", None)).lower()
    cls = _SCHEDULERS.get(name) or _SCHEDULERS.get(f"{name}lr")
    if cls is None:
        raise ValueError(f"scheduler: got {name!r}, must be one of {', '.join(sorted(_SCHEDULERS))}")
    unknown = sorted(given.keys() - set(_parameters(cls)))
    if unknown:
        raise TypeError(
            f"{unknown[0]}: {cls.__name__} has no such parameter, must be one of {', '.join(_parameters(cls))}"
        )
    return cls, given


def _number(given: float | str) -> float:
    try:
        return float(given)
    except (OverflowError, ValueError):
        raise ValueError(f"learning_rate: got {given!r}, must be a number") from None


def configure_lr_scheduler(optimizer: Optimizer, learning_rate: Any, adjust_learning_rate: Any = None) -> Any:
    """Return a schedule of the learning rate.

    Parameters
    ----------
    optimizer : Optimizer
        One of `golden.torch.optim`.
    learning_rate : float, mapping or list of mappings
        A constant; a schedule, see `configure_scheduler_params`; or several, one after another for ``total_iters`` each
        (all at once with ``main_scheduler: chained``). None returns None.
    adjust_learning_rate : object, optional
        Anything true: scale every group by its ``adjust_learning_rate``.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.
    """
    if learning_rate is None or (isinstance(learning_rate, int | float | str | Mapping | list) and not learning_rate):
        return None
    if isinstance(learning_rate, int | float | str):
        learning_rate = {"scheduler": "constant", "learning_rate": _number(learning_rate)}
    if isinstance(learning_rate, Mapping):
        learning_rate = [learning_rate]
    if not isinstance(learning_rate, list | tuple) or not all(isinstance(each, Mapping) for each in learning_rate):
        raise TypeError(f"learning_rate: got {learning_rate!r}, must be a number, a mapping or a list of mappings")
    descriptions = [dict(copy.deepcopy(each)) for each in learning_rate]
    main = {str(each.pop("main_scheduler")).lower() for each in descriptions if each.get("main_scheduler")}
    if len(main) > 1:
        raise ValueError(f"main_scheduler: got {', '.join(sorted(main))}, must be the same everywhere")
    made = [cls(optimizer, **given) for cls, given in map(configure_scheduler_params, descriptions)]
    if main & {"chained", "chainedlr"}:
        if adjust_learning_rate:
            raise ValueError("adjust_learning_rate: got one beside main_scheduler 'chained', must be None then")
        return lr_scheduler.ChainedLR(made)
    result = made[0]
    if len(made) > 1:
        lengths = [each.total_iters for each in made[:-1]]
        if None in lengths:
            raise ValueError("total_iters: is missing in a schedule that another one follows")
        result = lr_scheduler.SequentialLR(optimizer, made, list(itertools.accumulate(lengths)))
    return lr_scheduler.ScalePerParamLR(optimizer, result) if adjust_learning_rate else result
