"""Bugs that the regression must catch: one small edit each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MUTANTS", "Mutant"]


@dataclass(frozen=True)
class Mutant:
    """An edit of the RTL.

    Parameters
    ----------
    name : str
    file : str
        Below ``hdl``.
    old, new : str
        Source text; `old` must occur exactly once.
    unit : str
        The unit whose regression must fail.
    scenarios : str
        The scenarios that are run; all of them if empty.
    effort : float
        Share of the unit's stimulus.
    """

    name: str
    file: str
    old: str
    new: str
    unit: str = "mac_cbfloat16"
    scenarios: str = ""
    effort: float = 0.15


_CONVERTER = "float32_to_cbfloat16"

MUTANTS = (
    Mutant(
        "sticky_bit_dropped",
        "cores/words.py",
        "shifted = Cat(word[: step + 1].any(), word[step + 1 :])",
        "shifted = Cat(word[step], word[step + 1 :])",
    ),
    Mutant(
        "sticky_bit_dropped_in_converter",
        "cores/conversion_right.py",
        "i.fell_out[number] | i.filled[:number].any()",
        "i.filled[:number].any()",
        _CONVERTER,
    ),
    Mutant(
        "tie_rounded_up",
        "cores/conversion.py",
        "i.unshifted[1] | i.shifted[1] | i.sticky.any()",
        "C(1, 1)",
        _CONVERTER,
    ),
    Mutant("subnormal_room_off_by_one", "cores/normalise.py", "room.eq(i.exponent - 1),", "room.eq(i.exponent),"),
    Mutant(
        "leading_zero_count_of_wrong_half",
        "cores/words.py",
        "Mux(upper_is_zero, lower[:-1], upper[:-1])",
        "Mux(upper_is_zero, upper[:-1], lower[:-1])",
    ),
    Mutant("chunk_one_too_long", "mac/issue.py", "(following == self.chunk)", "(done == self.chunk)"),
    Mutant("first_keeps_chunk_count", "mac/issue.py", "Mux(beat.first, 0, read.data.count)", "read.data.count + 0"),
    Mutant(
        "first_keeps_total", "mac/issue.py", "beat.first | read.data.is_first_chunk", "read.data.is_first_chunk | 0"
    ),
    Mutant(
        "chunk_count_wraps_around",
        "mac/issue.py",
        "Mux(following[-1], done, following)",
        "following[:-1]",
        "mac_level_2",
        "chunk_edges",
    ),
    Mutant("hazards_ignored", "mac/issue.py", " & ~self._must_wait(is_chain)", ""),
    Mutant(
        "hazard_one_cycle_short",
        "mac/issue.py",
        "position + 1 < parameters.accumulate_latency",
        "position + 2 < parameters.accumulate_latency",
    ),
    Mutant(
        "hazard_one_cycle_long",
        "mac/issue.py",
        "position + 1 < parameters.accumulate_latency",
        "position < parameters.accumulate_latency",
        scenarios="throughput_*",
    ),
    Mutant(
        "level_0_overtakes_promotion",
        "mac/issue.py",
        "is_chain & operation.promote & same_pair",
        "is_chain & operation.promote & same_pair & ~same_pair",
    ),
    Mutant("promotion_reads_stale_total", "mac/issue.py", "finished.fresh_total", "0"),
    Mutant(
        "odd_register_accepted_at_level_1",
        "mac/issue.py",
        "wide_total & beat.register[0]",
        "is_chain & beat.register[0]",
    ),
    Mutant("flags_lost_at_promotion", "mac/issue.py", "o.flags.eq(self.finished_result.flags)", "o.flags.eq(0)"),
    Mutant(
        "flags_not_accumulated",
        "mac/multiply_accumulate.py",
        "Mux(reading.fresh, 0, registers.read.flags.as_value())",
        "Mux(reading.fresh, 0, 0)",
    ),
    Mutant(
        "backpressure_ignored",
        "mac/multiply_accumulate.py",
        "enable = ~self.o.valid | self.o.ready",
        "enable = ~self.o.valid | self.o.valid",
        scenarios="stream_*",
    ),
    Mutant(
        "backpressure_ignored_by_converter",
        "converter.py",
        "enable = ~self.o.valid | self.o.ready",
        "enable = ~self.o.valid | self.o.valid",
        _CONVERTER,
        "stream_*",
    ),
    Mutant(
        "halves_swapped_in_read_port",
        "mac/register_file.py",
        "Cat(Mux(own_is_odd, odd.bits, even.bits), Mux(self.read_wide, odd.bits, C(0, WORD_WIDTH)))",
        "Cat(Mux(own_is_odd | self.read_wide, odd.bits, even.bits), Mux(self.read_wide, even.bits, C(0, WORD_WIDTH)))",
    ),
    Mutant("tiny_before_rounding", "cores/conversion.py", " & ~(i.is_nearly_normal & i.all_ones)", "", _CONVERTER),
    Mutant(
        "zero_sum_keeps_sign",
        "cores/accumulate.py",
        "Mux(is_zero & subtract, 0, i.upper_sign ^ is_negative)",
        "i.upper_sign ^ is_negative",
    ),
    Mutant(
        "nan_has_sign",
        "cores/round.py",
        "Const(fmt.nan, fmt.width)",
        "Const(fmt.nan | fmt.sign_mask, fmt.width)",
        _CONVERTER,
    ),
    Mutant(
        "infinity_times_zero_is_valid",
        "cores/multiply.py",
        "b.is_signalling | infinity_times_zero",
        "b.is_signalling",
    ),
    Mutant(
        "converter_subnormal_shift_off_by_one",
        "cores/conversion_right.py",
        "1 + (reach - value) % _FINE",
        "1 + (reach - value - 1) % _FINE",
        _CONVERTER,
    ),
    Mutant(
        "axi_format_wraps_around",
        "axi_stream.py",
        "Mux(is_there, self.s_axis_tuser.level, _NO_LEVEL)",
        "self.s_axis_tuser.level",
        "mac_axi_stream",
        "refusals",
    ),
)
