"""Bugs in the converters between any formats, and in the choice of a rounding mode."""

from __future__ import annotations

from lab.mutants.mutant import Mutant

__all__ = ["CONVERTER_FAULTS"]

_ANY, _SOME = "float32_to_float8_e4m3fn_any_rounding", "float8_e5m2_to_float4_e2m1fn_some_roundings"
_NARROW = "float8_e4m3fn_to_float8_e4m3fnuz"
_NEAREST = "converter/float32_to_float8_e4m3fn/interval/bitwuzla"
_MODE = "converter/float32_to_float8_e4m3fn/modes/{}/interval/bitwuzla"
_SATURATING = "converter/float8_e5m2_to_float4_e2m1fn/saturating/interval/bitwuzla"
_BETWEEN = "converter/float8_e4m3fn_to_float8_e4m3fnuz/interval/bitwuzla"


def _fault(name: str, file: str, old: str, new: str, unit: str, *proofs: str) -> Mutant:
    return Mutant(name, f"cores/{file}.py", old, new, unit, "codes_in_all_modes", 0.4, proofs=proofs)


CONVERTER_FAULTS = (
    # -- taking codes apart, moving them into the range
    _fault(
        "nan_of_fn_is_a_number",
        "specials",
        "magnitude.all() if fmt.has_negative_zero else",
        "none if fmt.has_negative_zero else",
        _NARROW,
        _BETWEEN,
    ),
    _fault(
        "far_number_moves_around",
        "conversion_align",
        "Mux(is_near, distance, farthest)",
        "distance",
        _ANY,
        _NEAREST,
    ),
    _fault(
        "sticky_of_earlier_shifts_forgotten",
        "conversion_align",
        "lost | (i.distance[level] & word[:step].any())",
        "i.distance[level] & word[:step].any()",
        _ANY,
        _NEAREST,
    ),
    _fault(
        "exponent_of_a_moved_subnormal_too_large",
        "conversion_align",
        "last = significand[-1] if farthest == rebias else C(0, 1)",
        "last = C(1, 1)",
        _NARROW,
        _BETWEEN,
    ),
    # -- rounding
    _fault(
        "random_number_meets_the_lower_bits",
        "conversion_finish",
        "guard[len(guard) - plan.random_bits :]",
        "guard[: plan.random_bits]",
        _ANY,
        _MODE.format("stochastic"),
    ),
    _fault(
        "sticky_bit_does_not_round",
        "conversion_finish",
        "sticky = guard[:-1].any() | i.sticky",
        "sticky = guard[:-1].any()",
        _ANY,
        _MODE.format("up"),
    ),
    _fault(
        "tininess_before_rounding_in_any_mode",
        "conversion_finish",
        "i.guard[-1] & self._increment(chosen, 1, lowest=1)",
        "i.guard[-1] & 0",
        _ANY,
        _MODE.format("stochastic"),
    ),
    _fault(
        "tininess_by_the_same_digit",
        "conversion_finish",
        "self._increment(chosen, 1, lowest=1)",
        "self._increment(chosen, 0, lowest=1)",
        _ANY,
        _MODE.format("nearest_even"),
    ),
    _fault(
        "unknown_mode_gives_a_code",
        "conversion_finish",
        "code = code & is_known.replicate(destination.width)",
        "code = code | 0",
        _ANY,
        "converter/float32_to_float8_e4m3fn/modes/none/nothing/bitwuzla",
    ),
    _fault(
        "to_odd_carries",
        "rounding",
        'Rounding.TO_ODD: ("0", "even", "even", "even")',
        'Rounding.TO_ODD: ("0", "1", "1", "1")',
        _ANY,
        _MODE.format("to_odd"),
    ),
    # -- what is too large, what has no code
    _fault(
        "code_of_nan_taken_for_the_largest_number",
        "conversion_finish",
        "at_least(total, destination.max_finite + 1)",
        "at_least(total, destination.max_finite + 2)",
        _ANY,
        _NEAREST,
    ),
    _fault(
        "directed_overflow_of_the_other_sign",
        "rounding",
        "select(sign, int(negative), int(positive))",
        "select(sign, int(positive), int(negative))",
        _ANY,
        _MODE.format("down"),
    ),
    _fault(
        "infinity_saturates_to_anything",
        "conversion_finish",
        "else is_beyond | i.is_infinite)",
        "else is_beyond)",
        _SOME,
        _SATURATING,
    ),
    _fault(
        "quiet_nan_lost_without_a_flag",
        "conversion_finish",
        "i.is_signalling if destination.has_nan else i.is_nan",
        "i.is_signalling",
        _SOME,
        _SATURATING,
    ),
    _fault(
        "zero_of_fnuz_has_a_sign",
        "conversion_finish",
        "else i.sign & magnitude.any()",
        "else i.sign",
        _NARROW,
        _BETWEEN,
    ),
    _fault(
        "nan_of_fnuz_is_minus_zero",
        "specials",
        "else code[-1] & ~magnitude.any()",
        "else none",
        "float8_e5m2fnuz_to_float8_e4m3fnuz",
        "converter/float8_e5m2fnuz_to_float8_e4m3fnuz/interval/bitwuzla",
    ),
    # -- the stream
    Mutant(
        "controls_arrive_a_cycle_early",
        "converter.py",
        'controls = rank(m, "half_shifted_controls", controls, enable)',
        "pass",
        _SOME,
        "sampled_codes",
        0.4,
        proofs=("stream/float8_e5m2_to_float4_e2m1fn/some_roundings/stages_3/bitwuzla",),
    ),
    Mutant(
        "refusal_is_not_told",
        "converter.py",
        'rank(m, "error", ~is_known, enable)',
        'rank(m, "error", is_known & ~is_known, enable)',
        _SOME,
        "sampled_codes",
        0.4,
        proofs=("stream/float8_e5m2_to_float4_e2m1fn/some_roundings/stages_3/bitwuzla",),
    ),
)
