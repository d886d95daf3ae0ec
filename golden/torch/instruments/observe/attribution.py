"""The place of a product: its module, its pass and its operation.

A forward pass is read from the Python frames that are running, which also holds while a checkpoint computes it again. A
node of the backward pass is known by the number that PyTorch gave it when it was made. A parameter is known by its
memory, under whichever view it is multiplied. Compiled code has neither frames of modules nor nodes of products. There
a product belongs to the module that owns its parameter. The gradient of a weight belongs to the product with the same
operand in the forward pass.

A module with parameters that is neither part of the model nor around it belongs to another model. Its products have no
place here, forward or backward.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from golden.torch.common.terminal import say_once
from golden.torch.instruments.observe.samples import Shape

__all__ = ["COMPILED", "Attribution", "Pass", "Place"]

Pass = Literal["forward", "gradient_of_input", "gradient_of_weight"]

#: The module of a product in compiled code that has no parameter.
COMPILED = "(compiled)"
_ROOM = str(Path(__file__).parents[2])
#: Function of golden.torch -> the operation that it stands for; of several that are running, the outermost counts.
_OPERATIONS = {
    **dict.fromkeys(("matmul", "bmm", "_added", "_matrix_product"), "matmul"),
    **dict.fromkeys(("_convolution", "conv1d", "conv2d", "conv3d"), "convolution"),
    **dict.fromkeys(("_transposed", "_convolution_transposed"), "transposed convolution"),
    **dict.fromkeys(("_einsum", "einsum", "_tensordot", "_inner", "contract"), "einsum"),
    "linear": "linear",
    "_scores": "attention scores",
    "_mixed": "attention values",
    "grouped_mm": "grouped product",
    "bilinear": "bilinear",
    "affine_grid": "affine grid",
    "summed": "sum",
    "_layers": "recurrent layer",
    "_cell": "recurrent cell",
}
_WEIGHTED = ("linear", "convolution", "transposed convolution")


class Place(NamedTuple):
    """The place of a product."""

    module: str
    direction: Pass
    operation: str
    is_recomputed: bool


class _Node(NamedTuple):
    """The facts about a node of the graph."""

    module: str | None  # None: of another model
    operation: str
    weight: int  # the memory of the weight of a layer, parameter or not; 0 if it has none


def _memory(tensor: Tensor) -> int:
    tensor = getattr(tensor, "_local_tensor", tensor)  # as in a DTensor
    return int(tensor.untyped_storage().data_ptr())


class Attribution:
    """Tells the places of the products of one step.

    Parameters
    ----------
    model : nn.Module
        Its modules give the names; that of a product outside of all modules is "".
    """

    def __init__(self, model: nn.Module) -> None:
        model = getattr(model, "_orig_mod", model)
        self._model = model
        self._names = {each: name for name, each in model.named_modules()}
        self._owners = {
            _memory(parameter): name
            for each, name in reversed(self._names.items())
            for parameter in each.parameters(recurse=False)
        }
        self._nodes: dict[int, _Node] = {}
        # The node whose backward pass runs, and the memory of the tensor whose gradient it computes; None: a parameter.
        self._towards: tuple[int, int | None] | None = None
        self._compiled: dict[tuple[int, int, int], list[_Node]] = {}
        self._others: dict[nn.Module, bool] = {}

    def note_gradient_of(self, operand: Tensor | None) -> None:
        """Take the operand whose gradient is computed next, None for a parameter that is not at hand."""
        node = torch._C._current_autograd_node()
        number = -1 if node is None else node._sequence_nr()
        # FSDP gathers a parameter for the backward pass into other memory than for the forward pass.
        is_parameter = operand is None or isinstance(operand if operand._base is None else operand._base, nn.Parameter)
        self._towards = number, None if is_parameter or operand is None else _memory(operand)

    def note_node(self) -> None:
        """Take the place of a node that is being made."""
        module, operation = self._running()
        self._nodes.setdefault(_made_now(), _Node(module, operation, 0))

    def place(self, left: Tensor, right: Tensor, shape: Shape) -> Place | None:
        """Return the place of the product that runs now; None if it is one of another model."""
        node = torch._C._current_autograd_node()
        if node is not None and self._towards is not None and self._towards[0] == node._sequence_nr():
            return self._backward(node._sequence_nr())
        if node is not None and "Compiled" in node.name():
            made = self._nodes.get(node._sequence_nr())
            return None if made and made.module is None else self._compiled_backward(left, right, shape)
        module, operation = self._running(left, right)
        weight = _memory(right) if operation in _WEIGHTED else 0
        made = _Node(module, operation, weight)
        if node is None or not torch.is_grad_enabled():
            self._nodes.setdefault(_made_now(), made)
        if weight and module is not None:
            self._compiled.setdefault((_memory(left), shape.length, shape.columns), []).append(made)
        return None if module is None else Place(module, "forward", operation, node is not None)

    def _backward(self, number: int) -> Place | None:
        known = self._nodes.get(number, _Node("", "matmul", 0))
        if known.module is None:
            return None
        memory = self._towards[1] if self._towards is not None else None
        of_weight = memory is None or memory == known.weight or memory in self._owners
        operation = "sum" if _is_running("summed") else known.operation
        return Place(known.module, "gradient_of_weight" if of_weight else "gradient_of_input", operation, False)

    def _compiled_backward(self, left: Tensor, right: Tensor, shape: Shape) -> Place:
        owner = self._owners.get(_memory(right), self._owners.get(_memory(left)))
        if owner is not None:
            return Place(owner, "gradient_of_input", "linear", False)
        known = self._compiled.get((_memory(left), shape.rows, shape.columns))
        if known:
            return Place(known[-1].module or "", "gradient_of_weight", known.pop().operation, False)
        return Place(COMPILED, "gradient_of_input", "matmul", False)

    def _running(self, *operands: Tensor) -> tuple[str | None, str]:
        """Return the innermost module that runs, None for one of another model, and the operation."""
        module, operation, other = None, "", None
        frame = sys._getframe(1)
        while frame is not None and module is None:
            code = frame.f_code
            if code.co_filename.startswith(_ROOM):
                operation = _OPERATIONS.get(code.co_name, operation)
            if "self" in code.co_varnames:
                given = frame.f_locals.get("self")
                if isinstance(given, nn.Module):
                    module = self._names.get(given)
                    other = given if module is None and self._is_other(given) else other
            frame = frame.f_back  # type: ignore[assignment]
        owner = next((self._owners[each] for each in map(_memory, operands) if each in self._owners), None)
        if module is None and owner is None and other is not None:
            say_once(
                f"observe: got a product of {type(other).__name__}, which is no module of the observed "
                f"{type(self._model).__name__}: it is left out; observe a module that contains both to see both"
            )
            return None, operation or "matmul"
        if module is None or (owner is not None and (not module or owner.startswith(f"{module}."))):
            module = owner if owner is not None else module or ""
        if operation == "matmul" and owner is not None:
            operation = "linear"
        return module, operation or "matmul"

    def _is_other(self, module: nn.Module) -> bool:
        """Return whether a module is another model, neither a wrapper of this one nor a function without parameters."""
        if module not in self._others:
            has_parameters = next(module.parameters(), None) is not None
            self._others[module] = has_parameters and not any(each in self._names for each in module.modules())
        return self._others[module]


def _made_now() -> int:
    """Return the number of the node whose `forward` runs."""
    return int(torch._C._autograd._get_sequence_nr()) - 1


def _is_running(function: str) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == function and code.co_filename.startswith(_ROOM):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
