"""The base of all optimizers: state exists before the first step, and a step is a rule for one parameter."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from golden.torch.common.arguments import check_flags, check_items

__all__ = ["Betas", "Group", "NonNegative", "Optimizer", "Rule", "State", "check_least", "optimizer"]

_LARGEST = torch.finfo(torch.float32).max
#: Options of optimizers that are on or off.
_FLAGS = frozenset({"amsgrad", "centered", "correct_bias", "maximize", "nesterov", "scale_parameter"})

State = dict[str, Any]
Group = dict[str, Any]


def check_least(least: float = 0.0, **given: float) -> None:
    """Raise an error that names the first argument that is no number, or below a limit."""
    for name, value in given.items():
        if not isinstance(value, int | float | Tensor) or isinstance(value, bool) or not _is_real(value):
            raise TypeError(f"{name}: got {value!r}, must be a number")
        if not value >= least:
            raise ValueError(f"{name}: got {value}, must be at least {least}")
        if _LARGEST < value < float("inf"):
            raise ValueError(f"{name}: got {value}, must be at most {_LARGEST}, the largest float32")


def _is_real(value: float | Tensor) -> bool:
    """Return whether a tensor is one real number, which can be looked at."""
    return not isinstance(value, Tensor) or (
        value.numel() == 1 and not value.is_complex() and value.layout is torch.strided and not value.is_meta
    )


def _check_betas(betas: Any) -> None:
    """Raise an error unless there are two numbers from 0 to below 1."""
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise TypeError(f"betas: got {betas!r}, must be two numbers")
    check_least(betas=betas[0])
    check_least(betas=betas[1])
    if not max(betas) < 1:
        raise ValueError(f"betas: got {betas}, must be below 1")


class Optimizer(torch.optim.Optimizer, ABC):
    """The base of the optimizers; a subclass says what state a parameter has and how one is updated.

    Parameters
    ----------
    params : iterable
        Of parameters, or of groups of them. A group may have ``tags``, a name or several, by which schedulers choose.
    defaults : dict
        Options of a group that does not have its own.
    enable_global_step : bool
        Whether every parameter counts its steps, in ``state["step"]``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    """

    def __init__(self, params: Any, defaults: dict[str, Any], enable_global_step: bool = False) -> None:
        for name, value in defaults.items():
            if name in _FLAGS:
                check_flags(**{name: value})
        if not isinstance(params, Tensor):  # for which PyTorch has an error
            params = check_items(params, "params", "parameters, or of groups of them")
        try:
            super().__init__(params, defaults)
        except (TypeError, ValueError) as error:
            raise type(error)(f"params: {error}") from error
        self.enable_global_step = enable_global_step
        self._zero_grad_hooks: tuple[OrderedDict[int, Any], OrderedDict[int, Any]] = (OrderedDict(), OrderedDict())
        for group in self.param_groups:
            tags = group.get("tags")
            if tags:
                group["tags"] = set(tags) if isinstance(tags, list | tuple | set) else {tags}
        self.preinitialize()
        if enable_global_step:
            for group in self.param_groups:
                for parameter in group["params"]:
                    self.state[parameter]["step"] = torch.tensor(0.0)

    def preinitialize(self) -> None:
        """Make the state of every parameter."""
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter].update(self._initial_state(parameter, group))

    @abstractmethod
    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        """Return the state that a parameter starts with."""

    @abstractmethod
    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        """Change a parameter and its state by its gradient, which must stay as it is."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step.

        Parameters
        ----------
        closure : callable, optional
            Computes the gradients once more and returns the loss.

        Returns
        -------
        object
            What the closure returned.

        Raises
        ------
        TypeError
            If a gradient is sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.grad.is_sparse:
                    raise TypeError(
                        f"{type(self).__name__}: got a sparse gradient, must be dense (Embedding(..., sparse=False))"
                    )
                state = self.state[parameter]
                if self.enable_global_step:
                    state["step"] += 1.0
                self._update(parameter, parameter.grad, state, group)
        return loss

    def increment_global_step(self, p: Tensor) -> Tensor:
        """Count a step of a parameter and return its number, for subclasses with their own `step`."""
        if "step" not in self.state[p]:
            raise RuntimeError("step: the optimizer does not count steps; make it with enable_global_step=True")
        self.state[p]["step"] += 1.0
        return self.state[p]["step"]

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clear the gradients, between the hooks."""
        before, after = self._zero_grad_hooks
        for hook in before.values():
            result = hook(self, args, kwargs)
            if result is not None:
                args, kwargs = result
        super().zero_grad(*args, **kwargs)
        for hook in after.values():
            hook(self, args, kwargs)

    def register_zero_grad_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before gradients are cleared; it may return other arguments."""
        return self._register(hook, self._zero_grad_hooks[0])

    def register_zero_grad_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after gradients are cleared."""
        return self._register(hook, self._zero_grad_hooks[1])

    @staticmethod
    def _register(hook: Callable[..., Any], hooks: OrderedDict[int, Any]) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def apply(self, f: Any) -> Any:
        """Return ``f(self)``, or ``f.apply(self)`` of something that cannot be called."""
        return f(self) if callable(f) else f.apply(self)

    def visit_state(self, fn: Callable[[Any], Any]) -> None:
        """Replace each value of the state by what `fn` returns of it, unless that is None."""
        for state in self.state.values():
            for name, value in state.items():
                new = fn(value)
                if new is not None:
                    state[name] = new


#: Options with what checks them, given by their names.
NonNegative = Annotated[float, check_least]
Betas = Annotated[tuple[float, float], _check_betas]
Made = TypeVar("Made", bound="Rule")


@dataclass_transform(eq_default=False)
def optimizer(made: type[Made]) -> type[Made]:
    """Make the annotated attributes of a rule its parameters, in their order; they are checked as their types say.

    They become options of the groups: an optimizer has no such attributes, which a schedule would leave behind.
    """
    annotations = inspect.get_annotations(made, eval_str=True)
    checks = {name: each.__metadata__[0] for name, each in annotations.items() if hasattr(each, "__metadata__")}
    made.checks = {**made.checks, **checks}
    made = dataclass(made, eq=False, repr=False)
    for name in annotations.keys() & vars(made).keys() & {each.name for each in fields(made)}:
        delattr(made, name)
    return made


@optimizer
class Rule(Optimizer):
    """The base of the optimizers of this package, whose parameters are annotated attributes; see `optimizer`."""

    checks: ClassVar[dict[str, Callable[..., None]]] = {}
    #: What is kept of a parameter, zeros at first.
    keeps: ClassVar[tuple[str, ...]] = ()
    counts_steps: ClassVar[bool] = False

    params: Any

    def __post_init__(self) -> None:
        options = {each.name: vars(self).pop(each.name) for each in fields(self)}
        for name, check in self.checks.items():
            check(**{name: options[name]})
        super().__init__(options.pop("params"), options, enable_global_step=self.counts_steps)

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return {name: torch.zeros_like(parameter) for name in self.keeps}
