"""Speed relative to PyTorch's fp32 product in the same process, and outputs that differ from the contract's."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import golden
from golden import kernels, reference
from lab.speed.contestants import Contestant, sgemm

__all__ = ["Row", "count_wrong", "machine", "measure_speed", "same_as_reference"]

Float32 = NDArray[np.float32]

#: M, K, N of the timed product; slow contestants get a smaller one.
_LARGEST = (512, 512, 512)
_SMALLEST = (16, 256, 16)
#: M, K, N of the product whose outputs are compared, with the K of an ordinary layer.
_JUDGED = (64, 2048, 64)
_LONG_ENOUGH = 0.05  # seconds


@dataclass(frozen=True)
class Row:
    """The measurement of one contestant.

    Parameters
    ----------
    shape : tuple of int
        M, K, N of the product that was timed.
    rate : float
        Products (multiply-accumulates) per second, the median.
    ratio : float
        Its rate relative to torch.mm in fp32 with as many threads, the median.
    wrong, judged : int
        Outputs that differ from golden's in some bit, and all judged outputs.
    """

    name: str
    version: str
    operand: str
    reduction: str
    threads: int
    shape: tuple[int, int, int]
    rate: float
    ratio: float
    wrong: int
    judged: int

    to_json = asdict


def operands(shape: tuple[int, int, int], contestant: Contestant, seed: int = 1) -> tuple[Float32, Float32]:
    """Return normally distributed operands whose products are about 1 in sum, rounded to the operand format."""
    m, k, n = shape
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n)) / np.sqrt(k)
    return golden.quantize(a, contestant.operand), golden.quantize(b, contestant.operand)


def _seconds(run: Callable[[], Any]) -> float:
    with np.errstate(all="ignore"):  # pychop lets NumPy warn
        started = time.perf_counter()
        run()
        return time.perf_counter() - started


def _shape_for(contestant: Contestant) -> tuple[int, int, int]:
    """Double the smallest product until it takes long enough, or is the largest."""
    shape = _SMALLEST
    while shape != _LARGEST:
        run = contestant.prepare(*operands(shape, contestant))
        run()
        if _seconds(run) >= _LONG_ENOUGH:
            break
        shape = tuple(min(2 * size, largest) for size, largest in zip(shape, _LARGEST, strict=True))  # type: ignore[assignment]
    return shape


def measure_speed(contestant: Contestant, repetitions: int) -> tuple[tuple[int, int, int], float, float]:
    """Return the shape that was timed, products per second, and the ratio to torch.mm, medians of the repetitions.

    torch.mm runs at its best shape right before each repetition, with as many threads.
    """
    torch.set_num_threads(contestant.threads)
    with kernels.use(threads=contestant.threads):
        shape = _shape_for(contestant)
        run = contestant.prepare(*operands(shape, contestant))
        peer = sgemm(*operands(_LARGEST, contestant))
        run(), peer()
        rates, ratios = [], []
        for _ in range(repetitions):
            peer_rate = np.prod(_LARGEST) / min(_seconds(peer) for _ in range(3))
            rates.append(np.prod(shape) / _seconds(run))
            ratios.append(rates[-1] / peer_rate)
    return shape, float(statistics.median(rates)), float(statistics.median(ratios))


def count_wrong(contestant: Contestant) -> tuple[int, int]:
    """Return how many outputs differ from golden's in some bit, and how many there are."""
    a, b = operands(_JUDGED, contestant, seed=2)
    got = np.asarray(contestant.values(contestant.prepare(a, b)()), np.float32)
    fmt = contestant.out or contestant.reduction.outer
    wanted = golden.matmul_values(a, b, operand=contestant.operand, reduction=contestant.reduction, out=fmt)
    return int((got.view(np.uint32) != wanted.view(np.uint32)).sum()), got.size


def same_as_reference(contestant: Contestant, count: int) -> None:
    """Require golden, which judges the outputs, to have the reference's codes in the first outputs.

    Raises
    ------
    AssertionError
        With the first output that differs.
    """
    a, b = (golden.encode(values, contestant.operand) for values in operands(_JUDGED, contestant, seed=2))
    columns = b[:, :count]
    got = golden.matmul(a[:1], columns, operand=contestant.operand, reduction=contestant.reduction)[0]
    for at, code in enumerate(got.tolist()):
        factors = (a[0].tolist(), columns[:, at].tolist())
        wanted, _ = reference.dot(*factors, operand=contestant.operand, reduction=contestant.reduction)
        if code != wanted:
            raise AssertionError(f"output {at} of {contestant.name}: {code:#x}, must be {wanted:#x}")


def machine() -> str:
    """Return the processor, the number of processors, and the kernels in use."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    path = golden.kernel_info()["path"]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} processors, golden's kernels: {path}"
