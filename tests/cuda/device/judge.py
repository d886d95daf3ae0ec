"""A judge of every exact operator on a card: the CPU computes it again, and the bits are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

__all__ = ["BITS", "Judge", "differing", "on_both"]

#: Integers as wide as the values of a dtype.
BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


def differing(one: Tensor, other: Tensor) -> str | None:
    """Say where two tensors differ in dtype, shape or bits; None if they do not."""
    a, b = one.detach().cpu().contiguous(), other.detach().cpu().contiguous()
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
    x, y = (each.view(BITS.get(each.dtype, each.dtype)).flatten() for each in (a, b))
    places = (x != y).nonzero().flatten()
    if not len(places):
        return None
    at = int(places[0])
    mask = 0xFFFFFFFF if a.element_size() == 4 else 0xFFFF
    return f"{len(places)} of {a.numel()}: [{at}] is {int(x[at]) & mask:#x} and must be {int(y[at]) & mask:#x}"


class Judge(TorchDispatchMode):
    """Compares the operators that run within it; `outputs` counts values, `wrong` lists differences."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.outputs, self.wrong = 0, list[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.namespace == "cbfloat" and result.is_cuda:
            expected = func(*tree_map_only(Tensor, lambda each: each.cpu(), args), **(kwargs or {}))
            found = differing(result, expected)
            self.calls[func.__name__] += 1
            self.outputs += result.numel()
            if found:
                shapes = [tuple(each.shape) for each in args if isinstance(each, Tensor)]
                self.wrong.append(f"{func.__name__} of {shapes}: {found}")
        return result


def on_both(function: Callable[..., Any], *given: Any) -> list[str]:
    """Run a function of tensors, and its backward pass, on the card and on the CPU; say what differs."""
    runs = []
    for device in ("cuda", "cpu"):
        leaves = [
            each.detach().to(device).requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each
            for each in given
        ]
        result = function(*leaves)
        assert result.device.type == device
        generator = torch.Generator().manual_seed(5)
        gradient = torch.randn(result.shape, generator=generator).to(device, result.dtype)
        if result.requires_grad:
            result.backward(gradient)
        gradients = [each.grad for each in leaves if isinstance(each, Tensor) and each.grad is not None]
        runs.append([result, *gradients])
    pairs = zip(*runs, strict=True)
    return [f"{number}: {found}" for number, pair in enumerate(pairs) if (found := differing(*pair))]
