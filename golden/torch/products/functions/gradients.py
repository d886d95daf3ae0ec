"""Autograd functions over the operators: the gradient of an exact product is two exact products at the backward level.

Defined here: how a gradient is summed where one operand meets many.

- A two-dimensional operand beside a batched one is shared by all matrices of the batch (the weight of a linear layer,
  the kernel of a convolution). Its gradient is one reduction over everything, batch by batch, in their order.
- Where the batch axes of an operand were broadcast, the gradient of each copy is one product. These gradients are
  summed in fp32, in their order, and rounded once: a product by ones at level 0. The gradient of an initial value (a
  bias) is such a sum of the result's gradient, too.

Forward-mode derivatives: the tangent of a product is two products at the backward level, each with one operand's
tangent, the first from the tangent of the initial value. They are added in fp32 and rounded once.

The functions set up their contexts in `forward`: PyTorch binds the arguments of a `setup_context` anew in every call,
which takes longer than a small product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from golden.torch.common.pytorch import constant
from golden.torch.products.operators import registered as operators
from golden.torch.settings.half_type import HalfType
from golden.torch.settings.plan import Plan
from golden.torch.settings.scopes import scopes

__all__ = [
    "exact_product",
    "has_derivatives",
    "is_differentiated",
    "is_transformed",
    "keep_for_tangents",
    "one_by_one",
    "plain_linear",
    "plain_product",
    "round_to_half",
    "softmax_in_half",
    "summed",
    "tangent_of_product",
    "without_tangents",
]


class _MatrixProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, plan: Plan, dtype: torch.dtype
    ) -> torch.Tensor:
        _keep_operands(ctx, a, b, initial, plan, dtype)
        return operators.multiply_plainly(a, b, initial, str(plan.reduction), dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,) = gradients
        if gradient is None:
            return (None,) * 5
        if not torch.compiler.is_compiling():
            ctx.has_run = True  # `golden.torch.guard.provenance` asks
        a, b = ctx.saved_tensors
        for_a, for_b, for_initial = ctx.needs_input_grad[:3]
        (shape, dtype), of = ctx.initial, operators.gradient_of
        with operators.unwatched(a, b, gradient):
            grad_a = _gradient_of_left(of(a), b, gradient, ctx.plan.branch(1)) if for_a else None
            grad_b = _gradient_of_right(a, of(b), gradient, ctx.plan.branch(2)) if for_b else None
            of(None)  # the bias
            grad_initial = summed(gradient, shape, dtype, ctx.plan.branch(3)) if for_initial else None
        return grad_a, grad_b, grad_initial, None, None


def _keep_operands(
    ctx: Any, a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, plan: Plan, dtype: torch.dtype
) -> None:
    ctx.save_for_backward(a, b)
    keep_for_tangents(ctx, a, b, dtype)
    ctx.initial = (None, None) if initial is None else (initial.shape, initial.dtype)
    ctx.plan = plan.of_gradients


class _WatchedProduct(_MatrixProduct):
    """The same through the registered operator, for operands that are not plain."""

    @staticmethod
    def forward(
        ctx: Any, a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, plan: Plan, dtype: torch.dtype
    ) -> torch.Tensor:
        _keep_operands(ctx, a, b, initial, plan, dtype)
        return operators.multiply(a, b, initial, str(plan.reduction), dtype)


class _Linear(torch.autograd.Function):
    """The product of rows by the rows of a weight, without a node for the transposition."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, plan: Plan, dtype: torch.dtype
    ) -> torch.Tensor:
        _keep_operands(ctx, x, weight, bias, plan, dtype)
        return operators.multiply_by_rows(x, weight, bias, str(plan.reduction), dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,), (x, weight), plan = gradients, ctx.saved_tensors, ctx.plan
        if not torch.compiler.is_compiling():
            ctx.has_run = True
        for_x, for_weight, for_bias = ctx.needs_input_grad[:3]
        grad_x = grad_weight = grad_bias = None
        # Asked about its tensors, too, the mode would be of a backward pass that is called within a precision.
        with torch._C.DisableTorchFunction(), operators.unwatched(x, weight, gradient):
            if for_x:
                grad_x = exact_product(gradient, weight, None, plan.branch(1), x.dtype)
            if for_weight:
                rows, columns = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
                if plan.reduction.random is not None:  # by the place of a result in this product
                    grad_weight = exact_product(rows.mT, columns, None, plan.branch(2), weight.dtype).mT
                else:
                    grad_weight = exact_product(columns.mT, rows, None, plan, weight.dtype)
            if for_bias:
                shape, dtype = ctx.initial
                grad_bias = summed(gradient, shape, dtype, plan.branch(3))
        return grad_x, grad_weight, grad_bias, None, None


class _TransformedProduct(_MatrixProduct):
    """The same inside `torch.func` transformations."""

    @staticmethod
    def forward(  # type: ignore[override]
        a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, plan: Plan, dtype: torch.dtype
    ) -> torch.Tensor:
        return operators.multiply(a, b, initial, str(plan.reduction), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _keep_operands(ctx, *inputs)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[torch.Tensor, int]:
        operands = list(zip(given[:3], in_dims[:3], strict=True))
        axes = max(each.ndim - (dim is not None) for each, dim in operands if each is not None)
        batched = []
        for each, dim in operands:
            if dim is not None:
                each = each.movedim(dim, 0)
                each = each.reshape(len(each), *(1 for _ in range(axes + 1 - each.ndim)), *each.shape[1:])
            batched.append(each)
        if in_dims[0] is None and in_dims[1] is None:  # only the initial value differs
            batched[0] = batched[0].expand(
                info.batch_size, *(1 for _ in range(axes - batched[0].ndim)), *batched[0].shape
            )
        return exact_product(*batched, *given[3:]), 0

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tangent_of_product(exact_product, ctx, tangents)


def keep_for_tangents(ctx: Any, a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype, *others: torch.Tensor) -> None:
    """Keep the operands of a product, and the dtype of its result, where forward-mode derivatives are computed."""
    if forward_ad._current_level >= 0:
        ctx.save_for_forward(a, b, *others)
        ctx.set_materialize_grads(False)  # None for an operand without a tangent, and not zeros
        ctx.result_dtype = dtype


def tangent_of_product(
    product: Callable[..., torch.Tensor], ctx: Any, tangents: tuple[torch.Tensor | None, ...]
) -> torch.Tensor:
    """Return the tangent of ``product(a, b, initial, plan, dtype)``, given the tangents of `a`, `b` and `initial`."""
    (a, b), (of_a, of_b, of_initial), dtype = ctx.saved_tensors[:2], tangents[:3], ctx.result_dtype
    if of_a is None and of_b is None:
        return product(torch.zeros_like(a), torch.zeros_like(b), of_initial, ctx.plan, dtype)
    if of_a is None:
        return product(a, of_b, of_initial, ctx.plan.branch(2), dtype)
    first = product(of_a, b, of_initial, ctx.plan.branch(1), dtype)
    if of_b is None:
        return first
    second = product(a, of_b, None, ctx.plan.branch(2), dtype)
    return round_to_half(first.float() + second.float(), ctx.plan.half, dtype)


def without_tangents(ctx: Any, *tangents: Any) -> Any:
    """Refuse forward-mode derivatives; the `jvp` of functions that have none."""
    raise NotImplementedError(
        "forward-mode derivatives: got one of a recurrent layer with weights to train, or of mx.fake_quantize, must be "
        "of other products; torch.func.jacrev, grad and backward() compute these, in reverse mode"
    )


# Without the search for wrappers that an ended transformation left behind: it takes as long as a small product.
_apply_plainly = super(torch.autograd.Function, _MatrixProduct).apply
_apply_linear = super(torch.autograd.Function, _Linear).apply


def _gradient_of_left(a: torch.Tensor, b: torch.Tensor, gradient: torch.Tensor, plan: Plan) -> torch.Tensor:
    if a.ndim == 2 and gradient.ndim > 2:
        columns = math.prod(gradient.shape[:-2]) * gradient.shape[-1]
        wide = gradient.movedim(-2, 0).reshape(a.shape[0], columns)
        tall = b.mT.expand(*gradient.shape[:-2], *b.mT.shape[-2:]).reshape(columns, a.shape[1])
        return exact_product(wide, tall, None, plan, a.dtype)
    return summed(exact_product(gradient, b.mT, None, plan, a.dtype), a.shape, a.dtype, plan)


def _gradient_of_right(a: torch.Tensor, b: torch.Tensor, gradient: torch.Tensor, plan: Plan) -> torch.Tensor:
    if b.ndim == 2 and gradient.ndim > 2:
        rows = math.prod(gradient.shape[:-1])
        tall = a.reshape(rows, a.shape[-1])
        return exact_product(tall.mT, gradient.reshape(rows, b.shape[1]), None, plan, b.dtype)
    return summed(exact_product(a.mT, gradient, None, plan, b.dtype), b.shape, b.dtype, plan)


def summed(gradient: torch.Tensor, shape: torch.Size, dtype: torch.dtype, plan: Plan) -> torch.Tensor:
    """Sum over the axes that were broadcast from `shape`; nothing where there are none."""
    plan = plan.branch(4)
    if gradient.ndim == 2 and gradient.shape[1:] == shape:
        ones = gradient.new_ones(1, gradient.shape[0])
        return exact_product(ones, gradient, None, plan.of_sums, dtype).squeeze(0)
    new = gradient.ndim - len(shape)
    grown = [new + axis for axis, length in enumerate(shape) if length == 1 != gradient.shape[new + axis]]
    axes = [*range(new), *grown]
    if not axes:
        return gradient if gradient.dtype == dtype else round_to_half(gradient, plan.half, dtype)
    rest = [axis for axis in range(gradient.ndim) if axis not in axes]
    count = math.prod([gradient.shape[axis] for axis in axes])
    terms = gradient.permute(*axes, *rest).reshape(count, shape.numel())
    return exact_product(terms.new_ones(1, count), terms, None, plan.of_sums, dtype).reshape(shape)


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, half: HalfType, dtype: torch.dtype) -> torch.Tensor:
        ctx.half, ctx.dtype, ctx.result_dtype = half.of_gradients, x.dtype, dtype
        return operators.round_values(x, half.text, dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return round_to_half(gradients[0], ctx.half, ctx.dtype), None, None


class _TransformedRounding(_Rounded):
    @staticmethod
    def forward(x: torch.Tensor, half: HalfType, dtype: torch.dtype) -> torch.Tensor:  # type: ignore[override]
        return operators.rounded(x, half.text, dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.half, ctx.dtype, ctx.result_dtype = inputs[1].of_gradients, inputs[0].dtype, inputs[2]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[torch.Tensor, int]:
        return round_to_half(*given), in_dims[0]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return round_to_half(tangents[0], ctx.half, ctx.result_dtype)


_round_plainly = super(torch.autograd.Function, _Rounded).apply


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, half: HalfType) -> torch.Tensor:
        output = operators.softmax16(x, half.text, half.dtype)
        ctx.half, ctx.dtype = half.of_gradients, x.dtype
        _keep_softmax(ctx, output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _of_softmax(ctx, gradients[0], ctx.dtype), None


def _keep_softmax(ctx: Any, output: torch.Tensor) -> None:
    ctx.save_for_backward(output)
    if forward_ad._current_level >= 0:
        ctx.save_for_forward(output)


def _of_softmax(ctx: Any, derivative: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    p, given = ctx.saved_tensors[0].float(), derivative.float()
    return round_to_half(p * (given - (given * p).sum(-1, keepdim=True)), ctx.half, dtype)


class _TransformedSoftmax(_Softmax):
    @staticmethod
    def forward(x: torch.Tensor, half: HalfType) -> torch.Tensor:  # type: ignore[override]
        return operators.softmax16(x, half.text, half.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.half, ctx.dtype = inputs[1].of_gradients, inputs[0].dtype
        _keep_softmax(ctx, output)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[torch.Tensor, int]:
        return softmax_in_half(given[0].movedim(in_dims[0], 0), given[1]), 0

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:  # its matrix of derivatives is symmetric
        return _of_softmax(ctx, tangents[0], ctx.saved_tensors[0].dtype)


def exact_product(
    a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, plan: Plan, dtype: torch.dtype
) -> torch.Tensor:
    """Product ``(..., M, K) @ (..., K, N)`` by the contract, differentiable; the shapes are the caller's care.

    Operands and initial values, which broadcast to the result, are rounded to the half format as they come; `dtype`
    carries the result, which holds values of the half format.
    """
    if operators.is_plain(a, b, initial):
        return plain_product(a, b, initial, plan, dtype)
    # Without gradients, also in a backward pass, unless second derivatives are wanted.
    if not is_differentiated(a, b, initial):
        return operators.multiply(a, b, initial, str(plan.reduction), dtype)
    return (_TransformedProduct if is_transformed() else _WatchedProduct).apply(a, b, initial, plan, dtype)


def plain_product(
    a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, plan: Plan, dtype: torch.dtype
) -> torch.Tensor:
    """`exact_product` of operands that `is_plain` has passed."""
    if _is_differentiated_plainly(a, b, initial):
        return _apply_plainly(a, b, initial, plan, dtype)
    return operators.multiply_plainly(a, b, initial, str(plan.reduction), dtype)


def plain_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, plan: Plan, dtype: torch.dtype
) -> torch.Tensor:
    """Product of (..., K) by a weight (N, K), which `is_plain` has passed; x has two axes at least."""
    if scopes.observer is None and _is_differentiated_plainly(x, weight, bias):
        return _apply_linear(x, weight, bias, plan, dtype)
    return plain_product(x, weight.mT, bias, plan, dtype)


def _is_differentiated_plainly(a: torch.Tensor, b: torch.Tensor | None, initial: torch.Tensor | None) -> bool:
    """`is_differentiated` for such operands."""
    return torch.is_grad_enabled() and (
        a.requires_grad or (b is not None and b.requires_grad) or (initial is not None and initial.requires_grad)
    )


def is_differentiated(*operands: torch.Tensor | None) -> bool:
    """Tell whether someone may ask for a derivative: backward, forward, or by a transformation."""
    return has_derivatives() and (
        any(each is not None and each.requires_grad for each in operands)
        or torch.compiler.is_compiling()
        or forward_ad._current_level >= 0
        or is_transformed()
    )


def has_derivatives() -> bool:
    """Tell whether derivatives are computed here; forward-mode ones without gradients, too."""
    return torch.is_grad_enabled() or forward_ad._current_level >= 0


def is_transformed() -> bool:
    """Tell whether a transformation of `torch.func` or forward mode is active, which requires more of a function.

    The compiler traces no autograd function that has a `jvp`, so that only those for transformations have one.

    Raises
    ------
    NotImplementedError
        In code that torch.compile makes: it would lose the derivative without a word.
    """
    if not torch.compiler.is_compiling():
        return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
    _refuse_in_transformation()
    return False


@constant  # called by the compiler while it traces, so that the error ends the compilation
def _refuse_in_transformation() -> None:
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise NotImplementedError(
            "torch.func: got an exact product within a transformation in code that torch.compile makes, which would "
            "lose its derivative; put torch.compiler.disable around the function that makes the transformation"
        )


def one_by_one(function: Callable[..., torch.Tensor]) -> Any:
    """Return the rule of `torch.vmap` that runs a function for every item of the batch."""

    def run(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[torch.Tensor, int]:
        pairs = list(zip(given, in_dims, strict=True))
        results = [
            function(*(each.select(dim, item) if isinstance(dim, int) else each for each, dim in pairs))
            for item in range(info.batch_size)
        ]
        return torch.stack(results), 0

    return staticmethod(run)


def round_to_half(x: torch.Tensor, half: HalfType, dtype: torch.dtype) -> torch.Tensor:
    """Round to the half format once, into a tensor of `dtype`; the gradient is rounded on its way back likewise."""
    if operators.is_plain(x):
        if not _is_differentiated_plainly(x, None, None):
            return operators.round_values(x, half.text, dtype)
        return _round_plainly(x, half, dtype)
    return (_TransformedRounding if is_transformed() else _Rounded).apply(x, half, dtype)


def softmax_in_half(x: torch.Tensor, half: HalfType) -> torch.Tensor:
    """Softmax over the last axis in 16 bits (NUMERICS section 6); its gradient in fp32, rounded once."""
    return (_TransformedSoftmax if is_transformed() else _Softmax).apply(x, half)
