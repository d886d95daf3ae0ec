"""Golden's results of reductions step by step: each step in the mode, and with the random number, of its product."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from golden import FP32, FloatFormat, Rounding, multiply_accumulate
from golden.arrays.checks import code_dtype
from sim.stimulus.reductions import NO_ERROR, Chain, Segment

__all__ = ["predict_steps"]


@dataclass
class _Sum:
    """A reduction under way."""

    segment: Segment
    total: int
    flags: int
    partial: int = 0

    @property
    def has_chunks(self) -> bool:
        return self.segment.level > 0

    def ends_chunk(self, k: int) -> bool:
        """Return whether a product ends a chunk."""
        chunk = self.segment.chunk
        return self.has_chunks and (k + 1 == len(self.segment.a) or (chunk > 0 and (k + 1) % chunk == 0))


@dataclass(frozen=True)
class _Step:
    """One step: of a partial sum, or of a total."""

    of: _Sum
    a: int
    b: int
    is_partial: bool
    random: int


def predict_steps(
    chains: Sequence[Chain],
    operands: Sequence[FloatFormat],
    inner: FloatFormat | None,
    random_bits: int,
    subnormals: str = "keep",
) -> None:
    """Fill in results and flags of segments whose products have modes, and random numbers if the unit takes them.

    Parameters
    ----------
    chains : sequence of chains
    operands : sequence of FloatFormat
    inner : FloatFormat or None
        The format to which operands are widened.
    random_bits : int
    subnormals : str
    """
    how = {"random_bits": random_bits, "subnormals": subnormals}
    for position in range(max(map(len, chains), default=0)):
        sums = []
        for chain in chains:
            if position < len(chain) and chain[position].error == NO_ERROR:
                segment = chain[position]
                before = chain[position - 1] if position and not segment.first else None
                segment.initial = before.result if before else 0
                sums.append(_Sum(segment, segment.initial, before.flags if before else 0))
        for k in range(max((len(each.segment.a) for each in sums), default=0)):
            _advance([each for each in sums if k < len(each.segment.a)], k, operands, inner, how)
        for each in sums:
            each.segment.result, each.segment.flags = each.total, each.flags


def _advance(
    sums: Iterable[_Sum], k: int, operands: Sequence[FloatFormat], inner: FloatFormat | None, how: dict[str, Any]
) -> None:
    """Add every sum's product number k, and the partial sums of the chunks that it ends."""
    groups: dict[tuple[FloatFormat, FloatFormat, int], list[_Step]] = defaultdict(list)
    promotions: dict[tuple[FloatFormat, FloatFormat, int], list[_Step]] = defaultdict(list)
    for each in sums:
        segment = each.segment
        operand, mode = operands[segment.format], segment.modes[k]
        narrow = inner or operand
        key = (operand, narrow if each.has_chunks else FP32, mode)
        groups[key].append(_Step(each, segment.a[k], segment.b[k], each.has_chunks, _at(segment.random, k)))
    for (operand, accumulator, mode), steps in groups.items():
        _take(steps, operand, accumulator, mode, how)
        for step in steps:
            each = step.of
            if each.ends_chunk(k):
                key = (accumulator, accumulator if each.segment.level == 2 else FP32, mode)
                random = _at(each.segment.random_promotion, k)
                promotions[key].append(_Step(each, each.partial, accumulator.one, False, random))
                each.partial = 0
    for (operand, accumulator, mode), steps in promotions.items():
        _take(steps, operand, accumulator, mode, how)


def _at(numbers: list[int], k: int) -> int:
    return numbers[k] if numbers else 0


def _take(steps: list[_Step], operand: FloatFormat, accumulator: FloatFormat, mode: int, how: dict[str, Any]) -> None:
    options: dict[str, Any] = {"rounding": Rounding(mode), "subnormals": how["subnormals"]}
    if Rounding(mode) is Rounding.STOCHASTIC:
        options |= {"random": np.array([step.random for step in steps], np.uint32), "random_bits": how["random_bits"]}
    accumulators = [step.of.partial if step.is_partial else step.of.total for step in steps]
    results, flags = multiply_accumulate(
        np.array([step.a for step in steps], code_dtype(operand)),
        np.array([step.b for step in steps], code_dtype(operand)),
        np.array(accumulators, code_dtype(accumulator)),
        operand=operand,
        accumulator=accumulator,
        return_flags=True,
        **options,
    )
    for step, result, raised in zip(steps, results.tolist(), flags.tolist(), strict=True):
        step.of.flags |= raised
        if step.is_partial:
            step.of.partial = result
        else:
            step.of.total = result
