"""A recording of a training run: the operands of every exact product, with its layer and pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import TorchDispatchMode

import golden
from golden import FloatFormat, Reduction

__all__ = ["Product", "Recorder"]

#: The number of matrices kept of a batch: attention has one for every head of every text.
_BATCHED = 4


@dataclass(frozen=True)
class Product:
    """A product of two matrices.

    Parameters
    ----------
    layer : str
        Name of the module that multiplied.
    direction : str
        ``forward``, ``grad_input`` or ``grad_weight``.
    a, b : uint16 arrays of shapes (M, K) and (K, N)
        Codes in `operand`.
    operand : FloatFormat
    """

    layer: str
    direction: str
    a: NDArray[np.uint16]
    b: NDArray[np.uint16]
    operand: FloatFormat

    @property
    def size(self) -> int:
        """Multiply-accumulates."""
        return self.a.size * self.b.shape[1]


@dataclass
class Recorder(TorchDispatchMode):
    """Keep the operands of all exact products while it is entered, backward passes included.

    A gradient's product shares an operand with a forward product. If it shares the right one, a weight, it is
    grad_input; if the left one, an activation, it is grad_weight. The activation may be a copy; then the product
    belongs to the layer of the last gradient. Biases are left out: the unit loads no initial value, and their gradients
    are sums in fp32, which run as products by ones.

    Parameters
    ----------
    model : torch.nn.Module
        Names the layers.
    """

    model: torch.nn.Module
    products: list[Product] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._inside: list[str] = []
        self._lefts: dict[int, str] = {}
        self._rights: dict[int, str] = {}
        self._last = ""
        # Keep the operands alive, so that no other tensor gets their memory.
        self._kept: list[torch.Tensor] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> Recorder:
        for name, module in self.model.named_modules():
            if name:
                self._hooks.append(module.register_forward_pre_hook(lambda *_, name=name: self._inside.append(name)))
                self._hooks.append(module.register_forward_hook(lambda *_: self._leave()))
        super().__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._kept.clear()

    def _leave(self) -> None:
        self._inside.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record the operands of exact products; every function still runs unchanged."""
        if func is torch.ops.cbfloat.matrix_product.default:
            a, b, operand = args[0], args[1], Reduction.parse(args[3]).factors
            layer, direction = self._place(a, b)
            is_sum = direction != "forward" and a.shape[-2] == 1 and bool((a == 1).all())
            for left, right in () if is_sum else _matrices(a, b):
                x, y = (golden.encode(part.float().numpy(force=True), operand) for part in (left, right))
                self.products.append(Product(layer, direction, x, y, operand))
        return func(*args, **(kwargs or {}))

    def _place(self, a: torch.Tensor, b: torch.Tensor) -> tuple[str, str]:
        left, right = a.untyped_storage().data_ptr(), b.untyped_storage().data_ptr()
        if self._inside:
            layer = self._inside[-1]
            self._lefts[left] = self._rights[right] = layer
            self._kept += [a, b]
            return layer, "forward"
        is_shared = right in self._rights
        self._last = self._rights[right] if is_shared else self._lefts.get(left, self._last)
        return self._last, "grad_input" if is_shared else "grad_weight"


def _matrices(a: torch.Tensor, b: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield some matrices of a batch; if all share their right operand, they are one matrix with many rows."""
    if b.ndim == 2:
        yield a.reshape(-1, a.shape[-1]), b
        return
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    lefts = a.expand(*batch, *a.shape[-2:]).reshape(-1, *a.shape[-2:])
    rights = b.expand(*batch, *b.shape[-2:]).reshape(-1, *b.shape[-2:])
    yield from zip(lefts[:_BATCHED], rights[:_BATCHED], strict=True)
