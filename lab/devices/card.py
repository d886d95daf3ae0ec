"""Devices of an NVIDIA card of architecture Hopper: its tensor cores, cuBLAS, and the kernels of this project.

Triton, which PyTorch brings for such cards, chooses the instruction by the tile: WGMMA for 64 x 64 results of four
warps, MMA for 16 x 16 results of one. The kernel's PTX must have the instruction that a device is named after.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

import golden.torch as cstorch
from golden import BF16, CBFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FP16, FloatFormat, accumulators, decode, encode
from lab.devices.device import Array, Device

__all__ = ["DEVICES"]

TF32 = FloatFormat("tf32", 8, 10)

_DTYPES = {
    BF16: torch.bfloat16,
    FP16: torch.float16,
    FLOAT8_E4M3FN: torch.float8_e4m3fn,
    FLOAT8_E5M2: torch.float8_e5m2,
    TF32: torch.float32,  # whose last 13 bits are 0
}
# Name in PTX, side of the tile, products in one pass of the loop, and warps.
_INSTRUCTIONS = {"WGMMA": ("wgmma.mma_async.sync", 64, 64, 4), "MMA": (" mma.sync", 16, 32, 1)}
_PROMOTED = 128  # products, as in DeepSeek-V3


@triton.jit
def _product(a, b, out, stages, width, SIDE: tl.constexpr, STEP: tl.constexpr, SUM: tl.constexpr, ADDS: tl.constexpr):
    """Compute a tile of a product of `a`, of shape (M, K), and `b`, of shape (N, K): all whole tiles."""
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), SUM)
    depth = stages * STEP
    for stage in range(stages):
        places = stage * STEP + tl.arange(0, STEP)
        x = tl.load(a + rows[:, None] * depth + places[None, :])
        y = tl.load(b + places[:, None] + columns[None, :] * depth)
        if ADDS:
            total += tl.dot(x, y, input_precision="tf32", out_dtype=SUM)
        else:
            total = tl.dot(x, y, total, input_precision="tf32", out_dtype=SUM)
    tl.store(out + rows[:, None] * width + columns[None, :], total)


def _on_card(codes: Array, operand: FloatFormat, tile: tuple[int, int] = (1, 1)) -> torch.Tensor:
    """Return codes as a matrix of the card, with zeros beside them up to whole tiles."""
    codes = codes << 13 if operand == TF32 else codes
    whole = np.pad(
        np.ascontiguousarray(codes), [(0, -length % by) for length, by in zip(codes.shape, tile, strict=True)]
    )
    return torch.from_numpy(whole.view(f"i{codes.itemsize}")).cuda().view(_DTYPES[operand])


def _codes(result: torch.Tensor) -> Array:
    width = 8 * result.element_size()
    return result.view(getattr(torch, f"int{width}")).cpu().numpy().view(f"u{width // 8}")


def _tensor_core(
    operand: FloatFormat,
    instruction: str,
    a: Array,
    b: Array,
    *,
    half: bool = False,
    adds: bool = False,
) -> Array:
    """Multiply codes with one instruction of the tensor cores, each call starting from the results of the last.

    Parameters
    ----------
    operand : FloatFormat
    instruction : str
        A key of `_INSTRUCTIONS`.
    a, b : numpy.ndarray
        Codes of shape (M, K) and (K, N).
    half : bool
        Whether sums are in float16; otherwise in float32.
    adds : bool
        Whether every 128 products are summed from +0, and these partial sums added in float32.

    Raises
    ------
    RuntimeError
        If Triton has chosen another instruction.
    """
    named, side, step, warps = _INSTRUCTIONS[instruction]
    step = _PROMOTED if adds else step
    x, y = (_on_card(codes, operand, (side, step)) for codes in (a, b.T))
    out = torch.empty(len(x), len(y), device="cuda", dtype=torch.float16 if half else torch.float32)
    grid = (len(x) // side, len(y) // side)
    kind = tl.float16 if half else tl.float32
    made = _product[grid](x, y, out, x.shape[1] // step, len(y), side, step, kind, adds, num_warps=warps)
    if named not in made.asm["ptx"].replace("\t", " "):
        raise RuntimeError(f"instruction: got {instruction}, must be in the PTX that Triton has made, and is not")
    return _codes(out[: a.shape[0], : b.shape[1]].contiguous())


def _cublas(operand: FloatFormat, a: Array, b: Array, *, single: bool = False) -> Array:
    """Multiply by cuBLAS: with results in float32, or all in fp32 without TF32."""
    x, y = _on_card(a, operand), _on_card(b, operand)
    return _codes(torch.mm(x.float(), y.float()) if single else torch.mm(x, y, out_dtype=torch.float32))


def _scaled(fast: bool, a: Array, b: Array) -> Array:
    """Multiply in float8_e4m3fn by `torch._scaled_mm` with scales of 1, into float32."""
    x, y = (_on_card(codes, FLOAT8_E4M3FN, (16, 16)) for codes in (a, b.T))
    one = torch.ones((), device="cuda")
    out = torch._scaled_mm(x, y.t(), one, one, out_dtype=torch.float32, use_fast_accum=fast)
    return _codes(out[: a.shape[0], : b.shape[1]].contiguous())


def _own(operand: FloatFormat, level: int, a: Array, b: Array) -> Array:
    """Multiply codes with the kernels of `golden.torch`."""
    x, y = (torch.from_numpy(decode(each, operand)).cuda() for each in (a, b))
    with cstorch.precision(str(operand), level), torch.no_grad():
        return encode(torch.mm(x, y).float().cpu().numpy(), operand)


_HOPPER, _HOPPER_8 = accumulators["nvidia_hopper"], accumulators["nvidia_hopper_fp8"]
_INTO_HALF = accumulators["nvidia_hopper_into_fp16"]
_HOPPER_TF32 = replace(_HOPPER, operand_bits=19, block=8, join=replace(_HOPPER.join, terms=9))


def _core(operand: FloatFormat, instruction: str, model: Any = None, **how: Any) -> Device:
    return Device(partial(_tensor_core, operand, instruction, **how), operand, True if model else None, model)


DEVICES: dict[str, Device] = {
    **{f"{name}, {operand}": _core(operand, name, _HOPPER) for name in _INSTRUCTIONS for operand in (FP16, BF16)},
    **{f"WGMMA, {operand}": _core(operand, "WGMMA", _HOPPER_8) for operand in (FLOAT8_E4M3FN, FLOAT8_E5M2)},
    "WGMMA, float8_e4m3fn, added every 128": _core(FLOAT8_E4M3FN, "WGMMA", accumulators["deepseek_fp8"], adds=True),
    **{f"{name}, TF32": _core(TF32, name, _HOPPER_TF32) for name in _INSTRUCTIONS},
    **{f"{name}, float16 into float16": _core(FP16, name, _INTO_HALF, half=True) for name in _INSTRUCTIONS},
    "cuBLAS, bfloat16 into float32": Device(partial(_cublas, BF16), BF16, None),
    "cuBLAS, fp32": Device(partial(_cublas, BF16, single=True), BF16, None),
    "cuBLAS, fp8": Device(partial(_scaled, False), FLOAT8_E4M3FN, None),
    "cuBLAS, fp8 with fast accumulation": Device(partial(_scaled, True), FLOAT8_E4M3FN, None),
    **{
        f"golden.torch at level {level}, {operand}": Device(partial(_own, operand, level), operand, True)
        for operand in (CBFLOAT16, FP16, BF16)
        for level in (0, 1, 2)
    },
}
