"""The mode in which functions of PyTorch run as the innermost precision context of the thread says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils.checkpoint import checkpoint

from golden.torch.common.pytorch import run_as_written
from golden.torch.guard.compiled import MARK, OFF, hides_products
from golden.torch.guard.guard import refuse, watching
from golden.torch.guard.interception import ACTIVATIONS, COMPOSITES, exact_of, is_leaf, kind_of
from golden.torch.products.functions.products import ELIGIBLE
from golden.torch.settings.scopes import scopes

__all__ = ["Interception"]

_HALF_DTYPES = frozenset({torch.float16, torch.bfloat16})
#: Types of arguments that no class of tensors has a say in.
_BARE = frozenset({
    torch.Tensor, torch.nn.Parameter, int, float, bool, type(None), torch.dtype, torch.device, torch.memory_format
})  # fmt: skip
_TENSORS = (torch.Tensor, torch.nn.Parameter)
_handle_torch_function = torch.overrides.handle_torch_function


class Interception(TorchFunctionMode):
    """Runs the functions of PyTorch as the innermost precision context of this thread says."""

    @run_as_written
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one function of PyTorch: exactly, in fp32, or as it is."""
        kwargs = kwargs or {}
        if not torch.compiler.is_compiling() and is_leaf(func) and _is_bare(args, kwargs):
            guard = _pop_dispatch(None)  # which has nothing to judge
            try:
                return func(*args, **kwargs)
            finally:
                _push_dispatch(guard)
        if func is checkpoint and torch.compiler.is_compiling():
            with self:  # the compiler lets a function of a checkpoint do so if it has been done outside of one
                pass
            return func(self._around(*args[:1]), *args[1:], **kwargs)
        # The innermost context decides, also where this is one around it.
        if not scopes.precisions or not scopes.precisions[-1].enabled:
            return _traced(func, args, kwargs, OFF) if torch.compiler.is_compiling() else func(*args, **kwargs)
        kind = kind_of(func)
        if kind == "plain":
            if torch.compiler.is_compiling():
                return _traced(func, args, kwargs, scopes.precisions[-1].unseen)
            if scopes.watchers:
                return func(*args, **kwargs)
            with watching():  # compiled code has entered the context, and left this to Python
                return func(*args, **kwargs)
        if kind == "composite":
            if torch.compiler.is_compiling() or not scopes.watchers:
                with self:
                    return COMPOSITES[func](*args, **kwargs)
            _push_function(self)  # its scopes are still in force
            try:
                return COMPOSITES[func](*args, **kwargs)
            finally:
                _pop_function()
        if kind == "in fp32":
            args = tuple(_widened(given) for given in args)
            kwargs = {name: _widened(given) for name, given in kwargs.items()}
        elif (
            kind == "exact"
            and _are_eligible(args)
            and (not kwargs or (_are_eligible(kwargs.values()) and "out" not in kwargs))
        ):
            return exact_of(func)(*args, **kwargs)
        else:
            dtypes = [*_rounding_dtypes(args), *_rounding_dtypes(kwargs.values())]
            if not dtypes:  # integers: exact by themselves
                return func(*args, **kwargs)
            settings = scopes.precisions[-1]
            if kind == "exact" and all(dtype in ELIGIBLE for dtype in dtypes):
                if kwargs.get("out") is None:
                    kwargs.pop("out", None)
                    return exact_of(func)(*args, **kwargs)
                if settings.unseen == "error":
                    raise NotImplementedError(
                        f"out: got a tensor for {func.__name__}, must be None in a precision context"
                    )
            elif settings.unseen == "error" and scopes.recorder is None:
                refuse(resolve_name(func) or func.__name__, dtypes, settings)
            # Otherwise the guard sees the operators that it consists of.
            if torch.compiler.is_compiling():
                return _traced(func, args, kwargs, settings.unseen)
        return func(*args, **kwargs)

    def _around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of a checkpoint for the compiler, which traces it while no mode is on."""

        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return run


_len_of_dispatch, _transformation = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack
_pop_dispatch, _push_dispatch = torch._C._pop_torch_dispatch_stack, torch._C._push_on_torch_dispatch_stack
_len_of_functions = torch._C._len_torch_function_stack
_pop_function, _push_function = torch._C._pop_torch_function_stack, torch._C._push_on_torch_function_stack


@partial(run_as_written, recursively=True)
def _is_bare(args: Iterable[Any], kwargs: dict[str, Any]) -> bool:
    """Return whether the guard, and nobody else, would look at an operator on these arguments."""
    for each in args:
        if type(each) not in _BARE:
            return False
    if kwargs:
        for each in kwargs.values():
            if type(each) not in _BARE:
                return False
    return _len_of_dispatch() == 1 and scopes.watchers > 0 and _transformation() is None


@run_as_written
def _handle(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Do as PyTorch's function of this purpose, which takes longer than a small operator to get to the mode."""
    if torch.compiler.is_compiling():
        return _handle_torch_function(public_api, relevant_args, *args, **kwargs)
    if (
        public_api in ACTIVATIONS
        and type(relevant_args[0]) in _TENSORS
        and _len_of_functions() == _len_of_dispatch() == 1
        and scopes.watchers > 0
        and _transformation() is None
    ):
        mode, guard = _pop_function(), _pop_dispatch(None)  # which has nothing to judge
        try:
            if isinstance(mode, Interception):
                return public_api(*args, **kwargs)
        finally:
            _push_dispatch(guard)
            _push_function(mode)
    if kind_of(public_api) == "composite" and _is_bare(relevant_args, {}) and _is_in_precision():
        return COMPOSITES[public_api](*args, **kwargs)  # the mode meets its callees
    return _handle_torch_function(public_api, relevant_args, *args, **kwargs)


def _is_in_precision() -> bool:
    """Return whether the innermost mode belongs to an enabled precision."""
    mode = torch._C._get_function_stack_at(torch._C._len_torch_function_stack() - 1)
    return isinstance(mode, Interception) and bool(scopes.precisions) and scopes.precisions[-1].enabled


for _module in (F, torch.autograd, torch._tensor):  # their functions look for it there
    _module.handle_torch_function = _handle  # type: ignore[attr-defined]


def _traced(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mark: str) -> Any:
    """Trace a function; the graph tells of a product that it was in a precision; see `compiling.compiled`."""
    if not hides_products(func):
        return func(*args, **kwargs)
    with torch.fx.traceback.annotate({MARK: mark}):
        return func(*args, **kwargs)


def _are_eligible(given: Iterable[Any]) -> bool:
    """Return whether there are tensors that the exact kernels take, numbers and None, and nothing else."""
    for each in given:
        if type(each) in _TENSORS:
            if each.dtype not in ELIGIBLE:
                return False
        elif type(each) not in _BARE:
            return False
    return True


def _rounding_dtypes(given: Any) -> list[torch.dtype]:
    """Return the dtypes of the tensors whose products are rounded, thus neither integers nor truth values."""
    found: list[torch.dtype] = []
    for each in given:
        if isinstance(each, torch.Tensor):
            dtype = each.dtype
            if dtype.is_floating_point or dtype.is_complex:
                found.append(dtype)
        elif isinstance(each, list | tuple):
            found += _rounding_dtypes(each)
    return found


def _widened(given: Any) -> Any:
    return given.float() if isinstance(given, torch.Tensor) and given.dtype in _HALF_DTYPES else given
