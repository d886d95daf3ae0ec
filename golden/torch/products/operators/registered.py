"""The operators that PyTorch sees, beneath the autograd functions: exact products, rounding, softmax in 16 bits.

They are registered, with shapes for the compiler, so that torch.compile keeps them whole; they know no gradients.
"""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd import forward_ad

import golden
from golden.arrays.backends import forced
from golden.reduction import Reduction
from golden.torch.products import windows
from golden.torch.products.operators import direct
from golden.torch.products.operators.blocks import rounded as rounded_to_blocks_of
from golden.torch.products.operators.sharding import shardable
from golden.torch.products.windows import Geometry
from golden.torch.settings.blocks import Blocks
from golden.torch.settings.passes import note_product
from golden.torch.settings.reductions import format_of, reduction_in
from golden.torch.settings.scopes import scopes

__all__ = [
    "convolution",
    "convolution_of_kernels",
    "convolution_transposed",
    "gradient_of",
    "is_plain",
    "matrix_product",
    "multiply",
    "multiply_by_rows",
    "multiply_plainly",
    "note_node",
    "round_values",
    "rounded",
    "rounded_to_blocks",
    "softmax16",
    "unwatched",
    "values_of",
]

Operand = TypeVar("Operand", bound=torch.Tensor | None)

_library = torch.library.Library("cbfloat", "DEF")
_library.define("matrix_product(Tensor a, Tensor b, Tensor? initial, str reduction, ScalarType dtype) -> Tensor")
_windows = "int[] steps, int[] gaps, int[] sides, int groups, str reduction, ScalarType dtype"
_library.define(f"convolution(Tensor x, Tensor weight, Tensor? bias, {_windows}) -> Tensor")
_library.define(f"convolution_transposed(Tensor x, Tensor weight, Tensor? bias, SymInt[] size, {_windows}) -> Tensor")
_library.define(f"convolution_of_kernels(Tensor gradient, Tensor x, SymInt[] size, {_windows}) -> Tensor")
_library.define("rounded(Tensor x, str half, ScalarType dtype) -> Tensor")
_library.define("rounded_to_blocks(Tensor x, str blocks, int axis) -> Tensor")
_library.define("softmax16(Tensor x, str half, ScalarType dtype) -> Tensor")


def values_of(tensor: torch.Tensor) -> NDArray[np.float32]:
    """Return the values as float32, without a copy where they are float32 already, whatever the strides."""
    if "torch.distributed.fsdp" in sys.modules and tensor.is_cpu:
        # FSDP frees the memory of a gathered weight after its use; numpy() would forbid that for ever.
        return cast("NDArray[np.float32]", np.from_dlpack(tensor.detach().to(torch.float32).resolve_neg()))
    return tensor.to(torch.float32).numpy(force=True)


def _tensor(values: NDArray[np.float32], dtype: torch.dtype) -> torch.Tensor:
    values = np.asarray(values)
    if dtype == torch.float32:
        return torch.from_numpy(values)
    # PyTorch's own cast to bfloat16 turns the canonical NaN into 0xFFFF.
    codes = golden.encode(values, "float16" if dtype == torch.float16 else "bfloat16")
    return torch.from_numpy(np.asarray(codes).view(np.int16)).view(dtype)


def _on_a_card(name: str, first: torch.Tensor, *given: Any) -> torch.Tensor | None:
    """Compute on a CUDA device; None for tensors on the CPU, without a kernel there, and if a back end is forced."""
    if not first.is_cuda or forced() is not None:
        return None
    if any(isinstance(each, Reduction) and each.flushes for each in given):
        raise NotImplementedError(
            "subnormals: got 'flush' for tensors on a card, whose kernels keep subnormals; "
            "within golden.backend('numpy') products of such tensors run on the CPU"
        )
    from golden.torch.products import gpu  # not before there is a card to use it

    done: torch.Tensor | None = getattr(gpu, name)(first, *given)
    return done


def _matrix_product(
    a: torch.Tensor,
    b: torch.Tensor,
    initial: torch.Tensor | None,
    reduction: str,
    dtype: torch.dtype,
) -> torch.Tensor:
    note_product(reduction)
    if a.is_cuda:
        done = _on_a_card("matrix_product", a, b, initial, reduction_in(reduction), dtype)
    else:
        done = direct.matrix_product(a, b, initial, reduction, dtype)
    if done is None:
        done = _tensor(_product_of_values(a, b, initial, reduction), dtype).to(a.device)
    if scopes.observer is not None:
        scopes.observer.matrix_product(a, b, initial, reduction_in(reduction), done)
    return done


def _product_of_values(
    a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, reduction: str
) -> NDArray[np.float32]:
    whole = reduction_in(reduction)
    # The bias is a 16-bit tensor, as every input of a product; the total starts from it.
    start = None if initial is None else golden.quantize(values_of(initial), whole.result)
    return golden.matmul_values(values_of(a), values_of(b), reduction=whole, initial=start)


_Ints = list[int]


def _settings(steps: _Ints, gaps: _Ints, sides: _Ints, groups: int, reduction: str) -> tuple[Geometry, Reduction]:
    note_product(reduction)
    return Geometry(tuple(steps), tuple(gaps), tuple(sides), groups), reduction_in(reduction)


def _convolution(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *given: Any) -> torch.Tensor:
    settings, dtype = _settings(*given[:-1]), given[-1]
    done = _on_a_card("convolution", x, weight, bias, *settings, dtype)
    if done is None:
        start = None if bias is None else values_of(bias)
        done = _tensor(windows.convolution(values_of(x), values_of(weight), start, *settings), dtype).to(x.device)
    if scopes.observer is not None:
        scopes.observer.convolution(x, weight, bias, settings, done)
    return done


def _convolution_transposed(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, size: _Ints, *given: Any
) -> torch.Tensor:
    settings, dtype = _settings(*given[:-1]), given[-1]
    done = _on_a_card("transposed", x, weight, bias, tuple(size), *settings, dtype)
    if done is None:
        start = None if bias is None else values_of(bias)
        values = windows.transposed(values_of(x), values_of(weight), start, tuple(size), *settings)
        done = _tensor(values, dtype).to(x.device)
    if scopes.observer is not None:
        scopes.observer.transposed(x, weight, settings, done)
    return done


def _convolution_of_kernels(gradient: torch.Tensor, x: torch.Tensor, size: _Ints, *given: Any) -> torch.Tensor:
    settings, dtype = _settings(*given[:-1]), given[-1]
    done = _on_a_card("kernel_product", gradient, x, tuple(size), *settings, dtype)
    if done is None:
        values = windows.kernel_product(values_of(gradient), values_of(x), tuple(size), *settings)
        done = _tensor(values, dtype).to(x.device)
    if scopes.observer is not None:
        scopes.observer.kernel_product(gradient, x, tuple(size), settings, done)
    return done


def _rounded(x: torch.Tensor, half: str, dtype: torch.dtype) -> torch.Tensor:
    done = None if x.is_cuda else direct.rounded(x, half, dtype)
    if done is not None:
        return done
    fmt = format_of(half)
    done = _on_a_card("rounded", x, Reduction(out=fmt), dtype)
    return _tensor(golden.quantize(values_of(x), fmt), dtype) if done is None else done


def _rounded_to_blocks(x: torch.Tensor, blocks: str, axis: int) -> torch.Tensor:
    """Return the values of blocks with scales, along an axis that zeros fill up to whole blocks."""
    if x.numel() == 0:
        return torch.empty_like(x)
    given, done = Blocks.parse(blocks), None
    if given.is_usual:
        done = _on_a_card("rounded_to_blocks", x.movedim(axis, -1), given.element, given.block)
    if done is None:
        done = _tensor(rounded_to_blocks_of(values_of(x), given, axis), x.dtype).to(x.device)
    return done.movedim(-1, axis)


def _softmax16(x: torch.Tensor, half: str, dtype: torch.dtype) -> torch.Tensor:
    if x.numel() == 0:
        return x.new_empty(x.shape, dtype=dtype)
    fmt = format_of(half)
    done = _on_a_card("softmax16", x, fmt, dtype)
    if done is not None:
        return done
    return _tensor(golden.decode(golden.softmax(golden.encode(values_of(x), fmt), fmt), fmt), dtype)


for _key in ("CPU", "CUDA"):
    _library.impl("matrix_product", _matrix_product, _key)
    _library.impl("convolution", _convolution, _key)
    _library.impl("convolution_transposed", _convolution_transposed, _key)
    _library.impl("convolution_of_kernels", _convolution_of_kernels, _key)
    _library.impl("rounded", _rounded, _key)
    _library.impl("rounded_to_blocks", _rounded_to_blocks, _key)
    _library.impl("softmax16", _softmax16, _key)


@torch.library.register_fake("cbfloat::matrix_product")
def _(a: torch.Tensor, b: torch.Tensor, *given: Any) -> torch.Tensor:
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]), dtype=given[-1])


@torch.library.register_fake("cbfloat::convolution")
def _(x: torch.Tensor, weight: torch.Tensor, bias: Any, *given: Any) -> torch.Tensor:
    geometry = Geometry(tuple(given[0]), tuple(given[1]), tuple(given[2]), 1)
    counts = geometry.positions(tuple(x.shape[2:]), tuple(weight.shape[2:]))
    return x.new_empty((x.shape[0], weight.shape[0], *counts), dtype=given[-1])


@torch.library.register_fake("cbfloat::convolution_transposed")
def _(x: torch.Tensor, weight: torch.Tensor, bias: Any, size: Any, *given: Any) -> torch.Tensor:
    return x.new_empty((x.shape[0], weight.shape[1] * given[3], *size), dtype=given[-1])


@torch.library.register_fake("cbfloat::convolution_of_kernels")
def _(gradient: torch.Tensor, x: torch.Tensor, size: Any, *given: Any) -> torch.Tensor:
    return x.new_empty((gradient.shape[1], x.shape[1] // given[3], *size), dtype=given[-1])


@torch.library.register_fake("cbfloat::rounded")
@torch.library.register_fake("cbfloat::softmax16")
def _(x: torch.Tensor, half: str, dtype: torch.dtype) -> torch.Tensor:
    return x.new_empty(x.shape, dtype=dtype)


@torch.library.register_fake("cbfloat::rounded_to_blocks")
def _(x: torch.Tensor, blocks: str, axis: int) -> torch.Tensor:
    moved = x.movedim(axis, -1)
    return moved.new_empty(moved.shape).movedim(-1, axis)


_ours = torch.ops.cbfloat
convolution = shardable(_ours.convolution.default)
convolution_transposed = shardable(_ours.convolution_transposed.default)
convolution_of_kernels = shardable(_ours.convolution_of_kernels.default)
matrix_product = shardable(_ours.matrix_product.default)
rounded = shardable(_ours.rounded.default)
rounded_to_blocks = shardable(_ours.rounded_to_blocks.default)
softmax16 = shardable(_ours.softmax16.default)


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_WATCHED = contextlib.nullcontext()


class _Unwatched:
    """Neither the guard nor the interception looks: what runs within is this package's own."""

    def __enter__(self) -> None:
        self._both = torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction()
        for each in self._both:
            each.__enter__()

    def __exit__(self, *exception: Any) -> None:
        for each in reversed(self._both):
            each.__exit__(*exception)


_len_of_dispatch, _transformation = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack
_tracing_state = torch._C._get_tracing_state
#: A batch of gradients, as torch.autograd.grad(is_grads_batched=True) has them, is a tensor without memory.
_is_batched = torch._C._functorch.is_legacy_batchedtensor


def is_plain(*tensors: torch.Tensor | None) -> bool:
    """Tell whether only the guard of products sees operators on these tensors of the CPU."""
    if (
        torch.compiler.is_compiling()
        or _len_of_dispatch() > (scopes.watchers > 0)
        or scopes.recorder is not None
        or _transformation() is not None
        or _tracing_state() is not None
        or forward_ad._current_level >= 0
    ):
        return False
    for each in tensors:  # in a loop, which is sooner done than all()
        if each is not None and (type(each) not in _PLAIN or not each.is_cpu or _is_batched(each)):
            return False
    return True


def unwatched(*tensors: torch.Tensor | None) -> AbstractContextManager[object]:
    """Return a context in which nobody looks at every view that an exact product takes of its operands."""
    return _Unwatched() if is_plain(*tensors) else _WATCHED


def gradient_of(operand: Operand) -> Operand:
    """Return an operand whose gradient is computed next, None for a parameter; `golden.torch.observe` wants to know."""
    if not torch.compiler.is_compiling() and scopes.observer is not None:
        scopes.observer.note_gradient_of(operand)
    return operand


def note_node() -> None:
    """Say where a node of the graph is made that multiplies in its backward pass alone, from within its `forward`."""
    if not torch.compiler.is_compiling() and scopes.observer is not None:
        scopes.observer.note_node()


def multiply(a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, *given: Any) -> torch.Tensor:
    """Multiply; operands that are not plain go through PyTorch's dispatcher."""
    if is_plain(a, b, initial):
        return multiply_plainly(a, b, initial, *given)
    return matrix_product(a, b, initial, *given)


#: The same for operands that `is_plain` has passed.
multiply_plainly = _matrix_product


def multiply_by_rows(
    x: torch.Tensor,
    weight: torch.Tensor,
    initial: torch.Tensor | None,
    reduction: str,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Multiply such operands, of which nobody observes the product, by the rows of a weight (N, K)."""
    note_product(reduction)
    done = direct.matrix_product(x, weight, initial, reduction, dtype, by_rows=True)
    return _tensor(_product_of_values(x, weight.mT, initial, reduction), dtype) if done is None else done


def round_values(x: torch.Tensor, half: str, dtype: torch.dtype) -> torch.Tensor:
    """Call the operator likewise."""
    return _rounded(x, half, dtype) if is_plain(x) else rounded(x, half, dtype)
