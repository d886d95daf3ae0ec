"""Bugs in the rounding modes of units that multiply: which mode, whose random number, and what both are for."""

from __future__ import annotations

from lab.mutants.mutant import Mutant

__all__ = ["ROUNDING_FAULTS"]

_VECTOR = "vector_mac_any_rounding"
# The proof that refutes each.
_WHOLE = {mode: f"step/modes/whole/1-4-3/{mode}/interval" for mode in ("toward_zero", "down", "up", "stochastic")}
_OWN_FORM = "lane/own_form/modes/cbfloat16_into_cbfloat16/toward_zero"
_PIPELINE, _CONTROL = "lane/pipeline/modes/stages_11", "control/induction_in_modes/stages_3"
_LANES, _WIDENING = "vector/modes/lanes_2/stages_1/beats_3", "widening/core"


def _fault(
    name: str, file: str, old: str, new: str, proof: str, scenarios: str = "steps", unit: str = "mac_any_rounding"
) -> Mutant:
    # The stimulus of these units is short as it is.
    return Mutant(name, file, old, new, unit, scenarios, effort=1.0, proofs=(f"{proof}/bitwuzla",))


ROUNDING_FAULTS = (
    # -- the step
    _fault(
        "zero_sum_in_mode_down_is_positive",
        "cores/step_modes.py",
        "cancels & chosen[Rounding.DOWN]",
        "cancels & ~cancels",
        _WHOLE["down"],
    ),
    _fault(
        "too_large_by_the_other_signs_rule",
        "cores/step_modes.py",
        "lambda mode: stays_finite(mode, sign)",
        "lambda mode: stays_finite(mode, ~sign)",
        _WHOLE["up"],
    ),
    _fault(
        "carry_out_of_the_largest_exponent_stays",
        "cores/step_modes.py",
        "rounded.too_large | (rounded.is_largest & rounded.field[0])",
        "rounded.too_large",
        _WHOLE["toward_zero"],
    ),
    _fault(
        "largest_value_promoted_as_infinity",
        "cores/step_modes.py",
        "too_large=rounded.too_large & ~normal.stays_finite",
        "too_large=rounded.too_large",
        _WHOLE["toward_zero"],
    ),
    _fault(
        "largest_value_without_overflow",
        "cores/outcome.py",
        "overflow | (is_number & rounded.to_largest)",
        "overflow",
        _WHOLE["toward_zero"],
    ),
    _fault(
        "tininess_in_other_modes_without_sticky_bit",
        "cores/step_modes.py",
        "round_bit=following, sticky=normal.below",
        "round_bit=following, sticky=0",
        _WHOLE["up"],
    ),
    _fault(
        "rest_of_a_negative_word_lacks_its_one",
        "cores/step_modes.py",
        "Cat(total.negative, inverted)",
        "Cat(C(0, 1), inverted)",
        _WHOLE["stochastic"],
    ),
    _fault(
        "rest_of_a_stochastic_rounding_one_place_low",
        "cores/step_modes.py",
        "choose(total.shift, carries[:-1])",
        "choose(total.shift, carries[1:])",
        _WHOLE["stochastic"],
    ),
    _fault(
        "sticky_bit_among_the_rest",
        "cores/step_formats.py",
        "self.random_bits if self.is_stochastic else 1",
        "self.random_bits - 2 if self.is_stochastic else 1",
        _WHOLE["stochastic"],
    ),
    # -- which step gets them
    _fault(
        "mode_of_the_next_operation_taken",
        "mac/lane.py",
        "def controls(self) -> Any:\n        return self._steps[self._position]",
        "def controls(self) -> Any:\n        return self._steps[self._position - 1]",
        _PIPELINE,
    ),
    _fault(
        "promotion_takes_random_number_of_its_product",
        "mac/promotions.py",
        '"random": "random_promotion"',
        '"random": "random"',
        _CONTROL,
    ),
    _fault(
        "promotion_takes_mode_of_the_newest_product",
        "mac/promotions.py",
        "promotion_rounding(parameters, finished).items()",
        "promotion_rounding(parameters, self.in_flight[0]).items()",
        _CONTROL,
    ),
    _fault(
        "mode_that_is_not_built_accepted",
        "mac/decode.py",
        "supported &= Cat(beat.rounding == mode.value for mode in parameters.formats.roundings).any()",
        "supported &= 1",
        _CONTROL,
        "refusals",
    ),
    # -- lanes
    _fault(
        "every_lane_takes_random_number_of_the_first",
        "mac/lane.py",
        "operation[name][lane] if",
        "operation[name][0] if",
        _LANES,
        unit=_VECTOR,
    ),
    _fault(
        "second_promotion_takes_random_numbers_of_the_first",
        "vector/promotions.py",
        "held.random[lane].eq(held.random[lane + 1])",
        "held.random[lane].eq(held.random[lane])",
        _LANES,
        "lanes_apart",
        unit=_VECTOR,
    ),
    _fault(
        "waiting_promotion_takes_mode_of_what_finishes",
        "vector/promotions.py",
        "*(operation[name].eq(held[name]) for name, _ in parameters.formats.controls),",
        "*(operation[name].eq(self.finished[name]) for name, _ in parameters.formats.controls),",
        _LANES,
        unit=_VECTOR,
    ),
    # -- operands that are widened
    _fault(
        "signalling_nan_widened_to_a_quiet_one",
        "cores/widen.py",
        "Mux(convert.o.flags.invalid, signalling, convert.o.bits)",
        "convert.o.bits",
        _WIDENING,
        unit="mac_narrow",
    ),
    _fault(
        "narrow_format_beyond_the_last_taken_for_it",
        "mac/widen.py",
        "i.format < len(parameters.operands) if len(i.format) else C(1, 1)",
        "C(1, 1)",
        _WIDENING,
        "refusals",
        unit="mac_narrow",
    ),
)
