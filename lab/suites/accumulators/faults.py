"""Every rule of `golden.accumulators` with one wrong number, for checks that must notice it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from golden import FP16, FP32, Accumulator, FloatFormat, FusedSum, Rounding

__all__ = ["faults_of"]


def faults_of(rule: Accumulator) -> Iterator[tuple[str, Accumulator]]:
    """Yield a name and the rule with that fault."""
    for number, stage in enumerate(rule.stages):
        for name, faulty in _faulty_sums(stage):
            changed = (*rule.stages[:number], faulty, *rule.stages[number + 1 :])
            yield f"stage {number + 1}: {name}", replace(rule, stages=changed)
    for name, faulty in _faulty_sums(rule.join):
        yield f"join: {name}", replace(rule, join=faulty)
    if rule.order:
        yield "order", replace(rule, order=())
    for argument in ("total_fraction_bits", "total_reach"):
        given = getattr(rule, argument)
        if given is not None:
            yield f"{argument} + 1", replace(rule, **{argument: given + 1})
            yield f"{argument} - 1", replace(rule, **{argument: given - 1})
    if rule.zero_total_exponent != FP32.emin:
        for wrong in (rule.zero_total_exponent - 1, rule.zero_total_exponent + 1, FP32.emin):
            yield f"total of 0 at {wrong}", replace(rule, zero_total_exponent=wrong)
    if rule.products_overflow:
        yield "no overflow of products", replace(rule, products_overflow=False)
    if rule.flush != "none":
        yield "no flushing", replace(rule, flush="none")
        yield "flushing of another kind", replace(rule, flush="positive" if rule.flush == "signed" else "signed")
    if rule.depth is not None and rule.flush != "none":
        yield "total flushed at every block", replace(rule, depth=None)
    if rule.promote_every is not None:
        yield "promotion twice as late", replace(rule, promote_every=2 * rule.promote_every)
    if not rule.stages and not rule.join.chain:
        half = replace(rule.join, terms=rule.block // 2 + 1)
        yield "block of half the products", replace(rule, block=rule.block // 2, join=half)
    yield "another NaN", replace(rule, nan=rule.nan ^ 1)


def _faulty_sums(spec: FusedSum) -> Iterator[tuple[str, FusedSum]]:
    if spec.fraction_bits is not None:
        yield "fraction_bits + 1", replace(spec, fraction_bits=spec.fraction_bits + 1)
        yield "fraction_bits - 1", replace(spec, fraction_bits=spec.fraction_bits - 1)
        yield "cut", replace(spec, cut=Rounding.TOWARD_ZERO if spec.cut is Rounding.DOWN else Rounding.DOWN)
    if spec.rounding is Rounding.NEAREST_EVEN:
        yield "rounding", replace(spec, rounding=Rounding.TOWARD_ZERO)
    elif spec.rounding is not None and spec.result.fraction_bits == 23:
        yield "rounding", replace(spec, rounding=Rounding.NEAREST_EVEN)
    if spec.result != FP16 and spec.result.fraction_bits < 23:
        bits = spec.result.fraction_bits + 1
        yield "result", replace(spec, result=FloatFormat(f"e8m{bits}", 8, bits))
    if spec.interleaved:
        yield "not interleaved", replace(spec, interleaved=False)
