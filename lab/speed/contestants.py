"""The matrix products of golden, of PyTorch, and of libraries that emulate narrow formats."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import apytypes
import gfloat
import gfloat.formats
import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Reduction
from golden.formats import HALF_FORMATS

__all__ = ["Contestant", "chain", "contestants", "sgemm"]

Float32 = NDArray[np.float32]
#: Converts the operands into the library's type, and returns a call that computes their product.
Prepare = Callable[[Float32, Float32], Callable[[], Any]]

FP32_CHAIN = Reduction(FP32, None, FP32)
_TORCH_DTYPES = {BF16: torch.bfloat16, FP16: torch.float16}


@dataclass(frozen=True)
class Contestant:
    """One way to compute a matrix product.

    Parameters
    ----------
    name, distribution : str
        The called function, and its package on PyPI; a loop over NumPy arrays has the package of its type.
    operand : FloatFormat
    reduction : Reduction
        The sum that it is meant to compute, and by which it is judged.
    prepare : callable
        Takes float32 arrays of shapes (M, K) and (K, N) that hold values of the operand format.
    values : callable
        Makes a float32 array of shape (M, N) of the result.
    out : FloatFormat, optional
        Format of the results; by default the outer format of the reduction.
    threads : int
    """

    name: str
    distribution: str
    operand: FloatFormat
    reduction: Reduction
    prepare: Prepare
    values: Callable[[Any], Float32] = np.asarray
    out: FloatFormat | None = None
    threads: int = 1

    @property
    def version(self) -> str:
        """The version of the package."""
        return importlib.metadata.version(self.distribution)


def chain(fmt: FloatFormat) -> Reduction:
    """Return the reduction that has one rounding to `fmt` after every product, and no chunks."""
    return Reduction(fmt, None, fmt)


def sgemm(a: Float32, b: Float32) -> Callable[[], torch.Tensor]:
    """Prepare the product to whose speed all others are compared: fp32 in PyTorch."""
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    return lambda: torch.mm(x, y)


def contestants(threads: int) -> Iterator[Contestant]:
    """Yield all contestants that are installed; golden with one thread, and with `threads` if that is more."""
    yield Contestant("torch.mm, fp32", "torch", CBFLOAT16, FP32_CHAIN, sgemm)
    for count in sorted({1, threads}):
        for fmt in HALF_FORMATS:
            for level in golden.LEVELS[1 if fmt != HALF_FORMATS[0] else 0 :]:
                yield _golden(fmt, level, count)
    for fmt, dtype in _TORCH_DTYPES.items():
        yield _torch_half(fmt, dtype)
    for fmt in HALF_FORMATS:
        yield _apytypes(fmt)
        yield _gfloat_loop(fmt)
        yield from _casts(fmt)
    yield _numpy_loop(BF16, "ml_dtypes", ml_dtypes.bfloat16)
    yield _numpy_loop(FP16, "numpy", np.float16)


def _golden(fmt: FloatFormat, level: int, threads: int) -> Contestant:
    def prepare(a: Float32, b: Float32) -> Callable[[], Float32]:
        return lambda: golden.matmul_values(a, b, operand=fmt, level=level)

    name = f"golden, level {level}" + (f", {threads} threads" if threads > 1 else "")
    return Contestant(name, "cbfloat", fmt, Reduction.for_level(level, fmt), prepare, threads=threads)


def _torch_half(fmt: FloatFormat, dtype: torch.dtype) -> Contestant:
    def prepare(a: Float32, b: Float32) -> Callable[[], torch.Tensor]:
        x, y = torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype)
        return lambda: torch.mm(x, y)

    # It accumulates in fp32 and rounds the sum once.
    return Contestant(
        f"torch.mm, {fmt}", "torch", fmt, FP32_CHAIN, prepare, lambda product: product.float().numpy(), out=fmt
    )


def _apytypes(fmt: FloatFormat) -> Contestant:
    widths = {"exp_bits": fmt.exponent_bits, "man_bits": fmt.fraction_bits}

    def prepare(a: Float32, b: Float32) -> Callable[[], Any]:
        x, y = (apytypes.APyFloatArray.from_float(values, *widths.values()) for values in (a, b))

        def product() -> Any:
            with apytypes.APyFloatAccumulatorContext(**widths, quantization=apytypes.QuantizationMode.TIES_EVEN):
                return x @ y

        return product

    return Contestant(
        "APyTypes, accumulator context", "apytypes", fmt, chain(fmt), prepare,
        lambda product: product.to_numpy().astype(np.float32),
    )  # fmt: skip


def _loop(
    name: str, distribution: str, fmt: FloatFormat, dtype: Any, rounded: Callable[[Any], Any] = lambda total: total
) -> Contestant:
    """Return a loop over k that adds outer products in a type of NumPy, and rounds the totals after each step."""

    def prepare(a: Float32, b: Float32) -> Callable[[], Any]:
        x, y = a.astype(dtype), b.astype(dtype)

        def product() -> Any:
            total = np.zeros((x.shape[0], y.shape[1]), dtype)
            for k in range(x.shape[1]):
                total = rounded(x[:, k, None] * y[None, k] + total)
            return total

        return product

    return Contestant(name, distribution, fmt, chain(fmt), prepare, lambda total: total.astype(np.float32))


def _gfloat_loop(fmt: FloatFormat) -> Contestant:
    known = {
        FP16: gfloat.formats.format_info_binary16,
        BF16: gfloat.formats.format_info_bfloat16,
    }
    # Any other format is fp16 with other widths.
    info = known.get(fmt) or gfloat.FormatInfo(
        name=fmt.name, k=fmt.width, precision=fmt.precision, bias=fmt.bias, is_signed=True,
        domain=gfloat.Domain.Extended, has_nz=True, has_subnormals=True, num_high_nans=2**fmt.fraction_bits - 1,
        is_twos_complement=False,
    )  # fmt: skip
    return _loop("gfloat.round_ndarray, a loop", "gfloat", fmt, np.float64, partial(gfloat.round_ndarray, info))


def _numpy_loop(fmt: FloatFormat, distribution: str, dtype: Any) -> Contestant:
    return _loop(f"{np.dtype(dtype)} of {distribution}, a loop", distribution, fmt, dtype)


def _casts(fmt: FloatFormat) -> Iterator[Contestant]:
    """Yield the installed libraries that compute in fp32 and round the result."""
    with suppress(ImportError):
        import pychop

        chop = pychop.Chop(fmt.exponent_bits, fmt.fraction_bits)

        def prepare_chop(a: Float32, b: Float32) -> Callable[[], Any]:
            return lambda: pychop.matmul(a, b, chop)

        yield Contestant("pychop.matmul", "pychop", fmt, chain(fmt), prepare_chop)
    with suppress(ImportError):
        # The first import compiles it, which takes a compiler and Ninja.
        from qtorch.quant import float_quantize

        def prepare_quantize(a: Float32, b: Float32) -> Callable[[], torch.Tensor]:
            x, y = torch.from_numpy(a), torch.from_numpy(b)
            return lambda: float_quantize(torch.mm(x, y), fmt.exponent_bits, fmt.fraction_bits, "nearest")

        yield Contestant("qtorch.float_quantize of torch.mm", "qtorch", fmt, chain(fmt), prepare_quantize)
