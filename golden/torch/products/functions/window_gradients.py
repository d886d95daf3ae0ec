"""Autograd functions over the operators of convolutions, each of whose gradients are the two others.

Gradients are exact products at the backward level, as those of a matrix product are; see
`golden.torch.products.functions.convolution` for what is defined.
"""

from __future__ import annotations

from typing import Any

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
from golden.torch.settings.half_type import Plan

__all__ = ["convolved", "transposed"]

_Size = tuple[int, ...]


def _settings(geometry: Geometry, plan: Plan) -> tuple[Any, ...]:
    return (*map(list, geometry[:3]), geometry.groups, plan.line)


def _keep(ctx: Any, operands: tuple[Any, ...], geometry: Geometry, plan: Plan, dtype: torch.dtype) -> None:
    ctx.save_for_backward(*operands)
    keep_for_tangents(ctx, operands[0], operands[1], dtype)
    ctx.geometry, ctx.plan = geometry, plan


def _of_bias(gradient: torch.Tensor, bias: torch.Tensor, plan: Plan) -> torch.Tensor:
    """Sum over items and positions, in order, in fp32, and round once."""
    gradient_of(None)
    return summed(gradient.movedim(1, -1).flatten(0, -2), bias.shape, bias.dtype, plan)


class _Convolved(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        geometry: Geometry,
        plan: Plan,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        _keep(ctx, (x, weight, bias), geometry, plan.of_gradients, dtype)
        return operators.convolution(x, weight, bias, *_settings(geometry, plan), dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,), (x, weight, bias) = gradients, ctx.saved_tensors
        if gradient is None:
            return (None,) * len(ctx.needs_input_grad)
        geometry, plan = ctx.geometry, ctx.plan
        for_x, for_weight, for_bias = ctx.needs_input_grad[:3]
        return (
            transposed(gradient, weight, None, gradient_of(x).shape[2:], geometry, plan.branch(1), x.dtype)
            if for_x
            else None,
            _of_kernels(gradient, x, gradient_of(weight).shape[2:], geometry, plan.branch(2), weight.dtype)
            if for_weight
            else None,
            _of_bias(gradient, bias, plan.branch(3)) if for_bias else None,
            None,
            None,
            None,
        )


class _Transposed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        size: _Size,
        geometry: Geometry,
        plan: Plan,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        _keep(ctx, (x, weight, bias), geometry, plan.of_gradients, dtype)
        ctx.size = size
        return operators.convolution_transposed(x, weight, bias, list(size), *_settings(geometry, plan), dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,), (x, weight, bias) = gradients, ctx.saved_tensors
        if gradient is None:
            return (None,) * len(ctx.needs_input_grad)
        geometry, plan = ctx.geometry, ctx.plan
        for_x, for_weight, for_bias = ctx.needs_input_grad[:3]
        return (
            convolved(gradient, weight, None, geometry, plan.branch(1), gradient_of(x).dtype) if for_x else None,
            _of_kernels(x, gradient, gradient_of(weight).shape[2:], geometry, plan.branch(2), weight.dtype)
            if for_weight
            else None,
            _of_bias(gradient, bias, plan.branch(3)) if for_bias else None,
            None,
            None,
            None,
            None,
        )


class _OfKernels(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gradient: torch.Tensor,
        x: torch.Tensor,
        size: _Size,
        geometry: Geometry,
        plan: Plan,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        _keep(ctx, (gradient, x), geometry, plan, dtype)
        ctx.size = size
        return operators.convolution_of_kernels(gradient, x, list(size), *_settings(geometry, plan), dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (kernels,), (gradient, x) = gradients, ctx.saved_tensors
        if kernels is None:
            return (None,) * len(ctx.needs_input_grad)
        for_gradient, for_x = ctx.needs_input_grad[:2]
        plans = ctx.plan.branch(1), ctx.plan.branch(2)
        return (
            convolved(x, kernels, None, ctx.geometry, plans[0], gradient_of(gradient).dtype) if for_gradient else None,
            transposed(gradient, kernels, None, gradient_of(x).shape[2:], ctx.geometry, plans[1], x.dtype)
            if for_x
            else None,
            None,
            None,
            None,
            None,
        )


class _TransformedConvolved(_Convolved):
    """The same inside `torch.func` transformations; so the next two."""

    @staticmethod
    def forward(*given: Any) -> torch.Tensor:
        *operands, geometry, plan, dtype = given
        return operators.convolution(*operands, *_settings(geometry, plan), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _keep(ctx, inputs[:3], inputs[-3], inputs[-2].of_gradients, inputs[-1])
        ctx.size = inputs[3]

    vmap = one_by_one(lambda *given: convolved(*given))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        def product(x: Any, weight: Any, bias: Any, plan: Plan, dtype: torch.dtype) -> torch.Tensor:
            return convolved(x, weight, bias, ctx.geometry, plan, dtype)

        return tangent_of_product(product, ctx, tangents)


class _TransformedTransposed(_Transposed):
    @staticmethod
    def forward(*given: Any) -> torch.Tensor:
        *operands, size, geometry, plan, dtype = given
        return operators.convolution_transposed(*operands, list(size), *_settings(geometry, plan), dtype)

    setup_context = _TransformedConvolved.setup_context
    vmap = one_by_one(lambda *given: transposed(*given))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        def product(x: Any, weight: Any, bias: Any, plan: Plan, dtype: torch.dtype) -> torch.Tensor:
            return transposed(x, weight, bias, ctx.size, ctx.geometry, plan, dtype)

        return tangent_of_product(product, ctx, tangents)


class _TransformedOfKernels(_OfKernels):
    @staticmethod
    def forward(*given: Any) -> torch.Tensor:
        *operands, size, geometry, plan, dtype = given
        return operators.convolution_of_kernels(*operands, list(size), *_settings(geometry, plan), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _keep(ctx, inputs[:2], *inputs[-3:])
        ctx.size = inputs[2]

    vmap = one_by_one(lambda *given: _of_kernels(*given))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        def product(gradient: Any, x: Any, _: None, plan: Plan, dtype: torch.dtype) -> torch.Tensor:
            return _of_kernels(gradient, x, ctx.size, ctx.geometry, plan, dtype)

        return tangent_of_product(product, ctx, (*tangents[:2], None))


def convolved(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    geometry: Geometry,
    plan: Plan,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Exact products of the windows of `x` (B, C, ...) by `weight` (N, C / groups, ...), differentiable."""
    if not has_derivatives():
        return operators.convolution(x, weight, bias, *_settings(geometry, plan), dtype)
    return (_TransformedConvolved if is_transformed() else _Convolved).apply(x, weight, bias, geometry, plan, dtype)


def transposed(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    size: _Size,
    geometry: Geometry,
    plan: Plan,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Exact products of `x` (B, N, ...) by `weight` (N, C / groups, ...), added into (B, C, *size), differentiable."""
    if not has_derivatives():
        return operators.convolution_transposed(x, weight, bias, list(size), *_settings(geometry, plan), dtype)
    return (_TransformedTransposed if is_transformed() else _Transposed).apply(
        x, weight, bias, size, geometry, plan, dtype
    )


def _of_kernels(
    gradient: torch.Tensor, x: torch.Tensor, size: _Size, geometry: Geometry, plan: Plan, dtype: torch.dtype
) -> torch.Tensor:
    if not has_derivatives():
        return operators.convolution_of_kernels(gradient, x, list(size), *_settings(geometry, plan), dtype)
    return (_TransformedOfKernels if is_transformed() else _OfKernels).apply(gradient, x, size, geometry, plan, dtype)
