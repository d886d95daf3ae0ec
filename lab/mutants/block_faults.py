"""Bugs in the block quantiser."""

from __future__ import annotations

from lab.mutants.mutant import Mutant

__all__ = ["BLOCK_FAULTS"]

_UNIT = "mx_quantize_float16_to_float6_e3m2fn"
_PAIR = "mx/pair/float16_to_float6_e3m2fn/nearest_even/interval/bitwuzla"
_RELEASED = "mx_quantize_float8_e4m3fn"
_RELEASED_PAIR = "mx/pair/float32_to_float8_e4m3fn/nearest_even/interval/bitwuzla"


def _value(name: str, file: str, old: str, new: str, unit: str = _UNIT, proof: str = _PAIR) -> Mutant:
    return Mutant(name, f"mx/{file}.py", old, new, unit, "all_blocks", 0.3, proofs=(proof,))


_ADDED = "mx/stream/beats_2/blocks/bitwuzla"
_ORDER = "mx/stream/beats_1/order/0_begun/{}_beat/bitwuzla"


def _stream(name: str, old: str, new: str, scenario: str, *proofs: str) -> Mutant:
    return Mutant(name, "mx/quantizer.py", old, new, _UNIT, scenario, 0.3, proofs=proofs)


_STALLED = "stream_idle_none_backpressure_random"

BLOCK_FAULTS = (
    # -- the scale
    _value("block_of_zeros_has_some_scale", "scaling", "(code < 0) | is_zero", "code < 0"),
    _value(
        "largest_of_two_is_the_smaller", "scaling", "pair[0] > pair[1]", "pair[0] < pair[1]", _RELEASED, _RELEASED_PAIR
    ),
    _value("scale_below_the_least_wraps", "scaling", "(code < 0) | is_zero", "is_zero", _RELEASED, _RELEASED_PAIR),
    # -- the values
    _value("value_far_below_the_largest_wraps", "scaling", "is_zero | difference[-1] |", "is_zero |"),
    _value("block_with_nan_keeps_its_values", "scaling", "Mux(self.scaling.scale == NAN_SCALE, 0, code)", "code"),
    _value("value_rounded_twice_to_nearest", "plan", "(Rounding.TO_ODD,)", "(Rounding.NEAREST_EVEN,)"),
    _value("wide_format_one_bit_short", "plan", "fraction_bits + self._kept_below)", "fraction_bits + 1)"),
    _value("large_value_becomes_nan", "plan", "OVERFLOWS[1]", "OVERFLOWS[0]", _RELEASED, _RELEASED_PAIR),
    # -- the stream
    _stream(
        "full_queue_takes_another_beat", "moves.eq(has_room | ~valid)", "moves.eq(1)", _STALLED, _ORDER.format("a")
    ),
    _stream(
        "result_is_not_held", "moves = ~self.o.valid | self.o.ready", "moves = C(1, 1)", _STALLED, _ORDER.format("no")
    ),
    _stream(
        "largest_of_the_block_before", "self.was_first | (of_beat > largest)", "of_beat > largest", "all_blocks", _ADDED
    ),
    _stream(
        "scale_without_the_last_beat", "w_en.eq(self.is_complete)", "w_en.eq(self.completes)", "all_blocks", _ADDED
    ),
    _stream("block_leaves_with_its_first_beat", "leaves & is_last)", "leaves)", "all_blocks", _ADDED),
    _stream(
        "block_that_was_complete_at_a_reset_leaves",
        "Signal(), Signal(), Signal(), Signal()",
        "Signal(), Signal(), Signal(), Signal(reset_less=True)",
        "resets_in_every_cycle",
        "mx/stream/beats_1/invariant/bitwuzla",
    ),
    _stream("last_beat_not_told", '"scaled_last", is_last, ', '"scaled_last", ~is_last, ', "all_blocks", _ADDED),
    _stream(
        "scale_of_the_next_beat",
        'rank(m, "scaled_scale", self.blocks.r_data.scale, moves)',
        "self.blocks.r_data.scale",
        "all_blocks",
        _ADDED,
    ),
)
