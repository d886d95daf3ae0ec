"""Facts read from the graph of a loss: the half type of its exact products, and whether its backward pass has run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from golden.torch.settings.half_type import HalfType
from golden.torch.settings.scopes import Settings, scopes

__all__ = ["OF_A_LEAF", "backward_has_run", "half_of", "half_of_graph", "made_in", "nodes"]

#: Sequence number of a node that no forward pass made: it accumulates the gradient of a leaf.
OF_A_LEAF = 2**64 - 1


def nodes(*roots: Any) -> Iterator[Any]:
    """Give the nodes of a graph, each once, the nearest to the roots first; a root of None has none."""
    ahead = list(dict.fromkeys(root for root in roots if root is not None))
    seen = set(ahead)
    for node in ahead:
        yield node
        for each, _ in node.next_functions:
            if each is not None and each not in seen:
                seen.add(each)
                ahead.append(each)


def made_in(node: Any) -> Settings | None:
    """Return the settings of the precision in which this thread made a node; None if it was in none."""
    number = node._sequence_nr()
    return None if number == OF_A_LEAF else scopes.timeline.at(number)


def half_of(loss: Tensor) -> HalfType | None:
    """Return the half type of the exact product nearest to a loss; None without one, or where a compiler hides it."""
    return half_of_graph(loss.grad_fn)


def half_of_graph(*roots: Any) -> HalfType | None:
    """Return the half type of the exact product nearest to the roots of a graph, likewise."""
    for node in nodes(*roots):
        plan = getattr(node, "plan", None)
        if isinstance(plan, tuple) and plan and isinstance(plan[0], HalfType):
            return plan[0]
    return None


def backward_has_run(loss: Tensor) -> bool:
    """Return whether the backward pass of a loss has run.

    It shows in values of the graph that are gone, and in exact products that are marked even where ``retain_graph``
    kept their values. Not seen is ``retain_graph`` on a loss without an exact product, and a graph without values.
    """
    return any(getattr(node, "has_run", False) or _is_spent(node) for node in nodes(loss.grad_fn))


def _is_spent(node: Any) -> bool:
    """Return whether the values that a node had saved are gone."""
    names = ["saved_tensors"] if hasattr(type(node), "saved_tensors") else []
    names += [name for name in dir(node) if name.startswith("_saved_")]
    try:
        for name in names:
            getattr(node, name)
    except RuntimeError:  # "Trying to backward through the graph a second time"
        return True
    return False
