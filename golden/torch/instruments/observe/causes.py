"""Why the products of a module are bad in a step: the first of these that holds.

==========================  ================================================================================
cause                       holds if
==========================  ================================================================================
input not finite            an operand has infinities or NaNs
input beyond its format     an operand is finite, and too large for the format that it is rounded to
overflow in the sums        a step or promotion overflowed, in the counted rows or in one that is not finite
invalid product             one was invalid
overflow of the result      results are not finite, and none of the above: the last rounding overflowed
underflow to zero           more than half of the counted results are 0, and not in fp32
swamped sums                more than a quarter of the addends were lost whole, and the results are more than
                            10 % away from those in fp32
==========================  ================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

from golden.torch.instruments.observe.tallies import Tally
from golden.torch.instruments.report.limits import MOST_LOST, MOST_RELATIVE, MOST_SWAMPED

__all__ = ["Cause", "cause_of"]

Evidence = dict[str, str | int | float | None]


class Cause(NamedTuple):
    """A cause in words, and the numbers that show it."""

    words: str
    evidence: Evidence


def cause_of(tally: Tally) -> Cause | None:
    """Return why the products are bad, None if they are not."""
    operands = {"left": tally.left, "right": tally.right}
    where = {name: each.not_finite for name, each in operands.items() if each.not_finite}
    if where:
        return Cause("input not finite", {f"{name} values": count for name, count in where.items()})
    where = {name: each.beyond_format for name, each in operands.items() if each.beyond_format}
    if where:
        evidence: Evidence = {f"{name} values": count for name, count in where.items()}
        return Cause("input beyond its format", {"format": tally.reduction.factors.name, **evidence})
    for counted, rows in ((tally.counted, tally.rows_counted), (tally.witness, 1)):
        events = counted.counts.products + counted.counts.promotions
        steps: Evidence = {"steps": events.steps, "rows": rows}
        if events.overflow:
            exponent = {"largest exponent": int(counted.counts.largest_exponent), "level": tally.level}
            return Cause("overflow in the sums", {"overflows": events.overflow, **steps, **exponent})
        if events.invalid:
            return Cause("invalid product", {"invalid": events.invalid, **steps})
    if tally.output.not_finite:
        results: Evidence = {"results": tally.output.not_finite, "format": tally.reduction.result.name}
        return Cause("overflow of the result", results)
    counted = tally.counted
    if counted.lost > MOST_LOST * counted.results:
        return Cause("underflow to zero", {"lost": counted.lost, "results": counted.results})
    events, distance = counted.counts.products + counted.counts.promotions, counted.distance.record()
    relative = 0.0 if distance is None else distance["relative"]
    if events.swamped > MOST_SWAMPED * events.steps and relative > MOST_RELATIVE:
        evidence = {"swamped": events.swamped, "steps": events.steps, "relative distance": relative}
        return Cause("swamped sums", evidence)
    return None
