"""Faults of kinds that proofs of small units that are never reset let pass, each with the proofs that must refute it.

Those of `lab.mutants` are for the regression as well; these are for the proofs alone. A change that is none is here
too: then every proof named must go through all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.mutants.mutant import Mutant
from lab.proofs.along_model.induction import induction_name
from lab.proofs.control import SIZES
from lab.proofs.vector_steady import STEADY

__all__ = ["TRIAL_FAULTS", "TrialFault"]

_SHALLOW, _EIGHT, _RELEASED, _SEVERAL = map(induction_name, (3, 8, 11, 13))
_BOUNDED = tuple(f"mac: control {size} (sequential model, bitwuzla)" for size in SIZES)
_SECOND_HALF = "step: second half cbfloat16: cbfloat16 into cbfloat16 (interval, bitwuzla)"
_OWN_FORM = "lane: own form cbfloat16: cbfloat16 into cbfloat16 (step, bitwuzla)"
_STREAM = "converter: stream float32 to cbfloat16, 3 stages (queue of the core's results, bitwuzla)"
_WIRES = "mac: AXI4-Stream cbfloat16 (wire by wire, bitwuzla)"


@dataclass(frozen=True)
class TrialFault:
    """A fault, and what is to be said of it.

    Parameters
    ----------
    fault : Mutant
    proofs : tuple of str
        Names of the proofs of which one must refute it.
    fast : bool
        Whether it belongs to the fast tier.
    is_none : bool
        It changes nothing that is to hold: all of these proofs must go through.
    """

    fault: Mutant
    proofs: tuple[str, ...]
    fast: bool = False
    is_none: bool = False


def _edit(name: str, file: str, old: str, new: str, unit: str = "mac_cbfloat16") -> Mutant:
    return Mutant(name, file, old, new, unit)


def _vector(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name, file, old, new, "vector_mac")


_CHUNKS = (
    _edit("chunk_counter_of_6_bits", "mac/chunks.py", '"left": parameters.chunk_bits', '"left": 6'),
    _edit("chunk_of_257_counts_as_1", "mac/chunks.py", "length == 1)", "length[:8] == 1)"),
    _edit("chunk_of_256_is_unlimited", "mac/chunks.py", "length == 0)", "length[:8] == 0)"),
    _edit("chunk_ends_2_ahead_of_256", "mac/chunks.py", "before == 2)", "before[:8] == 2)"),
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
        "Mux(starts, is_one, held.is_last & ~is_unlimited)",
        "Mux(starts, is_one, (held.is_last | is_one) & ~is_unlimited)",
    ),
)

_RESETS = (
    _edit(
        "held_beat_survives_reset",
        "mac/issue.py",
        "Signal(), Signal()\n        if parameters.has_chunks",
        "Signal(reset_less=True), Signal()\n        if parameters.has_chunks",
    ),
    _edit(
        "operation_in_flight_survives_reset",
        "mac/operation.py",
        'name=f"operation_{position + 1}")',
        'name=f"operation_{position + 1}", reset_less=position == 3)',
    ),
    _edit(
        "places_in_the_queue_lost_at_reset", "mac/results.py", "init=places - 2)", "init=places - 2, reset_less=True)"
    ),
    _edit(
        "result_that_leaves_at_reset_counts",
        "mac/results.py",
        "reserving, taking = Signal(), Signal()",
        "reserving, taking = Signal(), Signal(reset_less=True)",
    ),
    _edit(
        "product_issued_at_reset_takes_a_place",
        "mac/results.py",
        "reserving, taking = Signal(), Signal()",
        "reserving, taking = Signal(reset_less=True), Signal()",
    ),
)

_HELD = "                | (self._held_valid & self._held.is_sound & ~self._held.is_chain)\n"
_OTHERS = f"                self.finished.promote\n{_HELD}                | recent\n                | (left > 1)\n"
_LEVEL_0 = (
    _edit("level_0_ignores_product_that_is_held", "mac/issue.py", _HELD, ""),
    _edit("level_0_ignores_newest_operation", "mac/issue.py", "                | recent\n", ""),
    _edit("level_0_goes_3_cycles_early", "mac/issue.py", "(left > 1)", "(left > 4)"),
    _edit(
        "level_0_goes_1_cycle_early_and_ignores_promotion",
        "mac/issue.py",
        _OTHERS,
        _OTHERS.replace("self.finished.promote\n                |", "").replace("> 1", "> 2"),
    ),
)
#: What level 0 waits for is told more than once: by the promotion at the end of the pipeline and, a cycle longer than
#: it need be, by the time since the product. Either may go, but not both.
_NO_FAULTS = (
    _edit("level_0_goes_1_cycle_early", "mac/issue.py", "(left > 1)", "(left > 2)"),
    _edit(
        "level_0_ignores_promotion_at_the_end",
        "mac/issue.py",
        "                self.finished.promote\n                | (self",
        "                (self",
    ),
)
#: The same as the first of these; the conditions of the induction tell its counter from the unit's.
_WAITS_LESS = _edit(
    "level_0_waits_1_cycle_less",
    "mac/issue.py",
    "left.eq(Mux(recent, parameters.stages, ",
    "left.eq(Mux(recent, parameters.stages - 1, ",
)

_PROMOTIONS = (
    _edit(
        "overflow_of_a_promotion_lost",
        "mac/multiply_accumulate.py",
        "| lane.result_class.flags.as_value()\n",
        "| (lane.result_class.flags.as_value() & ~Mux(finished.is_product, 0, 4))\n",
    ),
    _edit(
        "result_passed_by_whatever_it_is", "mac/multiply_accumulate.py", " & (reading.partial == writing.partial)", ""
    ),
    _edit(
        "partial_sum_not_passed_by",
        "mac/multiply_accumulate.py",
        "same & writing.writes & ~reading.fresh",
        "same & writing.writes & ~reading.fresh & ~reading.partial",
    ),
    _edit(
        "total_not_passed_by",
        "mac/multiply_accumulate.py",
        "same & writing.writes & ~reading.fresh",
        "same & writing.writes & ~reading.fresh & reading.partial",
    ),
)

_VECTOR = (
    _vector(
        "vector_beat_survives_reset",
        "vector/issue.py",
        "            held_valid = Signal()\n",
        "            held_valid = Signal(reset_less=True)\n",
    ),
    _vector(
        "vector_promotion_survives_reset",
        "vector/promotions.py",
        "held_valid, is_second = Signal(self._entry), Signal(), ",
        "held_valid, is_second = Signal(self._entry), Signal(reset_less=True), ",
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
        "taken = Signal()",
        "taken = Signal(reset_less=True)",
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
        "vector/issue.py",
        "issued & ~held.is_chain & held.is_sound",
        "issued & ~held.is_chain",
    ),
)

TRIAL_FAULTS: tuple[TrialFault, ...] = (
    *(TrialFault(fault, (_SHALLOW,), fast=at < 2) for at, fault in enumerate(_CHUNKS)),
    *(TrialFault(fault, (_RELEASED,)) for fault in _RESETS),
    *(TrialFault(fault, STEADY[:2]) for fault in _VECTOR),
    *(TrialFault(fault, (_RELEASED, _EIGHT)) for fault in _LEVEL_0),
    *(TrialFault(fault, (_SHALLOW, _EIGHT, _RELEASED, _SEVERAL), is_none=True) for fault in _NO_FAULTS),
    TrialFault(_WAITS_LESS, _BOUNDED, is_none=True),
    *(TrialFault(fault, (_RELEASED,)) for fault in _PROMOTIONS),
    TrialFault(
        _edit(
            "result_behind_the_last_rank_survives_reset",
            "mac/results.py",
            "Signal.like(operation), Signal.like(flags",
            "Signal.like(operation, reset_less=True), Signal.like(flags",
        ),
        (_SEVERAL,),
    ),
    TrialFault(
        _edit(
            "promoted_nan_signals",
            "cores/operand.py",
            "is_signalling=is_nan & ~operand.is_quiet",
            "is_signalling=(is_nan | operand.is_nan) & ~operand.is_quiet",
        ),
        (_OWN_FORM,),
    ),
    TrialFault(
        _edit(
            "tiny_with_the_precision_of_a_subnormal",
            "cores/outcome.py",
            "~(rounded.field[0] & rounded.following)",
            "~rounded.field[0]",
        ),
        (_OWN_FORM, _SECOND_HALF),
    ),
    TrialFault(
        _edit(
            "near_limit_lacks_a_place",
            "cores/near.py",
            "[accumulator.exponent == place for",
            "[(accumulator.exponent == place) & (place != 5) for",
        ),
        (_SECOND_HALF,),
    ),
    TrialFault(
        _edit(
            "near_limit_lacks_its_last_place",
            "cores/near.py",
            "for place in range(width + 1)]",
            "& (place < width) for place in range(width + 1)]",
        ),
        (_SECOND_HALF,),
    ),
    TrialFault(
        _edit(
            "axi_register_wraps_around",
            "axi_stream.py",
            " & (self.s_axis_tuser.register < unit.registers)",
            "",
            "mac_axi_stream",
        ),
        (_WIRES,),
        fast=True,
    ),
    TrialFault(
        _edit(
            "axi_reset_is_active_high",
            "axi_stream.py",
            "sync.rst.eq(~self.aresetn)",
            "sync.rst.eq(self.aresetn)",
            "mac_axi_stream",
        ),
        (_WIRES,),
        fast=True,
    ),
    TrialFault(
        _edit(
            "half_converted_code_survives_reset",
            "converter.py",
            '"half_shifted_valid", valid, enable, reset=True',
            '"half_shifted_valid", valid, enable',
            "float32_to_cbfloat16",
        ),
        (_STREAM,),
        fast=True,
    ),
)
