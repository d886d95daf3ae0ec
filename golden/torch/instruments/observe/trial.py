"""Whether new levels help: a step that was observed runs again in fp32, as it was, and at these levels.

The arguments of the model's call, the gradients of its results and the weights are kept, of the latest step whose loss
was finite and of the first whose loss was not. With them the forward and the backward pass can run again, whatever the
loss was. The model stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from golden.torch.amp.precision import precision
from golden.torch.common.terminal import say_once
from golden.torch.instruments.audit import is_compiled, unchanged
from golden.torch.instruments.rows import TrialRow
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.mapped import mapped
from golden.torch.settings.reductions import is_by_a_machine, reduction_in
from golden.torch.settings.scopes import Process, Settings, scopes

__all__ = ["LevelTrial"]

#: A call of more bytes than this is not kept; weights of more bytes are not copied, but taken as they are at the end.
_MEMORY = 1 << 28
#: Levels help if this share of the distance, or less, is left.
_HELPS = 2 / 3
#: Distances are taken to be within these; values that are not finite count as the last.
_LEAST, _MOST, _NOT_FINITE = 2.0**-30, 1.0, 16.0


@dataclass
class _Call:
    """A call of the model, and the gradients of its results as they come."""

    args: Any
    kwargs: Any
    settings: Settings
    maps: tuple[LevelMap, ...]
    weights: list[Tensor]
    gradients: list[Tensor | None] = field(default_factory=list)

    def take(self, place: int, gradient: Tensor) -> None:
        self.gradients[place] = gradient.detach()

    @property
    def is_whole(self) -> bool:
        return bool(self.gradients) and all(each is not None for each in self.gradients)


class _Hook:
    """A hook of the model's call; in a copy of the model, or one that is pickled, it does nothing."""

    def __init__(self, take: Any = None) -> None:
        self._take = take

    def __call__(self, *given: Any) -> None:
        if not torch.compiler.is_compiling() and self._take is not None:
            self._take(*given)

    def __reduce__(self) -> Any:
        return _Hook, ()


class LevelTrial:
    """Keeps a step of a model, and tries levels with it.

    Parameters
    ----------
    model : nn.Module
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._now: _Call | None = None  # of the step that runs
        self._good: _Call | None = None
        self._bad: _Call | None = None
        self._hook: Any = None

    def watch(self) -> None:
        """Keep the next call of the model."""
        # Compiled code keeps its hook, so that it need not be compiled again without.
        if self._hook is None and not any(is_compiled(each) for each in self._model.modules()):
            self._hook = self._model.register_forward_hook(_Hook(self._take), with_kwargs=True)

    def settle(self, *, is_good: bool) -> None:
        """End the step, with a finite loss or not."""
        now, self._now = self._now, None
        if now is not None and now.is_whole:
            self._good, self._bad = (now, self._bad) if is_good else (self._good, self._bad or now)

    def stop(self) -> None:
        """Keep no more calls."""
        if self._hook is not None:
            self._hook.remove()
        self._now = self._hook = None

    def _take(self, module: nn.Module, args: Any, kwargs: Any, results: Any) -> None:
        if not torch.is_grad_enabled():
            return
        self._hook.remove()
        self._hook = None
        given = [each for each in tree_leaves((args, kwargs, results)) if isinstance(each, Tensor)]
        settings = scopes.precisions[-1] if scopes.precisions else None
        is_plain = all(type(each) in (Tensor, nn.Parameter) for each in given)
        if settings is None or not settings.enabled or is_by_a_machine(settings.rule) or scopes.pols:
            return
        if not is_plain or torch._C._functorch.peek_interpreter_stack() is not None:
            return
        if _bytes(given) > _MEMORY:
            return
        weights = [each.detach() for each in self._model.parameters()]
        if _bytes(weights) <= _MEMORY:
            weights = [each.clone() for each in weights]
        args, kwargs = tree_map_only(
            Tensor, lambda each: each.detach().requires_grad_(each.requires_grad), (args, kwargs)
        )
        self._now = _Call(args, kwargs, settings, tuple(each.map for each in scopes.maps), weights)
        for place, each in enumerate(_differentiable(results)):
            self._now.gradients.append(None)
            each.register_hook(partial(self._now.take, place))

    def try_levels(self, levels: Mapping[str, Mapping[str, int]], step: int) -> TrialRow | None:
        """Run the kept step again at new levels, and describe the outcome; None if there is none, or it cannot run."""
        calls, self._good, self._bad = (self._bad, self._good), None, None
        told = None
        try:
            for call in calls:
                if call is not None and (told is None or not told.helps):
                    told = self._try(call, levels, step) or told
        except Exception as error:
            say_once(f"observe: the new levels that the report would advise are not tried: {error}")
        return told

    def _try(self, call: _Call, levels: Mapping[str, Mapping[str, int]], step: int) -> TrialRow | None:
        reference = self._run(call, precision(enabled=False))
        before = _distances(self._run(call, _precision(call.settings)), reference)
        after = _distances(self._run(call, _precision(call.settings, levels, self._model)), reference)
        pairs = [pair for pair in zip(before, after, strict=True) if not math.isnan(sum(pair))]
        return _told(step, levels, pairs) if pairs else None

    def _run(self, call: _Call, context: precision) -> list[Tensor | None]:
        """Return the results of a step and the gradients of all parameters."""
        parameters = [each for each in self._model.parameters() if each.requires_grad]
        with unchanged(self._model, call.args, call.kwargs), ExitStack() as stack:
            for each in call.maps:
                stack.enter_context(mapped(each, self._model))
            stack.enter_context(self._weighing(call.weights))
            stack.enter_context(context)
            products = Process.products
            results = _differentiable(self._model(*call.args, **call.kwargs))
            if not scopes.precisions[-1].enabled and Process.products != products:
                raise NotImplementedError("the model enters its own precision")
            gradients = torch.autograd.grad(results, parameters, call.gradients, allow_unused=True)
        return [*(each.detach() for each in results), *gradients]

    @contextmanager
    def _weighing(self, weights: list[Tensor]) -> Iterator[None]:
        """Give the model the weights of the step."""
        pairs = [(each, each.data) for each in self._model.parameters()]
        try:
            for (each, _), kept in zip(pairs, weights, strict=True):
                each.data = kept
            yield
        finally:
            for each, own in pairs:
                each.data = own


def _bytes(tensors: list[Tensor]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def _differentiable(results: Any) -> list[Tensor]:
    return [each for each in tree_leaves(results) if isinstance(each, Tensor) and each.requires_grad]


def _precision(
    settings: Settings, levels: Mapping[str, Any] | None = None, model: nn.Module | None = None
) -> precision:
    rule = reduction_in(settings.rule)
    return precision(
        settings.half,
        settings.level,
        settings.chunk,
        unseen=settings.unseen,
        rounding=rule.rounding,
        out_rounding=rule.out_rounding,
        subnormals=rule.subnormals,
        levels=levels,
        model=model,
    )


def _distances(step: list[Tensor | None], reference: list[Tensor | None]) -> list[float]:
    """Return the distance of each tensor from the reference, relative to it; NaN where that tells nothing."""
    distances = []
    for one, other in zip(step, reference, strict=True):
        size = 0.0 if other is None else other.double().norm().item()
        if one is None or other is None or not 0 < size < math.inf:
            distances.append(math.nan)
            continue
        distance = (one.double() - other.double()).norm().item() / size
        distances.append(min(max(distance, _LEAST), _MOST) if math.isfinite(distance) else _NOT_FINITE)
    return distances


def _told(step: int, levels: Mapping[str, Any], pairs: list[tuple[float, float]]) -> TrialRow:
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    one, other = ([pair[side] for pair in changed or pairs] for side in (0, 1))
    return TrialRow(
        step=step,
        levels={module: dict(passes) for module, passes in levels.items()},
        before=_mean(one),
        after=_mean(other),
        helps=bool(changed) and _geometric(other) <= _HELPS * _geometric(one),
    )


def _geometric(distances: list[float]) -> float:
    return math.exp(sum(map(math.log, distances)) / len(distances))


def _mean(distances: list[float]) -> float | None:
    """Return the number that a row shows, None if it is not finite."""
    return None if max(distances) == _NOT_FINITE else _geometric(distances)
