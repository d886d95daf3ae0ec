"""A guard beneath the interception: it sees every product that PyTorch itself is about to compute.

`golden.torch.precision` replaces the functions that have an exact path. All other products
arrive here as operators: in the forward pass, in the backward pass, and in a recomputed forward pass. The guard
refuses, reports or counts them, as the context says.

A backward pass outside of the context is watched, too: the number of a node tells whether its forward pass ran in a
precision (see `Timeline` of `golden.torch.settings.scopes`). Each thread has its own numbers. In a thread that has
entered no precision, a graph with an exact product counts as made in the precision that any thread entered last.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch.autograd.graph import GradientEdge
from torch.utils._python_dispatch import TorchDispatchMode

from golden.torch.common.pytorch import run_as_written
from golden.torch.guard.operator_kinds import is_of_pytorch, kind_of_operator, operator_name
from golden.torch.guard.provenance import OF_A_LEAF, half_of_graph, made_in, nodes
from golden.torch.settings.half import current_half, is_asked_for
from golden.torch.settings.passes import note_backward, note_pytorchs_product
from golden.torch.settings.scopes import Process, Settings, scopes

__all__ = ["looking_through", "module_path", "refuse", "settings_in_force", "unwatch", "unwatched", "watch", "watching"]

_without_functions = torch._C.DisableTorchFunction


class _ProductGuard(TorchDispatchMode):
    """Sees each operator before PyTorch runs it."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # torch.compile would leave everything to Python otherwise

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the next line does it, without a function around

    @functools.partial(run_as_written, recursively=True)
    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # In a backward pass the interception would take the operator for a call of the user's.
        with _without_functions():
            kind = kind_of_operator(func)
            if types and kind in ("other", "exact", "composed") and _computes_by_itself(types):
                return NotImplemented  # what its class runs instead is seen in turn
            if kind == "other":
                return func(*args, **kwargs) if kwargs else func(*args)
            kwargs = kwargs or {}
            if kind == "composed":
                return self._composed(func, types, args, kwargs)
            if kind == "exact":
                if scopes.recorder is not None:
                    scopes.recorder.exact(func, args)
            elif kind != "weighted" or _is_weighted(func, args, kwargs):
                _judge(func, args, kwargs)
            return func(*args, **kwargs)

    def _composed(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator that consists of others, which are seen in turn."""
        if isinstance(func, torch._ops.HigherOrderOperator):
            # Its functions run while the guard is off, unless they put it on themselves.
            return func(*map(self._guarded, args), **{name: self._guarded(each) for name, each in kwargs.items()})
        if not types:
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)

    def _guarded(self, given: Any) -> Any:
        if not callable(given) or isinstance(given, torch.Tensor):
            return given

        @functools.wraps(given)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return given(*args, **kwargs)

        return run


def _computes_by_itself(types: Any) -> bool:
    """Return whether a class of tensors implements operators itself and does not belong to the compiler."""
    return any(
        each.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
        and not each.__module__.startswith(_OF_THE_COMPILER)
        for each in types
    )


_OF_THE_COMPILER = "torch._subclasses."


def _is_weighted(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for index, argument in enumerate(func._schema.arguments):
        if argument.name == "per_sample_weights":
            return (args[index] if index < len(args) else kwargs.get(argument.name)) is not None
    return False


def _judge(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let a product of PyTorch pass, or not; an error is kept for TorchScript, which drops its text."""
    try:
        _judge_product(func, args, kwargs)
    except Exception as error:
        if scopes.errors is not None:
            scopes.errors.append(error)
        raise


def _judge_product(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Products of integers are exact by themselves."""
    leaves = torch.utils._pytree.arg_tree_leaves(*args, **kwargs)
    dtypes = {each.dtype: None for each in leaves if isinstance(each, torch.Tensor) and _has_rounding(each)}
    if not dtypes:
        return
    name, settings = operator_name(func), settings_in_force()
    if scopes.recorder is not None:
        scopes.recorder.pytorchs(func, settings)
    elif settings is not None and settings.enabled:
        refuse(name, dtypes, settings, is_known=kind_of_operator(func) != "unknown" or is_of_pytorch(name))
    elif settings is None:
        note_pytorchs_product()
        if scopes.pols and not Process.entered and not scopes.unwatched:
            raise RuntimeError(
                f"pol: {name} {_place()} would run in {_listed(dtypes)} and at no level, for no precision is in force; "
                f"add 'with golden.torch.precision():' around the training, or golden.torch.amp.initialize(model) "
                f"before it"
            )


def _has_rounding(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized


def refuse(name: str, dtypes: Iterable[torch.dtype], settings: Settings, *, is_known: bool = True) -> None:
    """Raise, warn or count, for a product that would bypass the exact kernels, as the context of it says."""
    place = _place()
    settings.counted[name, place] += 1
    if settings.unseen == "count":
        return
    if is_known:
        advice = "run it inside golden.torch.precision(enabled=False) to let PyTorch compute it"
        if not set(dtypes) <= {torch.float32, torch.float16, torch.bfloat16}:
            advice += ", or give it float32"
        message = f"{name}: has no exact path; {advice}. It is a product of {_listed(dtypes)} {place}"
    else:
        message = (
            f"{name}: unknown here, so that it may sum products, of {_listed(dtypes)} {place}. Its source tells if it "
            "does; torch.profiler lists what it calls, of which aten::mm, addmm, bmm, convolution and attention are "
            f"products. Then call golden.torch.declare_operator({name!r}, product=True), or product=False only if it "
            "sums no products; or run it inside golden.torch.precision(enabled=False)"
        )
    message += "; precision(unseen='warn') lets all such pass"
    if settings.unseen == "error":
        raise NotImplementedError(message)
    if settings.counted[name, place] == 1:
        warnings.warn(message, UserWarning, stacklevel=3)


def _listed(dtypes: Iterable[torch.dtype]) -> str:
    return " and ".join(dict.fromkeys(str(each).removeprefix("torch.") for each in dtypes))


def settings_in_force() -> Settings | None:
    """Return the settings that decide here; in a backward pass, the settings of the node's forward pass.

    A context that is entered while a node is evaluated decides before the node does.
    """
    if scopes.unwatched:
        return None
    if scopes.backwards and scopes.backwards[-1] is scopes.precisions:
        node = torch._C._current_autograd_node()
        if node is not None:
            number = node._sequence_nr()
            if not scopes.timeline:
                return Process.latest  # made by another thread
            return scopes.timeline.latest() if number == OF_A_LEAF else scopes.timeline.at(number)
    return scopes.precisions[-1] if scopes.precisions else None


def _place() -> str:
    """Say where the code runs: in which module, or in the backward pass of what."""
    if scopes.place is not None:
        return scopes.place
    path = module_path()
    if path is not None:
        return f"in {path}"
    node = torch._C._current_autograd_node()
    return "outside of modules" if node is None else f"in the backward pass, in {node.name()}"


def module_path() -> str | None:
    """Return the path of the innermost module whose code is running, such as ``Net.encoder.0 (Linear)``."""
    modules: list[torch.nn.Module] = []
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and (not modules or modules[-1] is not owner):
            modules.append(owner)
        frame = frame.f_back  # type: ignore[assignment]
    if not modules:
        return None
    innermost, root = modules[0], modules[-1]
    names = (name for name, each in root.named_modules() if each is innermost)
    name = next(names, None)
    path = type(root).__name__
    if name is None:
        return type(innermost).__name__
    return f"{path}.{name} ({type(innermost).__name__})" if name else path


def watch() -> None:
    """Have the guard watch this thread until `unwatch` has been called as often."""
    scopes.watchers += 1
    if scopes.watchers == 1:
        if scopes.guard is None:
            scopes.guard = _ProductGuard()
        scopes.guard.__enter__()


def unwatch() -> None:
    """Undo one `watch`."""
    scopes.watchers -= 1
    if scopes.watchers == 0:
        scopes.guard.__exit__(None, None, None)


@contextmanager
def watching() -> Iterator[None]:
    """Have the guard watch."""
    watch()
    try:
        yield
    finally:
        unwatch()


@contextmanager
def unwatched() -> Iterator[None]:
    """Let everything pass, in the backward pass of it, too: compiled code."""
    outside = scopes.unwatched
    scopes.unwatched = True
    around = scopes.precisions[-1] if scopes.precisions else Settings(current_half(), 1, None, enabled=False)
    scopes.timeline.note(replace(around, enabled=False))
    try:
        with _without_functions():
            yield
    finally:
        scopes.unwatched = outside
        scopes.timeline.note(scopes.precisions[-1] if scopes.precisions and not outside else None)


@contextmanager
def looking_through(settings: Settings, place: str) -> Iterator[_ProductGuard]:
    """Give a guard that judges by these settings alone, for operators that run without values."""
    around = scopes.precisions, scopes.place, scopes.unwatched, scopes.recorder, scopes.backwards
    scopes.precisions, scopes.place, scopes.unwatched, scopes.recorder = (settings,), place, False, None
    scopes.backwards = ()
    scopes.timeline.note(settings)
    try:
        with _without_functions():
            yield _ProductGuard()
    finally:
        scopes.precisions, scopes.place, scopes.unwatched, scopes.recorder, scopes.backwards = around
        scopes.timeline.note(scopes.precisions[-1] if scopes.precisions else None)


_run_backward = torch.autograd.graph._engine_run_backward


@functools.wraps(_run_backward)
def _watched_backward(*args: Any, **kwargs: Any) -> Any:
    """Run a backward pass with the guard, if any forward pass of this thread may have run in a precision."""
    if scopes.observation is not None and args:
        scopes.observation.note_backward(args[0])
    if (
        not (scopes.timeline or (Process.latest is not None and args and _has_exact_product(args[0])))
        or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None
    ):
        note_backward(is_fp32=False)
        return _run_backward(*args, **kwargs)
    note_backward(is_fp32=bool(args) and is_asked_for() and _is_meant_for_fp32(args[0]))
    outside = scopes.backwards
    scopes.backwards = (*outside, scopes.precisions)
    watch()
    try:
        # PyTorch runs the nodes of every CUDA device in a separate thread, in which these scopes would be others.
        with torch.autograd.set_multithreading_enabled(False):
            return _run_backward(*args, **kwargs)
    finally:
        unwatch()
        scopes.backwards = outside


def _has_exact_product(roots: Any) -> bool:
    """Return whether a graph has an exact product, which another thread has made, for this one has not been watched."""
    return half_of_graph(*_nodes_of(roots)) is not None


def _is_meant_for_fp32(roots: Any) -> bool:
    """Return whether the node nearest to the roots that was made in a precision was in one that is not enabled."""
    settings = (made_in(node) for node in nodes(*_nodes_of(roots)))
    nearest = next((each for each in settings if each is not None), None)
    return nearest is not None and not nearest.enabled


def _nodes_of(roots: Any) -> list[Any]:
    return [each.node if isinstance(each, GradientEdge) else each.grad_fn for each in roots]


# Tensor.backward, autograd.backward and autograd.grad find it here; other code imports it from where it is.
torch.autograd._engine_run_backward = _watched_backward  # type: ignore[attr-defined]
torch.autograd.graph._engine_run_backward = _watched_backward
