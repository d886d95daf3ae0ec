"""The treatment of each PyTorch function in a precision context: exact, in fp32, or refused.

The functions have PyTorch's parameters, names included, since calls of unmodified models arrive here.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from golden.torch.common.pytorch import constant
from golden.torch.guard.operator_kinds import kind_of_operator
from golden.torch.products.functions import attention, contraction, convolution, derived, products, recurrent
from golden.torch.products.functions.gradients import round_to_half
from golden.torch.settings.half import current_half

__all__ = ["ACTIVATIONS", "COMPOSITES", "EXACT", "IN_FP32", "WITHOUT_EXACT_PATH", "exact_of", "is_leaf", "kind_of"]

Function = Callable[..., Any]


def _of_axes(name: str, axes: tuple[int, ...], *tensors: Tensor) -> None:
    given = tuple(tensor.ndim for tensor in tensors)
    if given != axes:
        raise ValueError(f"{name}: got tensors of {given} axes, must be of {axes}")


def _matmul(input: Tensor, other: Tensor) -> Tensor:
    """Multiply, also for ``input @ other``; of a TypeError, Python would say no more than that @ is not supported."""
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        try:
            products.check_tensors(input=input, other=other)
        except TypeError as error:
            raise NotImplementedError(str(error)) from None
    return products.matmul(input, other)


def _reflected_matmul(self: Tensor, other: Tensor) -> Tensor:
    return _matmul(other, self)


def _mm(input: Tensor, mat2: Tensor) -> Tensor:
    _of_axes("mm", (2, 2), input, mat2)
    return products.matmul(input, mat2)


def _bmm(input: Tensor, mat2: Tensor) -> Tensor:
    return products.bmm(input, mat2)


def _mv(input: Tensor, vec: Tensor) -> Tensor:
    _of_axes("mv", (2, 1), input, vec)
    return products.matmul(input, vec)


def _dot(input: Tensor, tensor: Tensor) -> Tensor:
    _of_axes("dot", (1, 1), input, tensor)
    return products.matmul(input, tensor)


def _vdot(input: Tensor, other: Tensor) -> Tensor:
    return _dot(input, other)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return products.linear(input, weight, bias)


def _of_input(function: Function) -> Function:
    """Name the first parameter as PyTorch does."""

    def run(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, **kwargs)

    return run


def _einsum(equation: str, *operands: Any, path: object = None) -> Tensor:
    return contraction.einsum(equation, *operands)  # from left to right, whatever path another package would choose


def _tensordot(a: Tensor, b: Tensor, dims_a: list[int], dims_b: list[int]) -> Tensor:
    x_labels: list[object] = [("a", axis) for axis in range(a.ndim)]
    y_labels: list[object] = [("b", axis) for axis in range(b.ndim)]
    for left, right in zip(dims_a, dims_b, strict=True):
        y_labels[right] = x_labels[left]
    kept = [label for label in (*x_labels, *y_labels) if (label in x_labels) != (label in y_labels)]
    products.check_tensors(a=a, b=b)
    return contraction.contract(a, tuple(x_labels), b, tuple(y_labels), kept)[0]


def _inner(input: Tensor, other: Tensor) -> Tensor:
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return _tensordot(input, other, [input.ndim - 1], [other.ndim - 1])


def _added(input: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Tensor:
    """``beta * input + alpha * (a @ b)``: one reduction from `input` if both are 1, else scaled and added in fp32."""
    if beta == 1 and alpha == 1:
        products.check_tensors(input=input, a=a, b=b)
        return products.product(a, b, input)
    result = products.matmul(a, b).float() * alpha
    half = current_half()
    if beta != 0:
        result = result + round_to_half(input, half, torch.float32) * beta
    return round_to_half(result, half, half.dtype)


def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _of_axes("addmm", (2, 2), mat1, mat2)
    return _added(input, mat1, mat2, beta, alpha)


def _addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _of_axes("addmv", (2, 1), mat, vec)
    column = input.unsqueeze(-1) if input.ndim else input
    return _added(column, mat, vec.unsqueeze(-1), beta, alpha).squeeze(-1)


def _baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _of_axes("baddbmm", (3, 3), batch1, batch2)
    return _added(input, batch1, batch2, beta, alpha)


def _addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _of_axes("addbmm", (3, 3), batch1, batch2)
    # The sum over the batch is part of the reduction: k runs through the batch, then through the row.
    return _added(input, batch1.movedim(0, 1).flatten(1), batch2.flatten(0, 1), beta, alpha)


def _in_place(function: Function) -> Function:
    def run(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.copy_(function(self, *args, **kwargs))

    return run


_OWNERS = (torch, Tensor, F, torch._C._nn, torch.linalg, torch._C._VariableFunctions)


def _functions(name: str) -> Iterator[Function]:
    """Give everything of that name that PyTorch may report: the function, the method, the one written in C++."""
    for owner in _OWNERS:
        function = getattr(owner, name, None)
        if function is not None:
            yield function


_EXACT_BY_NAME: dict[str, Function] = {
    "matmul": _matmul,
    "__matmul__": _matmul,
    "__rmatmul__": _reflected_matmul,
    "mm": _mm,
    "bmm": _bmm,
    "mv": _mv,
    "dot": _dot,
    "vdot": _vdot,
    "inner": _inner,
    "linear": _linear,
    **{name: _of_input(getattr(convolution, name)) for name in convolution.__all__},
    "_convolution": _of_input(convolution.convolution),
    "scaled_dot_product_attention": attention.scaled_dot_product_attention,
    "addmm": _addmm,
    "addmv": _addmv,
    "addbmm": _addbmm,
    "baddbmm": _baddbmm,
    "affine_grid_generator": derived.affine_grid,
    **{f"{name}_": _in_place(globals()[f"_{name}"]) for name in ("addmm", "addmv", "addbmm", "baddbmm")},
    **{name: getattr(derived, name) for name in derived.__all__ if name != "affine_grid"},
    **{name: getattr(recurrent, name) for name in recurrent.__all__},
    "_grouped_mm": derived.grouped_mm,
}

#: Function of PyTorch -> the exact one.
EXACT: dict[Function, Function] = {
    function: exact for name, exact in _EXACT_BY_NAME.items() for function in _functions(name)
}
# Those of torch.functional unpack their arguments first; the functions that they call are replaced.
EXACT[torch._C._VariableFunctions.einsum] = _einsum  # type: ignore[attr-defined]
EXACT[torch._C._VariableFunctions.tensordot] = _tensordot  # type: ignore[attr-defined]


def _grouped_mm_fallback(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    return derived.grouped_mm(input, weight, offs)


#: Operators of other libraries, which are not there before their library is imported.
_EXACT_OPERATORS: dict[str, Function] = {"transformers::grouped_mm_fallback": _grouped_mm_fallback}

_PRODUCTS_WITHOUT_EXACT_PATH = """
    hspmm smm sspaddmm _scaled_mm scaled_mm _native_multi_head_attention _transformer_encoder_layer_fwd cdist
"""

_EXPONENTIALS_SUMS_NORMS_LOSSES = """
    exp exp2 expm1 log log2 log10 log1p pow square reciprocal rsqrt sinh cosh tan acos asin erfinv gelu softplus
    __pow__ __rpow__ __rdiv__ __rtruediv__ softmax log_softmax sum mean prod cumsum cumprod logsumexp logcumsumexp
    std std_mean var var_mean norm vector_norm matrix_norm renorm dist pdist cosine_similarity
    layer_norm rms_norm group_norm batch_norm instance_norm
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss ctc_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss
"""

#: Products that would bypass the exact kernels; a precision context refuses them.
WITHOUT_EXACT_PATH: frozenset[Function] = frozenset(
    function for name in _PRODUCTS_WITHOUT_EXACT_PATH.split() for function in _functions(name)
) | {torch.sparse.mm, torch.sparse.addmm, torch.sparse.sampled_addmm}

#: Functions whose 16-bit arguments are widened to fp32 first.
IN_FP32: frozenset[Function] = frozenset(
    function for name in _EXPONENTIALS_SUMS_NORMS_LOSSES.split() for function in _functions(name)
)


def _open(function: Any, **replaced: Function) -> Function:
    """Return a function of PyTorch's Python code without its own question whether a mode wants it.

    The context runs such a function with itself in force, so that it meets the products inside; with the question, the
    function would come back for ever. `replaced` are other functions that it calls, by name.
    """
    names = {name: _never for name in function.__code__.co_names if name.startswith("has_torch_function")}
    scope = {**function.__globals__, **names, **replaced}
    opened = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    opened.__kwdefaults__ = function.__kwdefaults__
    return opened


def _never(*_: object) -> bool:
    return False


_BACKWARD = (Tensor.backward, torch.autograd.backward, torch.autograd.grad)

#: Function in PyTorch's Python code (multi_head_attention_forward, einsum, ...) -> the same, opened. Backward is among
#: them because checkpointing runs the forward pass again in it. Other methods are not: they call a namesake in C++,
#: which PyTorch reports under the same name again.
COMPOSITES: dict[Function, Function] = {
    function: _open(function)
    for function in (*vars(F).values(), *vars(torch.functional).values(), *_BACKWARD)
    if isinstance(function, types.FunctionType)
    and any(name.startswith("has_torch_function") for name in function.__code__.co_names)
}


def _attention_weights(input: Tensor, dim: int) -> Tensor:
    assert dim == -1
    return attention.weights_of(input)


assert "softmax" in F.multi_head_attention_forward.__code__.co_names
COMPOSITES[F.multi_head_attention_forward] = _open(F.multi_head_attention_forward, softmax=_attention_weights)


def _without_chunks(function: Function) -> Function:
    """Return `linear_cross_entropy` as PyTorch defines it: a linear layer and a loss, in chunks or not."""

    def run(*args: Any, options: object = None, **kwargs: Any) -> Tensor:
        return function(*args, **kwargs)

    return run


if hasattr(F, "linear_cross_entropy"):
    COMPOSITES[F.linear_cross_entropy] = _without_chunks(COMPOSITES[F.linear_cross_entropy])


def _make_grads(*given: Any, **named: Any) -> Any:
    """Make the first gradients of a backward pass, which are ones, while no mode looks."""
    mode = torch._C._pop_torch_function_stack()
    try:
        return torch.autograd._make_grads(*given, **named)
    finally:
        torch._C._push_on_torch_function_stack(mode)


assert "_make_grads" in torch.autograd.backward.__code__.co_names
COMPOSITES[torch.autograd.backward] = _open(torch.autograd.backward, _make_grads=_make_grads)

_PRODUCTS = frozenset({*_EXACT_BY_NAME, *_PRODUCTS_WITHOUT_EXACT_PATH.split(), "einsum", "tensordot"})


def _operator_name(function: Any) -> str | None:
    """Return the name of an operator of PyTorch called directly, as in ``torch.ops.aten.mm``."""
    packet = getattr(function, "overloadpacket", function)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return None
    return packet._qualified_op_name.removeprefix("aten::")


#: Those of the composites that call a single leaf (see `is_leaf`), on the same arguments.
ACTIVATIONS: frozenset[Function] = frozenset(
    {F.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.silu, F.mish, F.hardtanh, F.hardswish, F.hardsigmoid}
)
#: Methods without an operator of their name and kind: they copy, or give views.
_COPIES = frozenset(
    getattr(Tensor, name)
    for name in ("float", "half", "bfloat16", "to", "contiguous", "reshape", "flatten", "chunk", "size")
    if not isinstance(getattr(Tensor, name), types.FunctionType)
)
_leaves: dict[Function, bool] = {}


@constant
def is_leaf(function: Function) -> bool:
    """Return whether a function of PyTorch is no more than one operator that the guard lets pass, in every overload.

    An operator that consists of others is none: the guard judges those.
    """
    known = _leaves.get(function)
    if known is None:
        known = _leaves[function] = function in _COPIES or (kind_of(function) == "plain" and _is_passed(function))
    return known


def _is_passed(function: Function) -> bool:
    packet = getattr(torch.ops.aten, getattr(function, "__name__", ""), None)
    if not isinstance(function, _IN_CPP) or not isinstance(packet, torch._ops.OpOverloadPacket):
        return False
    overloads = [getattr(packet, each) for each in packet.overloads()]
    return all(kind_of_operator(each) == "other" and not _is_composed(each) for each in overloads)


_IN_CPP = (types.BuiltinFunctionType, types.MethodDescriptorType)


def _is_composed(operator: Any) -> bool:
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")
    except RuntimeError:  # of TorchScript alone
        return False


Kind = Literal["exact", "refused", "composite", "in fp32", "plain"]


@constant  # torch.compile would fail to hash some of the functions
def kind_of(function: Function) -> Kind:
    """Return how a precision context treats a function of PyTorch."""
    kind = _kinds.get(function)
    if kind is None:
        kind = _kinds[function] = _kind_of(function)
    return kind


_kinds: dict[Function, Kind] = {}


def _kind_of(function: Function) -> Kind:
    if function in EXACT:
        return "exact"
    name = _operator_name(function)
    if name in _EXACT_OPERATORS:
        return "exact"
    if function in WITHOUT_EXACT_PATH or name in _PRODUCTS:
        return "refused"
    if function in COMPOSITES:
        return "composite"
    return "in fp32" if function in IN_FP32 else "plain"


def exact_of(function: Function) -> Function:
    """Return the exact function for one that `kind_of` calls exact."""
    exact = EXACT.get(function)
    return _EXACT_OPERATORS[str(_operator_name(function))] if exact is None else exact
