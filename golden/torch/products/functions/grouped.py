"""Exact products of groups of rows or columns, one for each matrix of a batch: the experts of a mixture.

Where a group ends is a tensor, so that torch.compile keeps the whole as one operator, whatever the ends are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from golden.torch.products.functions.gradients import (
    is_differentiated,
    is_transformed,
    keep_for_tangents,
    one_by_one,
    tangent_of_product,
)
from golden.torch.products.operators import registered as operators
from golden.torch.products.operators.sharding import shardable
from golden.torch.settings.draws import part_of
from golden.torch.settings.plan import Plan
from golden.torch.settings.reductions import reduction_in

__all__ = ["grouped", "grouped_product"]

_library = torch.library.Library("cbfloat", "FRAGMENT")
_library.define("grouped_product(Tensor a, Tensor b, Tensor ends, str reduction, ScalarType dtype) -> Tensor")


def _shape(a: Tensor, b: Tensor, ends: Tensor) -> tuple[int, ...]:
    matrix = a.shape[-2], b.shape[-1]
    return (ends.shape[0], *matrix) if a.ndim == b.ndim else matrix


def _grouped_product(a: Tensor, b: Tensor, ends: Tensor, reduction: str, dtype: torch.dtype) -> Tensor:
    """Multiply group after group; rows and columns beyond the last group are zeros."""
    axes = a.ndim, b.ndim
    length = a.shape[0] if axes == (2, 3) else b.shape[-1] if axes == (3, 2) else a.shape[-1]
    result, numbers = a.new_zeros(_shape(a, b, ends), dtype=dtype), ends.tolist()
    if any(end < start for start, end in zip([0, *numbers], [*numbers, length], strict=True)):
        raise ValueError(f"offs: got {numbers}, must ascend from at least 0 to at most {length}")
    whole = reduction_in(reduction)
    for group, (start, end) in enumerate(zip([0, *numbers], numbers, strict=False)):
        part = slice(start, end)
        if axes == (2, 3):
            left, right, place = a[part], b[group], result[part]
        elif axes == (3, 2):
            left, right, place = a[group], b[:, part], result[:, part]
        else:
            left, right, place = a[:, part], b[part], result[group]
        place.copy_(operators.multiply(left, right, None, str(part_of(whole, group)), dtype))
    return result


_library.impl("grouped_product", _grouped_product, "CPU")
_library.impl("grouped_product", _grouped_product, "CUDA")  # it waits once, for where the groups end


@torch.library.register_fake("cbfloat::grouped_product")
def _(a: Tensor, b: Tensor, ends: Tensor, *given: Any) -> Tensor:
    return a.new_empty(_shape(a, b, ends), dtype=given[-1])


grouped = shardable(torch.ops.cbfloat.grouped_product.default)


def _multiply(a: Tensor, b: Tensor, ends: Tensor, *given: Any) -> Tensor:
    if not operators.is_plain(a, b):
        return grouped(a, b, ends, *given)
    with operators.unwatched(a, b):
        return _grouped_product(a, b, ends, *given)


class _GroupedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, ends: Tensor, plan: Plan, dtype: torch.dtype) -> Tensor:
        _keep(ctx, a, b, ends, plan, dtype)
        return _multiply(a, b, ends, str(plan.reduction), dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,), (a, b, ends) = gradients, ctx.saved_tensors
        if gradient is None:
            return (None,) * 5
        of = operators.gradient_of
        for_a, for_b = ctx.needs_input_grad[:2]
        return (
            grouped_product(gradient, b.mT, ends, ctx.plan.branch(1), of(a).dtype) if for_a else None,
            grouped_product(a.mT, gradient, ends, ctx.plan.branch(2), of(b).dtype) if for_b else None,
            None,
            None,
            None,
        )


def _keep(ctx: Any, a: Tensor, b: Tensor, ends: Tensor, plan: Plan, dtype: torch.dtype) -> None:
    ctx.save_for_backward(a, b, ends)
    keep_for_tangents(ctx, a, b, dtype, ends)
    ctx.plan = plan.of_gradients


class _TransformedGroupedProduct(_GroupedProduct):
    """The same inside `torch.func` transformations."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, ends: Tensor, plan: Plan, dtype: torch.dtype) -> Tensor:  # type: ignore[override]
        return _multiply(a, b, ends, str(plan.reduction), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _keep(ctx, *inputs)

    vmap = one_by_one(lambda *given: grouped_product(*given))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        def product(a: Any, b: Any, _: None, plan: Plan, dtype: torch.dtype) -> Tensor:
            return grouped_product(a, b, ctx.saved_tensors[2], plan, dtype)

        return tangent_of_product(product, ctx, (*tangents[:2], None))


def grouped_product(a: Tensor, b: Tensor, ends: Tensor, plan: Plan, dtype: torch.dtype) -> Tensor:
    """Exact products of G groups, differentiable; dtypes and shapes are the caller's care.

    The operands are (rows, K) and (G, K, N), groups of rows; (G, M, K) and (K, columns), groups of columns; or (M, K)
    and (K, N), parts of K. `ends` says where each group ends, ascending; the result has zeros beyond the last one.
    """
    if not is_differentiated(a, b):
        return _multiply(a, b, ends, str(plan.reduction), dtype)
    return (_TransformedGroupedProduct if is_transformed() else _GroupedProduct).apply(a, b, ends, plan, dtype)
