"""The autograd function of convolutions, each of whose gradients are the two other products of windows.

Gradients are exact products at the backward level, as for a matrix product;
`golden.torch.products.functions.convolution` has the definitions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from golden.torch.products.functions.gradients import (
    has_derivatives,
    is_transformed,
    keep_for_tangents,
    one_by_one,
    summed,
    tangent_of_product,
)
from golden.torch.products.operators import registered as operators
from golden.torch.products.operators.registered import gradient_of
from golden.torch.products.windows import Geometry
from golden.torch.settings.plan import Plan

__all__ = ["CONVOLVED", "Form", "of_windows", "transposed_to"]


class Form(NamedTuple):
    """One of the three products of windows: its operator, and the size of the result where the operator takes one.

    ``convolution`` multiplies (B, C, ...) by kernels (N, C / groups, ...), ``convolution_transposed`` (B, N, ...) by
    kernels into (B, C, *size), and ``convolution_of_kernels`` (B, N, ...) by (B, C, ...) into (N, C / groups, *size).
    """

    operator: str
    size: tuple[int, ...] | None = None


CONVOLVED = Form("convolution")
# Form -> the form of the gradient of each of the two operands a and b, and what that multiplies; g is the result's.
_GRADIENTS = {
    "convolution": (("convolution_transposed", "g", "b"), ("convolution_of_kernels", "g", "a")),
    "convolution_transposed": (("convolution", "g", "b"), ("convolution_of_kernels", "a", "g")),
    "convolution_of_kernels": (("convolution", "b", "g"), ("convolution_transposed", "a", "g")),
}


def transposed_to(size: tuple[int, ...]) -> Form:
    """Return the form of a transposed convolution."""
    return Form("convolution_transposed", size)


def _result(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None,
    form: Form,
    geometry: Geometry,
    plan: Plan,
    dtype: torch.dtype,
) -> torch.Tensor:
    operands = (a, b) if form.operator == "convolution_of_kernels" else (a, b, bias)
    sizes = () if form.size is None else (list(form.size),)
    settings = *map(list, geometry[:3]), geometry.groups, str(plan.reduction), dtype
    result: torch.Tensor = getattr(operators, form.operator)(*operands, *sizes, *settings)
    return result


def _keep(ctx: Any, inputs: tuple[Any, ...]) -> None:
    *operands, form, geometry, plan, dtype = inputs
    ctx.save_for_backward(*operands)
    keep_for_tangents(ctx, operands[0], operands[1], dtype)
    ctx.form, ctx.geometry, ctx.plan = form, geometry, plan.of_gradients


class _OfWindows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> torch.Tensor:
        _keep(ctx, given)
        return _result(*given)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,), (a, b, bias) = gradients, ctx.saved_tensors
        if gradient is None:
            return (None,) * len(ctx.needs_input_grad)
        factors = {"g": gradient, "a": a, "b": b}
        found: list[torch.Tensor | None] = []
        wanted = zip((a, b), ctx.needs_input_grad, _GRADIENTS[ctx.form.operator], strict=False)
        for branch, (operand, is_needed, (operator, first, second)) in enumerate(wanted, 1):
            if not is_needed:
                found.append(None)
                continue
            size, plan = gradient_of(operand).shape[2:], ctx.plan.branch(branch)
            form = Form(operator, None if operator == "convolution" else size)
            found.append(of_windows(factors[first], factors[second], None, form, ctx.geometry, plan, operand.dtype))
        for_bias = _of_bias(gradient, bias, ctx.plan.branch(3)) if ctx.needs_input_grad[2] else None
        return *found, for_bias, None, None, None, None


def _of_bias(gradient: torch.Tensor, bias: torch.Tensor, plan: Plan) -> torch.Tensor:
    """Sum over items and positions, in order, in fp32, and round once."""
    gradient_of(None)
    return summed(gradient.movedim(1, -1).flatten(0, -2), bias.shape, bias.dtype, plan)


class _TransformedOfWindows(_OfWindows):
    """The same inside `torch.func` transformations."""

    @staticmethod
    def forward(*given: Any) -> torch.Tensor:
        return _result(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _keep(ctx, inputs)

    vmap = one_by_one(lambda *given: of_windows(*given))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        def product(a: Any, b: Any, bias: Any, plan: Plan, dtype: torch.dtype) -> torch.Tensor:
            return of_windows(a, b, bias, ctx.form, ctx.geometry, plan, dtype)

        return tangent_of_product(product, ctx, tangents)


def of_windows(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None,
    form: Form,
    geometry: Geometry,
    plan: Plan,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Exact products of one of the three forms, differentiable; the gradient of kernels has no bias."""
    if not has_derivatives():
        return _result(a, b, bias, form, geometry, plan, dtype)
    return (_TransformedOfWindows if is_transformed() else _OfWindows).apply(a, b, bias, form, geometry, plan, dtype)
