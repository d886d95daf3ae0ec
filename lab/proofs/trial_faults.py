"""Faults of kinds that proofs of small units that are never reset let pass, for the proofs alone.

A change that changes nothing is here, too: every proof that it names must still go through.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.mutants.mutant import Mutant
from lab.mutants.proofs import ACCUMULATION, AXI_STREAM, BOUNDED, VECTOR_ORDER, VECTOR_VALUES, VECTOR_WAITING, control

__all__ = ["TRIAL_FAULTS"]


def _refuted(proofs: tuple[str, ...], *faults: Mutant, **given: Any) -> tuple[Mutant, ...]:
    """Return faults with the proofs of which one must refute each."""
    return tuple(replace(fault, proofs=proofs, **given) for fault in faults)


def _edit(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name, file, old, new)


def _vector(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name, file, old, new, "vector_mac")


_CHUNKS = _refuted(
    control(3),
    _edit("chunk_ends_2_ahead_of_256", "mac/chunks.py", "before == 2)", "before[:8] == 2)"),
    _edit(
        "chunk_counter_of_24_bits",
        "mac/chunks.py",
        '"left": parameters.chunk_bits',
        '"left": min(parameters.chunk_bits, 24)',
    ),
    _edit("chunk_of_2_to_the_24_is_unlimited", "mac/chunks.py", "length == 0)", "length[:24] == 0)"),
    _edit(
        "chunk_counter_does_not_borrow_from_bit_15",
        "mac/chunks.py",
        "left.eq(before - 1)",
        "left.eq((before - 1) ^ ((before[15] ^ (before - 1)[15]) << 15))",
    ),
    _edit(
        "chunk_port_a_cycle_late",
        "mac/chunks.py",
        'length = named(m, "length", self.chunk)',
        "length = Signal.like(self.chunk); m.d.sync += length.eq(self.chunk)",
    ),
    _edit(
        "chunk_length_of_its_last_product",
        "mac/chunks.py",
        'held.is_last & ~now["is_unlimited"]',
        '(held.is_last | now["is_one"]) & ~now["is_unlimited"]',
    ),
)

_RESETS = _refuted(
    control(11),
    _edit(
        "operation_in_flight_survives_reset",
        "mac/operation.py",
        'name=f"operation_{position + 1}")',
        'name=f"operation_{position + 1}", reset_less=position == 3)',
    ),
    _edit(
        "product_issued_at_reset_takes_a_place",
        "mac/results.py",
        "self.reserving = Signal()",
        "self.reserving = Signal(reset_less=True)",
    ),
)

_OTHERS = "self.finished.promote | self.offers_chunk | recent | (left > 1)"
_LEVEL_0 = _refuted(
    control(11, 8),
    _edit("level_0_ignores_product_that_is_held", "mac/promotions.py", "| self.offers_chunk ", ""),
    _edit("level_0_ignores_newest_operation", "mac/promotions.py", "| recent ", ""),
    _edit("level_0_goes_3_cycles_early", "mac/promotions.py", "(left > 1)", "(left > 4)"),
    _edit(
        "level_0_goes_1_cycle_early_and_ignores_promotion",
        "mac/promotions.py",
        _OTHERS,
        "self.offers_chunk | recent | (left > 2)",
    ),
)
#: What level 0 waits for is told more than once: by the promotion at the end of the pipeline and, a cycle longer than
#: it need be, by the time since the product. Either may go, but not both.
_NO_FAULTS = _refuted(
    control(3, 8, 11, 13),
    _edit("level_0_goes_1_cycle_early", "mac/promotions.py", "(left > 1)", "(left > 2)"),
    _edit(
        "level_0_ignores_promotion_at_the_end",
        "mac/promotions.py",
        _OTHERS,
        "self.offers_chunk | recent | (left > 1)",
    ),
    is_none=True,
)
#: The same as the first of these; the conditions of the induction tell its counter from the unit's.
_WAITS_LESS = _refuted(
    BOUNDED,
    _edit(
        "level_0_waits_1_cycle_less",
        "mac/promotions.py",
        "left.eq(Mux(recent, parameters.stages, ",
        "left.eq(Mux(recent, parameters.stages - 1, ",
    ),
    is_none=True,
)

_STOCHASTIC = _refuted(
    ("step/modes/whole/1-4-3/stochastic/interval/bitwuzla",),
    _edit(
        "tininess_by_the_rest_of_the_number_itself",
        "cores/step_modes.py",
        "choose(total.shift, carries[1:])",
        "choose(total.shift, carries[:-1])",
    ),
    fast=True,
)

_PROMOTIONS = _refuted(
    control(11),
    _edit(
        "overflow_of_a_promotion_lost",
        "mac/accumulator.py",
        "flags.step.eq(lane.result_class.flags)",
        "flags.step.eq(lane.result_class.flags.as_value() & ~Mux(self.at[-1].is_product, 0, 4))",
    ),
    _edit(
        "partial_sum_not_passed_by",
        "mac/accumulator.py",
        "self._is_next(position, -2) & ~self.at[position].fresh",
        "self._is_next(position, -2) & ~self.at[position].fresh & ~self.at[position].partial",
    ),
    _edit(
        "total_not_passed_by",
        "mac/accumulator.py",
        "self._is_next(position, -2) & ~self.at[position].fresh",
        "self._is_next(position, -2) & ~self.at[position].fresh & self.at[position].partial",
    ),
)

_VECTOR = _refuted(
    VECTOR_ORDER,
    _vector(
        "vector_beat_survives_reset",
        "mac/issue.py",
        'Signal(name="held_valid")',
        'Signal(name="held_valid", reset_less=True)',
    ),
    _vector(
        "vector_promotion_survives_reset",
        "vector/promotions.py",
        "self.is_second = Signal(self.entry), Signal(), ",
        "self.is_second = Signal(self.entry), Signal(reset_less=True), ",
    ),
    _vector(
        "vector_places_of_promotions_lost_at_reset",
        "vector/promotions.py",
        "range(parameters.promotions + 1))",
        "range(parameters.promotions + 1), reset_less=True)",
    ),
    _vector(
        "vector_places_of_results_lost_at_reset",
        "vector/results.py",
        "range(places + 1))",
        "range(places + 1), reset_less=True)",
    ),
    _vector(
        "vector_result_that_leaves_at_reset_counts",
        "vector/results.py",
        "Signal(range(places + 1)), Signal()",
        "Signal(range(places + 1)), Signal(reset_less=True)",
    ),
    _vector(
        "vector_promotion_of_a_pair_meets_one_of_its_odd_row",
        "vector/promotions.py",
        "(one.wide | other.wide | (one",
        "(one.wide | (one",
    ),
    _vector(
        "vector_level_0_ignores_promotions_just_issued",
        "vector/promotions.py",
        "(pending != 0) | (left > 1)",
        "(pending != 0)",
    ),
    _vector(
        "vector_promotions_find_no_place",
        "vector/promotions.py",
        "pending + self.counts - leaves - over",
        "pending + (self.counts & ~over) - leaves",
    ),
    _vector(
        "vector_chunk_counted_for_refused_beat",
        "mac/issue.py",
        "~held.is_chain & held.is_sound",
        "~held.is_chain",
    ),
)
#: Faults that the order of beats and the places in the queues do not tell.
_VECTOR_VALUES = _refuted(
    VECTOR_VALUES,
    _vector(
        "vector_seventh_promotion_that_waits_loses_a_flag",
        "vector/promotions.py",
        "queue.w_data.eq(arrived)",
        "queue.w_data.eq(Mux(queue.level == 6, arrived.as_value()[:-1], arrived.as_value()))",
    ),
)
_VECTOR_WAITING = _refuted(
    VECTOR_WAITING[:1],
    _vector(
        "vector_level_0_waits_for_ever",
        "vector/promotions.py",
        "self.are_settled.eq(~self.unsettled)",
        "self.are_settled.eq(0)",
    ),
    fast=True,
)

_OTHERS_ALONE = (
    *_refuted(
        control(13),
        _edit(
            "result_behind_the_last_rank_survives_reset",
            "mac/results.py",
            'Signal(name="is_there_behind_pack")',
            'Signal(name="is_there_behind_pack", reset_less=True)',
        ),
    ),
    *_refuted(
        ACCUMULATION,
        _edit(
            "near_limit_lacks_a_place",
            "cores/near.py",
            "[accumulator.exponent == place for",
            "[(accumulator.exponent == place) & (place != 5) for",
        ),
        _edit(
            "near_limit_lacks_its_last_place",
            "cores/near.py",
            "for place in range(width + 1)]",
            "& (place < width) for place in range(width + 1)]",
        ),
    ),
    Mutant(
        "axi_reset_is_active_high",
        "axi_stream.py",
        "sync.rst.eq(~self.aresetn)",
        "sync.rst.eq(self.aresetn)",
        "mac_axi_stream",
        proofs=AXI_STREAM,
        fast=True,
    ),
)

TRIAL_FAULTS: tuple[Mutant, ...] = (
    *_CHUNKS,
    *_RESETS,
    *_VECTOR,
    *_VECTOR_VALUES,
    *_VECTOR_WAITING,
    *_LEVEL_0,
    *_NO_FAULTS,
    *_WAITS_LESS,
    *_STOCHASTIC,
    *_PROMOTIONS,
    *_OTHERS_ALONE,
)
