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

from golden.torch.observing.tallies import Tally

__all__ = ["Cause", "cause_of"]

_MOST_LOST = 0.5
_MOST_SWAMPED = 0.25
_MOST_RELATIVE = 0.1

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
        return Cause("input beyond its format", {"format": tally.summing.operand.name, **evidence})
    for counted, rows in ((tally.counted, tally.rows_counted), (tally.witness, 1)):
        of_products, of_promotions = counted.counts.products, counted.counts.promotions
        steps: Evidence = {"steps": of_products.steps + of_promotions.steps, "rows": rows}
        overflows = of_products.overflow + of_promotions.overflow
        if overflows:
            exponent = {"largest exponent": int(counted.counts.largest_exponent), "level": tally.level}
            return Cause("overflow in the sums", {"overflows": overflows, **steps, **exponent})
        invalid = of_products.invalid + of_promotions.invalid
        if invalid:
            return Cause("invalid product", {"invalid": invalid, **steps})
    if tally.output.not_finite:
        results: Evidence = {"results": tally.output.not_finite, "format": tally.summing.half.name}
        return Cause("overflow of the result", results)
    counted = tally.counted
    if counted.lost > _MOST_LOST * counted.results:
        return Cause("underflow to zero", {"lost": counted.lost, "results": counted.results})
    of_products, of_promotions = counted.counts.products, counted.counts.promotions
    swamped, addends = of_products.swamped + of_promotions.swamped, of_products.steps + of_promotions.steps
    distance = counted.distance.record()
    if swamped > _MOST_SWAMPED * addends and distance is not None and distance["relative"] > _MOST_RELATIVE:
        return Cause("swamped sums", {"swamped": swamped, "steps": addends, "relative distance": distance["relative"]})
    return None
