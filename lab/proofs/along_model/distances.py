"""Distances between operations in flight: in one register, in a pair and its halves, at different levels."""

from __future__ import annotations

from collections.abc import Iterator

from amaranth import C, Cat, Mux, Value

from lab.proofs.along_model.ghost import Ghost
from lab.proofs.along_model.opened import OpenedUnit
from lab.proofs.along_model.record import Condition

__all__ = ["distances", "levels", "others"]


def distances(ghost: Ghost) -> Iterator[Condition]:
    """Yield the conditions that operations on one accumulator keep their distance, promotions included."""
    latency, depth, early = ghost.parameters.accumulate_latency, ghost.depth, ghost.parameters.reads_early
    # Behind the last rank comes the promotion: one row of places.
    row = ghost.records[1:] * 2

    def there(at: int) -> Value:
        return row[at].is_sound_product if at < depth else row[at].is_promotion

    def totals(at: int) -> Value:
        return row[at].is_pending if at < depth else row[at].is_promotion

    for one in range(2 * depth):
        for other in range(one + 1, min(one + latency + 1 + early, 2 * depth)):
            a, b = row[one].fields, row[other].fields
            same = a.register == b.register
            if other < one + latency:
                yield f"distance {one} {other}", ~(there(one) & there(other) & same)
            # Only an operation on the same register can take a value that is just being written.
            same_pair = a.register[1:] == b.register[1:]
            overlap = Mux(same, a.wide_total != b.wide_total, same_pair & (a.wide_total | b.wide_total))
            followed = totals(one) & row[one].is_followed & totals(other)
            # One cycle later the register may be passed by, but another one of the pair has been written over.
            between = row[other - 1].fields
            is_over = totals(other - 1) & (between.register == a.register) & (between.wide_total == a.wide_total)
            is_late = C(other > one + latency, 1) & ~same & is_over
            yield f"pair {one} {other}", ~(followed & ~a.is_first & overlap) | is_late
    for place, record in enumerate(ghost.records[1:], 1):
        promotions = Cat(each.is_promotion for each in ghost.records[1:]).any()
        older = [each.counts for each in ghost.records[place + 1 :]] or [C(0, 1)]
        yield f"chain {place}", ~record.is_chain | ~(promotions | Cat(older).any())


def levels(ghost: Ghost) -> Iterator[Condition]:
    """Yield the conditions that a register changes its level after a product only by a later product."""
    even, odd = (state.level for state in ghost.registers)
    # Since then none of its chunks has ended, or a follower has ended one.
    still_first = [(state.level == 0) | ~state.later for state in ghost.registers]
    latency = ghost.parameters.accumulate_latency + ghost.parameters.reads_early
    for place in range(1, min(latency, ghost.depth) + 1):
        record, newer = ghost.records[place], ghost.records[1:place]
        fields = record.fields
        is_odd, wide, pair = fields.register[0], fields.wide_total, fields.register[1:]
        followed_by_even, followed_by_odd = (
            Cat(
                [
                    C(0, 1),
                    *(
                        each.is_sound_product
                        & (each.fields.register == Cat(half, pair))
                        & (still_first[half.value] | each.is_pending)
                        for each in newer
                    ),
                ]
            ).any()
            for half in (C(0, 1), C(1, 1))
        )
        other_even = Mux(is_odd, odd != 2, wide != (even != 2))
        even_followed = ~other_even | followed_by_even
        odd_followed = ~(wide & (odd == 2)) | followed_by_odd
        yield f"level of {place}", ~(record.is_sound_product & record.is_followed) | (even_followed & odd_followed)


def others(unit: OpenedUnit, ghost: Ghost) -> Iterator[Condition]:
    """Yield the conditions on how long a product of level 0 waits for operations of other levels."""
    stages, since = ghost.parameters.stages, ghost.since_others
    for place, record in enumerate(ghost.records[1:], 1):
        other = record.counts | record.is_promotion
        left = C(1, 1) if place < 2 else unit.cycles_of_others >= stages + 2 - place
        yield f"others {place}", ~other | (unit.others & left)
    newest = ghost.records[1]
    yield "others now", (since == 0) | ~(newest.counts | newest.is_promotion)
    left = unit.cycles_of_others
    yield "others before", (left <= stages) & ((since == 0) | (left + since <= stages + 1) | (left == 0))
    yield "others wait", ~unit.others | (since <= stages)
