"""Whether a loss comes from exact products, by its graph: a loop that trains in plain fp32 shall not go unnoticed."""

from __future__ import annotations

import re

from torch import Tensor

from golden.torch.guard.operator_table import PRODUCTS
from golden.torch.guard.provenance import made_in, nodes
from golden.torch.settings.half import current_half, wants_mixed_precision
from golden.torch.settings.scopes import Process, scopes

__all__ = ["LossCheck"]


def _node_name(operator: str) -> str:
    """Return how PyTorch names the gradient of an operator, without ``Backward`` and a number."""
    return "".join(word[:1].upper() + word[1:] for word in operator.removesuffix("_forward").split("_"))


_PYTORCHS = frozenset(_node_name(each) for names in PRODUCTS.values() for each in names.split())
_BACKWARD = re.compile(r"Backward\d*$")


class LossCheck:
    """Refuses a loss none of whose products is exact, where a half type has been set.

    The search ends at the first exact product, a few nodes from the loss. Compiled code and checkpoints hide their
    products; whether exact ones ran since the last loss decides then.
    """

    def __init__(self) -> None:
        self._ran = Process.products

    def __call__(self, loss: Tensor) -> None:
        """Raise RuntimeError if the loss has products, none of them exact, and mixed precision has been asked for."""
        ran, self._ran = Process.products != self._ran, Process.products
        is_meant = scopes.precisions and not scopes.precisions[-1].enabled
        if loss.grad_fn is None or is_meant or not (scopes.precisions or wants_mixed_precision()):
            return
        found = None
        for node in nodes(loss.grad_fn):
            function, settings = getattr(type(node), "_forward_cls", None), made_in(node)
            if settings is not None and not settings.enabled:
                continue  # fp32 is meant
            if function is None:
                name = _BACKWARD.sub("", node.name())
                found = found or (f"{name} is PyTorch's own, in fp32" if name in _PYTORCHS else None)
            elif not function.__module__.startswith("golden.torch"):
                if ran:
                    return
                found = found or f"{function.__name__} ran none"
            elif function.__name__ != "_Rounded":
                return
        if found:
            raise RuntimeError(
                f"outputs: got a loss none of whose products is exact ({found}), although the half type is "
                f"{current_half().name}, which by itself turns nothing on; run the forward pass in 'with "
                "golden.torch.precision():', or call golden.torch.amp.initialize(model) before the training. "
                "golden.torch.enable_mixed_precision(False) says that fp32 is meant, and so does 'with "
                "golden.torch.precision(enabled=False):' around the forward pass"
            )
