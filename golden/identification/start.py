"""Where the initial value joins a sum: before the first product, behind the last, or otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import decode, encode
from golden.formats import FP32, FloatFormat
from golden.identification.consistency import shaped_probe
from golden.identification.findings import Finding
from golden.identification.fit import Examples
from golden.identification.probes import KINDS, Probe

__all__ = ["STARTS", "start_difference", "start_finding", "start_probe", "start_probes"]

_SHAPES = ((64, 1, 4), (64, 2, 4), (64, 5, 4), (32, 16, 8), (32, 33, 8), (17, 130, 9), (8, 300, 3), (1, 64, 40))
#: What the report says of an initial value with which the model agrees.
STARTS = "The initial value is where the total starts."


def start_probe(
    random: np.random.Generator, operand: FloatFormat, initial: FloatFormat, shape: tuple[int, int, int], kind: int
) -> Probe:
    """Return a product whose initial values cancel its sums, stand far above or below them, or are any code."""
    made = shaped_probe(random, operand, shape, kind)
    with np.errstate(all="ignore"):
        sums = decode(made.a, operand).astype(np.float64) @ decode(made.b, operand).astype(np.float64)
        sums = np.where(np.isfinite(sums) & (sums != 0), sums, 1.0)
        scaled = np.ldexp(sums * random.uniform(-2, 2, sums.shape), random.integers(-30, 31, sums.shape))
        near = encode(np.where(random.random(sums.shape) < 0.5, -sums, scaled), initial, overflow="saturate")
    anything = random.integers(0, 1 << initial.width, sums.shape).astype(near.dtype)
    return Probe("start", made.a, made.b, initial=np.where(random.random(sums.shape) < 0.7, near, anything))


def start_probes(random: np.random.Generator, operand: FloatFormat, initial: FloatFormat) -> Iterator[Probe]:
    """Return products with initial values that are asked before there is a model."""
    for number, shape in enumerate(_SHAPES):
        for kind in (number % KINDS, (number + 2) % KINDS):
            yield start_probe(random, operand, initial, shape, kind)


def start_finding(model: Any, examples: Examples, initial: FloatFormat) -> tuple[Finding, bool]:
    """Return where initial values join, and whether the model takes them so.

    Parameters
    ----------
    model : Reduction or Accumulator
        Computes the sums without an initial value.
    examples : Examples
        Products with initial values.
    initial : FloatFormat
        Their format.
    """
    if model.outer != initial:
        return Finding(f"The initial value is in {initial}, the total of the model in {model.outer}."), False
    shown: Finding | None = None
    is_last = initial == FP32 == examples.out
    for probe, result in zip(examples.asked, examples.results, strict=True):
        for row, column in np.argwhere(examples.computed(probe, model) != result)[:1].tolist():
            shown = shown or _shown(probe, row, column, int(result[row, column]))
        is_last = is_last and np.array_equal(_behind(model, examples, probe), result)
    if shown is None:
        return Finding(STARTS), True
    where = "is added to the finished sum" if is_last else "joins neither before the first product nor after the last"
    return Finding(f"The initial value {where}. {shown.statement}", shown.products, shown.result), False


def start_difference(model: Any, probe: Probe, result: int, examples: Examples) -> Finding:
    """Return a finding about a single sum with an initial value that the model computes otherwise."""
    shown = _shown(probe, 0, 0, result)
    computed = int(examples.computed(probe, model)[0, 0])
    words = f"The total starts from the initial value in all sums but few. {shown.statement} the model gives"
    return Finding(f"{words} {computed:#x}.", shown.products, shown.result)


def _behind(model: Any, examples: Examples, probe: Probe) -> NDArray[Any]:
    sums = decode(examples.computed(Probe("sum", probe.a, probe.b), model), FP32)
    assert probe.initial is not None
    with np.errstate(all="ignore"):
        return examples.plain(encode(sums + decode(probe.initial, FP32), FP32))


def _shown(probe: Probe, row: int, column: int, result: int) -> Finding:
    assert probe.initial is not None
    pairs = zip(probe.a[row].tolist(), probe.b[:, column].tolist(), strict=True)
    started = f"From {int(probe.initial[row, column]):#x}:"
    return Finding(started, tuple((x, y) for x, y in pairs if x or y), result)
