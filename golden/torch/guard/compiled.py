"""Code that torch.compile makes: its operators are inspected when it is made, for they are hidden when it runs.

A compiler fuses and rewrites operators: a small matrix product becomes multiplications and a sum, which no guard knows.
So the graph marks each operator that multiplies and is traced in a precision. Before the compiler gets the graph, the
guard tries each marked call forward and backward, on tensors without values. The guard also sees operators that the
compiler leaves whole when they run, unless a block of the code has turned the precision off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import fx

from golden.torch.common.pytorch import constant
from golden.torch.guard.guard import looking_through, unwatched
from golden.torch.guard.operator_kinds import kind_of_operator
from golden.torch.guard.operator_table import PRODUCTS
from golden.torch.settings.half import current_half
from golden.torch.settings.scopes import Settings, Unseen, scopes

__all__ = ["MARK", "OFF", "hides_products", "look_at_graphs"]

#: Key under which a node of a graph tells the policy of the precision that it was traced in.
MARK = "golden.torch.unseen"
#: The mark of a product where the precision was turned off.
OFF = "off"


class _Installed:
    yes = False


def look_at_graphs() -> None:
    """Look at all graphs that torch.compile makes from now on. Called while it traces, never by its code."""
    if _Installed.yes:
        return
    from torch._dynamo.output_graph import OutputGraph

    compile_graph = OutputGraph.call_user_compiler

    @functools.wraps(compile_graph)
    def look_and_compile(self: Any, graph: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        has_other_products = False
        for node in _products(graph):
            unseen = node.meta.get("custom", {}).get(MARK)
            if unseen is None and scopes.precisions and scopes.precisions[-1].enabled:  # no mode traces some places
                unseen = scopes.precisions[-1].unseen
            if unseen in get_args(Unseen):
                _try(node, unseen)
            has_other_products |= unseen == OFF
        compiled = compile_graph(self, graph, *args, **kwargs)
        return _run_unwatched(compiled) if has_other_products else compiled

    setattr(OutputGraph, "call_user_compiler", look_and_compile)  # noqa: B010 - it is theirs
    _Installed.yes = True


@constant
def hides_products(function: Any) -> bool:
    """Return whether a function of PyTorch multiplies and sums, by the name of its operator."""
    look_at_graphs()
    name = getattr(function, "__name__", "")
    if isinstance(function, torch._ops.OpOverload):
        return kind_of_operator(function) in ("product", "weighted", "unknown")
    if isinstance(function, torch._ops.OpOverloadPacket):
        return any(hides_products(getattr(function, each)) for each in function.overloads())
    return name.strip("_") in _NAMES


_NAMES = frozenset(" ".join(PRODUCTS.values()).replace(" _", " ").split()) | {"linalg_norm", "linalg_matrix_norm"}


def _run_unwatched(compiled: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compiled)
    def run(*args: Any) -> Any:
        with unwatched():
            return compiled(*args)

    return run


def _products(graph: fx.GraphModule) -> Iterator[fx.Node]:
    """Give the calls that multiply and sum, of all graphs within a graph."""
    for module in graph.modules():
        if isinstance(module, fx.GraphModule):
            for node in module.graph.nodes:
                if node.op in ("call_function", "call_method") and _is_product(node):
                    yield node


def _is_product(node: fx.Node) -> bool:
    if MARK in node.meta.get("custom", {}):
        return True
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return kind_of_operator(node.target) == "product"
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name.strip("_") in _NAMES


def _try(node: fx.Node, unseen: str) -> None:
    """Run a call and its gradient on tensors without values; the guard raises, warns or counts."""
    given: list[torch.Tensor] = []

    def value(argument: Any) -> Any:
        example = argument.meta.get("example_value", argument.meta.get("val"))
        if not isinstance(example, torch.Tensor) or not (example.is_floating_point() or example.is_complex()):
            return example
        copy = example.detach()
        if example.requires_grad:
            given.append(copy.requires_grad_())
            copy = copy.clone()  # what works in place refuses a leaf
        return copy

    settings = _settings(unseen)
    modules = [kind.__name__ for _, kind in node.meta.get("nn_module_stack", {}).values() if isinstance(kind, type)]
    place = f"in {modules[-1]}, compiled" if modules else "in compiled code"
    with torch.enable_grad() if _needs_gradient(node) else torch.no_grad(), looking_through(settings, place) as guard:
        args, kwargs = fx.map_arg((node.args, node.kwargs), value)
        with _fake_mode_of(args, kwargs), guard:
            if isinstance(node.target, str):
                result = getattr(args[0], node.target)(*args[1:], **kwargs)
            else:
                result = node.target(*args, **kwargs)
            results = [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
            results = [each for each in results if each.requires_grad]
            if results and given:
                ones = [torch.ones_like(each) for each in results]
                torch.autograd.grad(results, given, ones, allow_unused=True)


def _fake_mode_of(*given: Any) -> AbstractContextManager[Any]:
    leaves = torch.utils._pytree.tree_leaves(given)
    return next((each.fake_mode for each in leaves if hasattr(each, "fake_mode")), nullcontext())


def _needs_gradient(node: fx.Node) -> bool:
    example = node.meta.get("example_value")
    leaves = torch.utils._pytree.tree_leaves(example)
    return any(isinstance(each, torch.Tensor) and each.requires_grad for each in leaves)


def _settings(unseen: str) -> Settings:
    around = scopes.precisions[-1] if scopes.precisions else Settings(current_half(), 1, None, True)
    return replace(around, enabled=True, unseen=unseen)  # type: ignore[arg-type]
