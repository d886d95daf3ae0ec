"""Bugs that the regression must catch: one small edit each."""

from __future__ import annotations

from lab.mutants.block_faults import BLOCK_FAULTS
from lab.mutants.control_faults import CONTROL_FAULTS
from lab.mutants.converter_faults import CONVERTER_FAULTS
from lab.mutants.counter_faults import COUNTER_FAULTS
from lab.mutants.mutant import Mutant
from lab.mutants.proofs import AXI_STREAM, CONTROL, NARROWING, STREAM, WIDENING
from lab.mutants.rounding_faults import ROUNDING_FAULTS
from lab.mutants.step_faults import STEP_FAULTS
from lab.mutants.vector_faults import VECTOR_FAULTS

__all__ = ["MUTANTS"]

_CONVERTER = "float32_to_cbfloat16"

MUTANTS = (
    *STEP_FAULTS,
    *VECTOR_FAULTS,
    *CONTROL_FAULTS,
    *CONVERTER_FAULTS,
    *BLOCK_FAULTS,
    *ROUNDING_FAULTS,
    *COUNTER_FAULTS,
    # -- chunks
    Mutant(
        "chunk_one_too_long",
        "mac/chunks.py",
        "write.data.is_last.eq(before == 2)",
        "write.data.is_last.eq(before == 1)",
        proofs=CONTROL,
    ),
    Mutant("chunk_of_one_goes_on", "mac/chunks.py", 'Mux(starts, now["is_one"], ', "Mux(starts, 0, ", proofs=CONTROL),
    Mutant(
        "unlimited_chunk_ends_with_its_counter",
        "mac/chunks.py",
        'held.is_last & ~now["is_unlimited"]',
        "held.is_last",
        "mac_level_2",
        "chunk_edges",
        proofs=CONTROL,
    ),
    Mutant("first_continues_the_chunk", "mac/chunks.py", "first | ~held.open", "~held.open", proofs=CONTROL),
    Mutant("first_keeps_total", "mac/chunks.py", "first | ~held.is_later", "~held.is_later", proofs=CONTROL),
    Mutant(
        "refused_product_counts_in_chunk",
        "mac/issue.py",
        "~held.is_chain & held.is_sound",
        "~held.is_chain",
        proofs=CONTROL,
    ),
    # -- issue
    Mutant(
        "hazards_ignored",
        "mac/hazards.py",
        "row.eq(Mux(self.load, Cat(needed), row >> 1))",
        "row.eq(0)",
        proofs=CONTROL,
    ),
    Mutant(
        "hazard_one_cycle_short",
        "mac/hazards.py",
        "places = latency - 1",
        "places = latency - 2",
        proofs=CONTROL,
    ),
    Mutant(
        "hazard_one_cycle_short_without_held_beat",
        "mac/issue.py",
        "self.parameters.accumulate_latency - 1]",
        "self.parameters.accumulate_latency - 2]",
        "mac_stages_8",
        effort=0.5,
        proofs=CONTROL,
    ),
    Mutant(
        "hazard_one_cycle_long",
        "mac/issue.py",
        "self.parameters.accumulate_latency - 1]",
        "self.parameters.accumulate_latency]",
        "mac_stages_8",
        "throughput_*",
        proofs=CONTROL,
    ),
    Mutant(
        "product_lost_to_promotion",
        "mac/issue.py",
        "~must_wait & ~self.promotes & ",
        "~must_wait & ",
        proofs=CONTROL,
    ),
    Mutant(
        "level_0_overtakes_promotion",
        "mac/promotions.py",
        " | (left > 1)",
        "",
        proofs=CONTROL,
    ),
    Mutant(
        "promotion_reads_stale_total",
        "mac/promotions.py",
        "operation.fresh.eq(finished.fresh_total)",
        "operation.fresh.eq(0)",
        proofs=CONTROL,
    ),
    Mutant(
        "odd_register_accepted_at_level_1",
        "mac/decode.py",
        "wide_total & wide_needs_even & beat.register[0]",
        "wide_total & (beat.level == 0) & beat.register[0]",
        proofs=CONTROL,
    ),
    Mutant(
        "flags_lost_at_promotion",
        "mac/promotions.py",
        "operand_flags[lane].eq(flags)",
        "operand_flags[lane].eq(0)",
        proofs=CONTROL,
    ),
    Mutant(
        "refused_product_writes",
        "mac/issue.py",
        "product.writes.eq(issued & held.is_sound)",
        "product.writes.eq(issued)",
        proofs=CONTROL,
    ),
    Mutant(
        "flags_not_accumulated",
        "mac/flags.py",
        "current | self.stored.as_value()",
        "current | 0",
        proofs=CONTROL,
    ),
    # -- registers
    Mutant(
        "result_that_is_being_written_is_not_passed_by",
        "mac/accumulator.py",
        "passes_by.eq(same & writing.writes & ~reading.fresh)",
        "passes_by.eq(0)",
        proofs=CONTROL,
    ),
    Mutant(
        "halves_swapped_in_read_port",
        "mac/register_file.py",
        "is_odd = self.reading.wide | self.reading.register[0]",
        "is_odd = self.reading.register[0] & ~self.reading.wide",
        proofs=CONTROL,
    ),
    Mutant(
        "partial_sum_overwrites_total",
        "mac/bank.py",
        "Cat(register, operation.partial)",
        "Cat(register, operation.partial & 0)",
        proofs=CONTROL,
    ),
    Mutant(
        "first_keeps_low_end_of_pair",
        "mac/register_file.py",
        "even[:low_bits] & (~fresh).replicate(low_bits)",
        "even[:low_bits]",
        proofs=CONTROL,
    ),
    Mutant(
        "first_keeps_class_and_flags",
        "mac/register_file.py",
        "Mux(self.class_reading.fresh, 0, ",
        "Mux(self.class_reading.fresh & 0, 0, ",
        proofs=CONTROL,
    ),
    Mutant(
        "only_half_of_a_pair_is_written",
        "mac/register_file.py",
        "writing.wide | (writing.register[0] == parity)",
        "writing.register[0] == parity",
        proofs=CONTROL,
    ),
    # -- results
    Mutant(
        "queue_overflows",
        "mac/issue.py",
        " & ~(held.gives_result & ~self.has_room)",
        "",
        scenarios="full_queue",
        proofs=CONTROL,
    ),
    Mutant(
        "refused_result_frees_its_place",
        "mac/control.py",
        "places.leaves.eq(self.o.valid & self.o.ready)",
        "places.leaves.eq(self.o.valid)",
        scenarios="full_queue",
        proofs=CONTROL,
    ),
    Mutant(
        "queue_too_short_for_a_result_in_every_cycle",
        "mac/parameters.py",
        "return 1 << (self.stages + 2).bit_length()",
        "return 1 << (self.stages.bit_length() - 1)",
        scenarios="throughput_*",
        proofs=CONTROL,
    ),
    Mutant(
        "refusal_shows_a_result",
        "mac/multiply_accumulate.py",
        "m.If(first.error == Error.NONE)",
        "m.If(first.error != Error.UNSUPPORTED)",
        proofs=CONTROL,
    ),
    Mutant(
        "chunk_leaves_before_its_promotion",
        "mac/results.py",
        "operation.last & ~operation.promote",
        "operation.last",
        proofs=CONTROL,
    ),
    Mutant(
        "axi_format_wraps_around",
        "axi_stream.py",
        "Mux(is_there, self.s_axis_tuser.level, _NO_LEVEL)",
        "self.s_axis_tuser.level",
        "mac_axi_stream",
        "refusals",
        proofs=AXI_STREAM,
    ),
    # -- the converter
    Mutant(
        "sticky_bit_dropped_in_converter",
        "cores/conversion_right.py",
        "i.fell_out[number] | i.filled[:number].any()",
        "i.filled[:number].any()",
        _CONVERTER,
        proofs=NARROWING,
        fast=True,
    ),
    Mutant(
        "leading_zeros_beyond_four_forgotten",
        "cores/conversion_left.py",
        "o.distance.eq(Cat(fine, group))",
        "o.distance.eq(Cat(fine, 0))",
        "cbfloat16_to_float32",
        proofs=WIDENING,
        fast=True,
    ),
    Mutant(
        "tie_rounded_up_in_converter",
        "cores/conversion.py",
        "increment(mode, round_bit=1, sticky=i.sticky.any(), lowest=lowest, sign=i.sign)",
        "C(1, 1)",
        _CONVERTER,
        proofs=NARROWING,
        fast=True,
    ),
    Mutant(
        "backpressure_ignored_by_converter",
        "converter.py",
        "enable = ~self.o.valid | self.o.ready",
        "enable = ~self.o.valid | self.o.valid",
        _CONVERTER,
        "stream_*",
        proofs=STREAM,
    ),
    Mutant(
        "tiny_before_rounding",
        "cores/conversion.py",
        " & ~(i.is_nearly_normal & i.all_ones)",
        "",
        _CONVERTER,
        proofs=NARROWING,
        fast=True,
    ),
    Mutant(
        "nan_has_sign",
        "cores/result.py",
        "Const(fmt.nan, fmt.width)",
        "Const(fmt.nan | fmt.sign_mask, fmt.width)",
        _CONVERTER,
        proofs=NARROWING,
        fast=True,
    ),
    Mutant(
        "converter_subnormal_shift_off_by_one",
        "cores/conversion_right.py",
        "1 + (reach - value) % _FINE",
        "1 + (reach - value - 1) % _FINE",
        _CONVERTER,
        proofs=NARROWING,
        fast=True,
    ),
)
