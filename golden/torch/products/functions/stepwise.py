"""A linear layer that a recurrent layer applies step by step, the gradient of whose weight is one reduction.

Each step stores its factors of the weight's gradient in one row, and all rows are multiplied once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from golden.torch.products.functions.gradients import exact_product, is_transformed, summed, without_tangents
from golden.torch.products.functions.products import current_plan, linear
from golden.torch.products.operators.registered import gradient_of, multiply, note_node, unwatched
from golden.torch.settings.plan import Plan

__all__ = ["Stepwise", "gates_of", "gradient_of_rows"]


class _Collected(torch.autograd.Function):
    """Places, one for each row of the steps, that collect the factors of the weight's gradient.

    A place has no value. Its gradient is the row's gradient, followed by the row that was multiplied (see `_Step`). So
    the gradient of the weight is one product of all rows, which can be differentiated again.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, rows: int, plan: Plan) -> Tensor:
        _keep_weight(ctx, weight, bias, plan)
        return _places(weight, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient, operands = gradients[0].split(ctx.widths, -1)
        weight = bias = gradient_of(None)
        if ctx.needs_input_grad[0]:
            weight = exact_product(gradient.mT, operands, None, ctx.plan.branch(1), ctx.dtype)
        if ctx.bias is not None and ctx.needs_input_grad[1]:
            shape, dtype = ctx.bias
            bias = summed(gradient, shape, dtype, ctx.plan.branch(2))
        return weight, bias, None, None


def _keep_weight(ctx: Any, weight: Tensor, bias: Tensor | None, plan: Plan) -> None:
    ctx.plan, ctx.widths, ctx.dtype = plan.of_gradients, list(weight.shape), weight.dtype
    ctx.bias = None if bias is None else (bias.shape, bias.dtype)


def _places(weight: Tensor, rows: int) -> Tensor:
    note_node()
    return weight.new_zeros((), dtype=torch.float32).expand(rows, sum(weight.shape))


def _no_vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> Any:
    # A place is used once; the gradients of several items in one place would be added before they are multiplied.
    raise NotImplementedError(
        "torch.vmap: got a recurrent layer with weights to train, must be a cell, called step by step: PyTorch itself "
        "has no vmap of recurrent layers. Give the layer the whole batch instead, if its items have the same weights"
    )


class _TransformedCollected(_Collected):
    """The same inside `torch.func` transformations."""

    @staticmethod
    def forward(weight: Tensor, bias: Tensor | None, rows: int, plan: Plan) -> Tensor:  # type: ignore[override]
        return _places(weight, rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        weight, bias, _, plan = inputs
        _keep_weight(ctx, weight, bias, plan)

    vmap, jvp = staticmethod(_no_vmap), staticmethod(without_tangents)


class _Step(torch.autograd.Function):
    """An exact linear layer with a result in fp32; `place` collects the gradient of its weight and bias."""

    @staticmethod
    def forward(ctx: Any, operand: Tensor, weight: Tensor, bias: Tensor | None, place: Tensor, plan: Plan) -> Tensor:
        ctx.plan = plan.of_gradients
        ctx.save_for_backward(operand, weight)
        return gates_of(operand, weight, bias, plan)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,), (operand, weight) = gradients, ctx.saved_tensors
        with unwatched(gradient, operand, weight):
            rows = gradient_of_rows(gradient, operand, weight, ctx.plan) if ctx.needs_input_grad[0] else None
            place = torch.cat([gradient, operand.float()], -1)
        return rows, None, None, place, None


def gates_of(operand: Tensor, weight: Tensor, bias: Tensor | None, plan: Plan) -> Tensor:
    """Return the rows of a step multiplied by the weight, in fp32."""
    return multiply(operand, weight.mT, bias, str(plan.reduction), plan.half.dtype).float()


def gradient_of_rows(gradient: Tensor, operand: Tensor, weight: Tensor, plan: Plan) -> Tensor:
    """Return the gradient of the rows of a step; `plan` is the plan of gradients."""
    rounded = gradient.to(plan.half.dtype)
    return exact_product(rounded, weight, None, plan.branch(1), gradient_of(operand).dtype)


class _TransformedStep(_Step):
    """The same inside `torch.func` transformations."""

    @staticmethod
    def forward(  # type: ignore[override]
        operand: Tensor, weight: Tensor, bias: Tensor | None, place: Tensor, plan: Plan
    ) -> Tensor:
        return gates_of(operand, weight, bias, plan)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        operand, weight, *_, plan = inputs
        ctx.plan = plan.of_gradients
        ctx.save_for_backward(operand, weight)

    vmap, jvp = staticmethod(_no_vmap), staticmethod(without_tangents)


class Stepwise:
    """A linear layer applied step by step, the gradient of whose weight is one reduction over the rows of all steps.

    `sizes` are the rows of each step; `plan`, that in force unless given, is of the gradient of the weight.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, sizes: list[int], plan: Plan | None = None) -> None:
        self.weight, self.bias = weight, bias
        self.places: Sequence[Tensor] = ()
        plan = plan or current_plan()  # also where nothing is differentiated: products have the same numbers then
        if torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in (weight, bias)):
            collected = _TransformedCollected if is_transformed() else _Collected
            self.places = collected.apply(weight, bias, sum(sizes), plan).split(sizes)

    def __call__(self, operand: Tensor, step: int, plan: Plan | None = None) -> Tensor:
        """Return the layer of the rows of a step, in fp32; `plan` is that in force unless given."""
        if not self.places:
            return linear(operand, self.weight, self.bias).float()
        apply = (_TransformedStep if is_transformed() else _Step).apply
        return apply(operand, self.weight, self.bias, self.places[step], plan or current_plan())
