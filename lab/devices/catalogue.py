"""The devices: netlists of this project, kernels of other libraries, machines by their presets, and faulty ones."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
import torch

import golden
from golden import BF16, CB16, CBFLOAT16, FLOAT8_E4M3FN, FP16, FP32, Accumulator, FloatFormat, Reduction, accumulators
from hdl.cores.fused_step import FusedStep
from hdl.cores.result import result_layout
from hdl.cores.step_formats import StepFormats
from lab.devices.device import Array, Device
from tools.compiled import Compiled, fields

__all__ = ["DEVICES"]


def _modelled(model: Any, operand: FloatFormat) -> Device:
    return Device(partial(golden.matmul, operand=operand, reduction=model), operand, True, model)


def _operand_of(rule: Accumulator) -> FloatFormat:
    if rule.operand_bits == 8:
        return FLOAT8_E4M3FN
    return FP16 if rule.outer == FP16 else BF16


@cache
def _step(operand: FloatFormat, accumulator: FloatFormat) -> Compiled:
    return Compiled(FusedStep(StepFormats((operand,), (accumulator,))))


def _netlist_chain(operand: FloatFormat, accumulator: FloatFormat, a: Array, b: Array) -> Array:
    """Sum with the netlist of the fused step, one product after the other; 16-bit sums then join a total of +0."""
    step = _step(operand, accumulator)
    total = np.zeros((a.shape[0], b.shape[1]), np.uint64)
    for k in range(a.shape[1]):
        made = step(a=a[:, k : k + 1], b=b[k], acc=total)
        total = fields(result_layout(accumulator.width), made["o"])["bits"]
    if accumulator == operand:
        made = step(a=total, b=np.array(operand.one), acc=np.zeros_like(total))
        total = fields(result_layout(accumulator.width), made["o"])["bits"]
    return total.astype(np.uint32 if accumulator == FP32 else np.uint16)


def _without_total(a: Array, b: Array) -> Array:
    """Sum in cb16 alone: 0x8002 * 0x0747 is rounded to -0 and stays so, which a total of +0 would not keep."""
    total = np.zeros((a.shape[0], b.shape[1]), np.uint16)
    for k in range(a.shape[1]):
        total = golden.multiply_accumulate(a[:, k : k + 1], b[k], total, operand=CB16, accumulator=CB16)
    return total


def _chain(fmt: FloatFormat) -> Reduction:
    return Reduction(fmt, None, fmt)


def _torch_product(dtype: torch.dtype, a: Array, b: Array) -> Array:
    x, y = (torch.from_numpy(np.ascontiguousarray(each)).to(dtype) for each in (a, b))
    return torch.mm(x, y).float().numpy()


def _numpy_product(dtype: Any, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return (a.astype(dtype) @ b.astype(dtype)).astype(np.float32)


def _loop(dtype: Any, total: Any, a: Array, b: Array) -> Array:
    """Sum as a loop of scalars of ml_dtypes does: each product is rounded, then each sum."""
    x, y = a.astype(dtype).astype(total), b.astype(dtype).astype(total)
    sums = np.zeros((a.shape[0], b.shape[1]), total)
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            sums = sums + x[:, k : k + 1] * y[k]
    return sums.astype(np.float32)


def _wrong_by_an_ulp(a: Array, b: Array) -> Array:
    """Return the sums of level 0, one in a thousand with its last bit changed, always the same ones."""
    result = golden.matmul(a, b, operand=BF16, level=0)
    mixed = (result * np.uint32(2654435761)) >> np.uint32(16)
    return result ^ (mixed % 1000 == 0).astype(np.uint32)


DEVICES: dict[str, Device] = {
    **{name: _modelled(rule, _operand_of(rule)) for name, rule in accumulators.items()},
    **{
        f"level {level}, {operand}": _modelled(Reduction.for_level(level, operand), operand)
        for level in (0, 1, 2)
        for operand in (CBFLOAT16, CB16, FP16, BF16)
    },
    "netlist of the fused step, cbfloat16 into float32": Device(
        partial(_netlist_chain, CBFLOAT16, FP32), CBFLOAT16, True, _chain(FP32)
    ),
    "netlist of the fused step, cb16": Device(partial(_netlist_chain, CB16, CB16), CB16, True, _chain(CB16)),
    "chain of steps in cb16 without a total": Device(_without_total, CB16, False),
    "NumPy's matmul, float16": Device(partial(_numpy_product, np.float16), FP16, True, values=True),
    "NumPy's matmul, float32": Device(partial(_numpy_product, np.float32), BF16, False, values=True),
    "torch.mm, float32": Device(partial(_torch_product, torch.float32), BF16, False, values=True),
    "torch.mm, bfloat16": Device(partial(_torch_product, torch.bfloat16), BF16, False, values=True),
    "loop of ml_dtypes, bfloat16": Device(
        partial(_loop, ml_dtypes.bfloat16, ml_dtypes.bfloat16), BF16, True, values=True
    ),
    "loop of ml_dtypes, bfloat16 into float32": Device(
        partial(_loop, ml_dtypes.bfloat16, np.float32), BF16, True, values=True
    ),
    "matmul in float64, bfloat16": Device(partial(_numpy_product, np.float64), BF16, False, values=True),
    "level 0, one ulp wrong in a thousand sums": Device(_wrong_by_an_ulp, BF16, False),
}
