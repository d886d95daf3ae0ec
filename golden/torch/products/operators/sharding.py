"""How DTensor may split the operands of each operator: by rows, columns, items of a batch, channels.

An axis that is summed is never split: the order of a sum is fixed, and partial sums of several processes have other
bits. DTensor itself gathers an operand that is split along it, as in a row-wise parallel layer. The operands of
stochastic operators are always gathered: their random bits go by the number of a result in the whole. Blocks are not
split along their axis, and not at all if all values of a tensor decide one scale.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from golden.torch.settings.blocks import spans_the_tensor
from golden.torch.settings.reductions import is_stochastic

__all__ = ["shardable"]

_DTENSOR = "torch.distributed.tensor"

#: The axes along which the result and each tensor operand are split together; None: not split, whole everywhere.
_Split = tuple[int | None, ...]


def _of_matrices(a: Any, b: Any, initial: Any, *_: Any) -> Iterator[_Split]:
    sizes = [*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]]

    def at(operand: Any, from_end: int) -> int | None:
        has_it = operand is not None and operand.ndim >= from_end and operand.shape[-from_end] > 1
        return operand.ndim - from_end if has_it else None

    for axis, size in enumerate(sizes):
        end = len(sizes) - axis
        if size > 1:
            yield axis, None if end == 1 else at(a, end), None if end == 2 else at(b, end), at(initial, end)


def _of_groups(a: Any, b: Any, *_: Any) -> Iterator[_Split]:
    batched = a.ndim == b.ndim
    if batched or a.ndim == 3:
        yield int(batched), a.ndim - 2, None, None
    if batched or b.ndim == 3:
        yield 1 + batched, None, b.ndim - 1, None


def _of_convolution(x: Any, weight: Any, bias: Any, steps: Any, gaps: Any, sides: Any, groups: int, *_: Any) -> Any:
    yield 0, 0, None, None
    if groups == 1:
        yield 1, None, 0, 0


def _of_transposed(x: Any, weight: Any, bias: Any, size: Any, *windows: Any) -> Iterator[_Split]:
    yield 0, 0, None, None
    if windows[3] == 1:
        yield 1, None, 1, 0


def _of_kernels(gradient: Any, x: Any, size: Any, *windows: Any) -> Iterator[_Split]:
    if windows[3] == 1:
        yield 0, 1, None
        yield 1, None, 1


def _of_values(x: Any, *_: Any) -> Iterator[_Split]:
    yield from ((axis, axis) for axis in range(x.ndim))


def _of_softmax(x: Any, *_: Any) -> Iterator[_Split]:
    yield from ((axis, axis) for axis in range(x.ndim - 1))


def _of_blocks(x: Any, blocks: str, along: int) -> Iterator[_Split]:
    if not spans_the_tensor(blocks):
        yield from ((axis, axis) for axis in range(x.ndim) if axis != along % x.ndim)


_SPLITS: dict[str, Callable[..., Iterator[_Split]]] = {
    "matrix_product": _of_matrices,
    "grouped_product": _of_groups,
    "convolution": _of_convolution,
    "convolution_transposed": _of_transposed,
    "convolution_of_kernels": _of_kernels,
    "rounded": _of_values,
    "rounded_to_blocks": _of_blocks,
    "softmax16": _of_softmax,
}


def shardable(operator: Any) -> Callable[..., torch.Tensor]:
    """Return an operator (one overload) as a function that registers it with DTensor when it first meets one.

    To import DTensor takes seconds, so a process that does not use it does not.
    """
    is_registered = False

    def call(*given: Any) -> Any:
        nonlocal is_registered
        if not torch.compiler.is_compiling() and _DTENSOR in sys.modules:
            from torch.distributed.tensor import DTensor

            if any(isinstance(each, DTensor) for each in given):
                if not is_registered:
                    _register(operator)
                    is_registered = True
                if any(isinstance(each, str) and is_stochastic(each) for each in given):
                    return _whole(operator, given)
        return operator(*given)

    return call


def _whole(operator: Any, given: tuple[Any, ...]) -> Any:
    """Compute on whole operands everywhere; past DTensor, which would keep a rule for each line of random bits."""
    from torch.distributed.tensor import DTensor, Replicate

    mesh = next(each.device_mesh for each in given if isinstance(each, DTensor))
    everywhere = [Replicate()] * mesh.ndim
    whole = (each.redistribute(placements=everywhere) if isinstance(each, DTensor) else each for each in given)
    result = operator(*(each.to_local() if isinstance(each, DTensor) else each for each in whole))
    return DTensor.from_local(result, mesh, everywhere, run_check=False)


def _register(operator: Any) -> None:
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    splits = _SPLITS[operator._schema.name.removeprefix("cbfloat::")]
    types = [str(argument.type) for argument in operator._schema.arguments]
    tensors = sum("Tensor" in each for each in types)

    @register_sharding(operator)
    def _(*given: Any) -> list[tuple[list[Any], list[Any]]]:
        placed = []
        for split in ((None,) * (1 + tensors), *splits(*given)):
            at: list[Any] = [Replicate() if axis is None else Shard(axis) for axis in split]
            operands = [None if each is None else place for each, place in zip(given, at[1:], strict=False)]
            placed.append((at[:1], operands + [None] * (len(given) - tensors)))
        return placed

    # DTensor's cache key has the arguments from the first int on; a window's are lists of ints. Splits of blocks depend
    # on their line, too.
    first = next(number for number, each in enumerate(types) if "int" in each)
    if splits is _of_blocks:
        first = types.index("str")
    DTensor._op_dispatcher.sharding_propagator.op_to_schema_info[operator].static_argnum = first
