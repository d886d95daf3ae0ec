"""The speed of rounding fp32 values to narrow formats, beside a plain copy and other libraries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import torch

import golden
from golden import BF16, kernels
from golden.formats import HALF_FORMATS

__all__ = ["VALUES", "QuantiseRow", "measure_quantising"]

#: Values in the array that is rounded: far more than the caches hold.
VALUES = 10_000_000


@dataclass(frozen=True)
class QuantiseRow:
    """Values per second of one way to round, the median, and the outputs that differ from golden's."""

    name: str
    format: str
    rate: float
    wrong: int

    to_json = asdict


def _ways(values: np.ndarray[Any, np.dtype[np.float32]]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    tensor = torch.from_numpy(values)
    copy = torch.empty_like(tensor)
    yield "torch copy", "", lambda: copy.copy_(tensor)
    place = np.empty_like(values)
    for fmt in HALF_FORMATS:
        yield "golden.quantize", fmt.name, partial(golden.quantize, values, fmt)
        yield "golden.quantize into an array", fmt.name, partial(golden.quantize, values, fmt, out=place)
    yield "torch to bfloat16 and back", BF16.name, lambda: tensor.bfloat16().float().numpy()
    yield "ml_dtypes and back", BF16.name, lambda: values.astype(ml_dtypes.bfloat16).astype(np.float32)
    with suppress(ImportError):
        from qtorch.quant import float_quantize

        for fmt in HALF_FORMATS:
            widths = fmt.exponent_bits, fmt.fraction_bits
            yield "qtorch.float_quantize", fmt.name, partial(float_quantize, tensor, *widths, "nearest")
    with suppress(ImportError):
        import pychop

        for fmt in HALF_FORMATS:
            chop = pychop.Chop(fmt.exponent_bits, fmt.fraction_bits)
            yield "pychop.Chop", fmt.name, partial(chop, values)


def measure_quantising(repetitions: int) -> Iterator[QuantiseRow]:
    """Yield a row for every way, on one thread; the values reach beyond the range of the formats."""
    rng = np.random.default_rng(3)
    values = (rng.standard_normal(VALUES) * 2.0 ** rng.integers(-45, 45, VALUES)).astype(np.float32)
    torch.set_num_threads(1)
    with kernels.use(threads=1), np.errstate(all="ignore"):  # pychop lets NumPy warn
        for name, fmt, run in _ways(values):
            result = np.asarray(run(), np.float32)
            seconds = []
            for _ in range(repetitions):
                started = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - started)
            wanted = golden.quantize(values, fmt) if fmt else values
            wrong = int((result.view(np.uint32) != wanted.view(np.uint32)).sum())
            yield QuantiseRow(name, fmt, VALUES / statistics.median(seconds), wrong)
