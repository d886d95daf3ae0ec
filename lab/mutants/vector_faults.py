"""Bugs in what the SIMD unit adds to its lanes: rows, promotions in two parts, answers in two parts."""

from __future__ import annotations

from typing import Any

from lab.mutants.mutant import Mutant
from lab.mutants.proofs import FOUR_LANES, FULL_QUEUE, VECTOR_RESULTS, VECTOR_VALUES

__all__ = ["VECTOR_FAULTS"]


def _fault(
    name: str,
    file: str,
    old: str,
    new: str,
    unit: str = "vector_mac_no_flags",
    scenarios: str = "",
    **refuted: Any,
) -> Mutant:
    # The stimulus of these units is short as it is.
    return Mutant(name, file, old, new, unit, scenarios, effort=1.0, **refuted)


VECTOR_FAULTS = (
    # -- issue
    _fault(
        "vector_level_0_operands_in_wrong_lanes",
        "vector/arrangement.py",
        "beat[name][lane // 2]",
        "beat[name][lane]",
        scenarios="stream_idle_none_*",
        proofs=FOUR_LANES,
    ),
    _fault(
        "vector_level_0_overtakes_promotions",
        "mac/issue.py",
        "waits | (held.is_chain & ~self.are_settled)",
        "waits",
        scenarios="hazards",
        proofs=VECTOR_RESULTS,
    ),
    _fault(
        "vector_two_answers_reserve_one_place",
        "mac/issue.py",
        "Cat(~is_twofold, is_twofold)",
        "1",
        scenarios="full_queue",
        proofs=VECTOR_RESULTS,
    ),
    _fault(
        "vector_odd_row_accepted_at_level_1",
        "vector/arrangement.py",
        "beat.level == 1",
        "beat.level == 3",
        scenarios="refusals",
        proofs=VECTOR_RESULTS,
    ),
    # -- promotions
    _fault(
        "vector_second_promotion_writes_even_row",
        "vector/promotions.py",
        "Cat(held.register[0] | is_second, held.register[1:])",
        "held.register",
        scenarios="stream_idle_none_*",
        proofs=VECTOR_VALUES,
    ),
    _fault(
        "vector_flags_of_second_promotion_are_those_of_first",
        "vector/promotions.py",
        "held.flags[lane].eq(held.flags[lane + 1])",
        "held.flags[lane].eq(held.flags[lane])",
        "vector_mac_lanes_8",
        "stream_idle_none_*",
        proofs=VECTOR_VALUES,
    ),
    # -- registers
    _fault(
        "vector_odd_lane_loses_low_end_of_fp32",
        "vector/register_file.py",
        "Mux(self.writing.wide, wide[:low_bits], narrow)",
        "Mux(self.writing.wide, wide[:low_bits] & 0, narrow)",
        scenarios="stream_idle_none_*",
        proofs=VECTOR_VALUES,
    ),
    # -- results
    _fault(
        "vector_queue_overflows_by_a_part",
        "vector/results.py",
        "(reserved[:-1].all() if self._most == 2 else 0)",
        "0",
        scenarios="last_place",
        proofs=FULL_QUEUE,
    ),
    _fault(
        "vector_both_parts_are_part_0",
        "vector/results.py",
        "entry.part.eq(operation.is_second)",
        "entry.part.eq(0)",
        scenarios="stream_idle_none_*",
        proofs=VECTOR_RESULTS,
    ),
    _fault(
        "vector_part_1_names_the_odd_row",
        "vector/results.py",
        "operation.register[0] & ~operation.is_second",
        "operation.register[0]",
        scenarios="stream_idle_none_*",
        proofs=VECTOR_RESULTS,
    ),
    _fault(
        "vector_odd_lanes_flags_shown_for_fp32",
        "vector/results.py",
        "m.If(~operation.wide)",
        "m.If(operation.wide | ~operation.wide)",
        "vector_mac_lanes_8",
        "stream_idle_none_*",
        proofs=VECTOR_VALUES,
    ),
    _fault(
        "vector_refused_result_frees_its_place",
        "mac/control.py",
        "places.leaves.eq(self.o.valid & self.o.ready)",
        "places.leaves.eq(self.o.valid)",
        scenarios="full_queue",
        proofs=VECTOR_RESULTS,
    ),
    # -- flags
    _fault(
        "vector_flags_lost_at_promotion",
        "vector/vector_mac.py",
        "flags.issued.eq(control.issued_flags[number])",
        "flags.issued.eq(0)",
        "vector_mac_lanes_8",
        "stream_idle_none_*",
        proofs=VECTOR_VALUES,
    ),
)
