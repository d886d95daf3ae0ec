"""Bugs in the datapath: operands, product, both paths, rounding, classes."""

from __future__ import annotations

from lab.mutants.mutant import Mutant

__all__ = ["STEP_FAULTS"]

STEP_FAULTS = (
    # -- taking operands apart, multiplying
    Mutant(
        "subnormal_operand_has_exponent_0",
        "cores/operand.py",
        "exponent=Cat(operand.field[0] | ~operand.is_normal, operand.field[1:]),",
        "exponent=operand.field,",
    ),
    Mutant(
        "leading_one_within_group_miscounted",
        "cores/operand.py",
        "Cat(~first & (second | ~third), ~first & ~second)",
        "Cat(~first & (second & ~third), ~first & ~second)",
    ),
    Mutant(
        "exponent_ignores_shift_by_groups",
        "cores/operand.py",
        "operand.exponent - Cat(within, operand.skipped)",
        "operand.exponent - within",
    ),
    Mutant(
        "quiet_nan_taken_for_signalling",
        "cores/operand.py",
        "is_signalling=is_nan & ~operand.is_quiet",
        "is_signalling=is_nan & operand.is_quiet",
    ),
    Mutant(
        "promoted_nan_signals",
        "cores/operand.py",
        "is_signalling=is_nan & ~operand.is_quiet",
        "is_signalling=(is_nan | operand.is_nan) & ~operand.is_quiet",
        scenarios="steps",
    ),
    Mutant(
        "promoted_infinity_forgotten",
        "cores/operand.py",
        "operand.is_infinite | (looks_special & ~has_fraction)",
        "looks_special & ~has_fraction",
    ),
    Mutant(
        "infinity_times_zero_is_valid",
        "cores/product.py",
        "a.is_signalling | b.is_signalling | infinity_times_zero",
        "a.is_signalling | b.is_signalling",
    ),
    Mutant(
        "product_above_2_keeps_exponent",
        "cores/product.py",
        "product.exponent + product.bias + top",
        "product.exponent + product.bias",
    ),
    Mutant(
        "zero_product_has_an_exponent",
        "cores/product.py",
        "Mux(a.is_zero | b.is_zero, formats.exponent_of_zero, a.exponent + b.exponent)",
        "a.exponent + b.exponent",
    ),
    # -- the near path
    Mutant(
        "near_product_shifted_the_wrong_way",
        "cores/near.py",
        "Mux(places[1], below, above)",
        "Mux(places[1], above, below)",
    ),
    Mutant(
        "near_limit_one_place_too_low",
        "cores/near.py",
        "accumulator.exponent == place for",
        "accumulator.exponent == place + 1 for",
    ),
    Mutant(
        "near_limit_has_a_hole",
        "cores/near.py",
        "accumulator.exponent == place for",
        "(accumulator.exponent == place) & int(place != 13) for",
        scenarios="steps",
    ),
    Mutant(
        "near_limit_has_a_hole_high_up",
        "cores/near.py",
        "accumulator.exponent == place for",
        "(accumulator.exponent == place) & int(place != 22) for",
        "mac_bfloat16",
        "steps",
    ),
    Mutant(
        "difference_of_minus_one_taken_for_zero",
        "cores/near.py",
        "digits = Cat(negative, near.difference",
        "digits = Cat(C(0, 1), near.difference",
    ),
    Mutant(
        "difference_shifted_by_16_too_early",
        "cores/near.py",
        "Mux(Cat(zeros[:4]).all()",
        "Mux(Cat(zeros[:3]).all()",
    ),
    Mutant(
        "near_path_taken_for_product_two_places_below",
        "cores/fused_step.py",
        "step.subtract & ~distance[1:].any() & ~(distance[0] & lower)",
        "step.subtract & ~distance[1:].any()",
    ),
    # -- the far path
    Mutant(
        "lower_product_one_place_too_high",
        "cores/far.py",
        "at(product.significand, 1)",
        "at(product.significand, 0)",
    ),
    Mutant(
        "sticky_bit_within_group_dropped",
        "cores/far.py",
        "sticky=(one & lower[0]) | (two & by_one[:2].any())",
        "sticky=two & by_one[:2].any()",
        "mac_level_2",
        effort=1.0,  # few operands show it
    ),
    Mutant(
        "sticky_bit_of_groups_dropped",
        "cores/far.py",
        "far.sticky | Cat(*lost).any()",
        "far.sticky",
    ),
    Mutant(
        "distant_addend_comes_back",
        "cores/far.py",
        "compared.distance[2 + group_bits :].any()",
        "compared.distance[3 + group_bits :].any()",
    ),
    Mutant(
        "far_path_does_not_vanish",
        "cores/far.py",
        "upper=Mux(vanish, 0, Cat(C(0, 1), far.upper)),",
        "upper=Cat(C(0, 1), far.upper),",
    ),
    # -- both paths meet, rounding
    Mutant(
        "zero_difference_keeps_exponent",
        "cores/round_step.py",
        "Mux(far.is_near & near.is_zero, 1, far.exponent - skipped)",
        "far.exponent - skipped",
    ),
    Mutant(
        "sum_with_carry_is_shifted",
        "cores/round_step.py",
        "Mux(top, far.subtract, leading | otherwise[0])",
        "leading | otherwise[0] | (top & far.subtract)",
    ),
    Mutant(
        "zero_sum_keeps_sign",
        "cores/round_step.py",
        "sign=total.sign & ~(total.subtract & ~total.negative & ~total.magnitude.any())",
        "sign=total.sign",
    ),
    Mutant(
        "sticky_bit_one_place_short",
        "cores/round_step.py",
        "total.magnitude[place - 1 - moves] & (total.shift <= moves)",
        "total.magnitude[place - 1 - moves] & (total.shift < moves)",
    ),
    Mutant("tie_rounded_up", "cores/round_step.py", "guard & (sticky | lowest))", "guard)"),
    Mutant(
        "tie_of_negative_difference_rounded_away",
        "cores/round_step.py",
        "guard | (~sticky & lowest)",
        "guard",
    ),
    Mutant(
        "subnormal_result_gets_exponent_1",
        "cores/round_step.py",
        "less_one = normal.is_subnormal.replicate(exponent_bits)",
        "less_one = C(0, exponent_bits)",
    ),
    Mutant(
        "subnormal_in_even_register_gets_exponent_1",
        "cores/round_step.py",
        "(normal.is_subnormal & ~normal.is_low).replicate(exponent_bits)",
        "C(0, exponent_bits)",
    ),
    Mutant(
        "overflow_one_binade_late",
        "cores/round_step.py",
        "normal.exponent >= fmt.exponent_field_max",
        "normal.exponent > fmt.exponent_field_max",
    ),
    # -- classes and flags
    Mutant(
        "nan_with_infinities_is_invalid",
        "cores/outcome.py",
        " & ~product.is_nan & ~accumulator.is_nan",
        "",
    ),
    Mutant(
        "stored_nan_with_infinity_is_invalid",
        "cores/outcome.py",
        " & ~product.is_nan & ~accumulator.is_nan",
        " & ~product.is_nan",
    ),
    Mutant(
        "infinite_product_takes_accumulators_sign",
        "cores/outcome.py",
        "Mux(product.is_infinite, product.sign, accumulator.sign)",
        "accumulator.sign",
    ),
    Mutant(
        "infinity_takes_numbers_sign",
        "cores/fused_step.py",
        "Mux(step.outcome.is_infinite, step.outcome.infinite_sign, rounded.sign)",
        "rounded.sign",
    ),
    Mutant(
        "tiny_before_rounding_in_step",
        "cores/outcome.py",
        "rounded.is_subnormal & ~(rounded.field[0] & rounded.following)",
        "rounded.is_subnormal",
    ),
    Mutant(
        "tiny_by_the_rounded_number",
        "cores/outcome.py",
        "rounded.is_subnormal & ~(rounded.field[0] & rounded.following)",
        "rounded.is_subnormal & ~rounded.field[0]",
        scenarios="steps",
    ),
    Mutant(
        "tininess_of_negative_difference_ignores_carry",
        "cores/round_step.py",
        "normal.following ^ (normal.negative & normal.below)",
        "normal.following",
        scenarios="steps",
    ),
    Mutant(
        "tininess_of_negative_difference_always_carries",
        "cores/round_step.py",
        "normal.following ^ (normal.negative & normal.below)",
        "normal.following ^ normal.negative",
        scenarios="steps",
    ),
    Mutant(
        "overflow_by_rounding_raises_nothing",
        "cores/outcome.py",
        "is_number & (rounded.too_large | carried)",
        "is_number & rounded.too_large",
    ),
    # -- the lane
    Mutant(
        "narrow_accumulator_reads_bits_below_it",
        "mac/lane.py",
        "stored.fraction & _used_bits(self.formats.accumulators, len(stored.fraction), index)",
        "stored.fraction",
        "mac",
    ),
    Mutant(
        "subnormal_accumulator_gets_leading_one",
        "mac/lane.py",
        "Cat(fraction, stored.field[0] | stored.was_normal)",
        "Cat(fraction, C(1, 1))",
    ),
    Mutant(
        "chunk_that_overflowed_promoted_as_number",
        "mac/lane.py",
        "rounded.outcome.is_infinite | rounded.too_large",
        "rounded.outcome.is_infinite",
    ),
    Mutant(
        "chunk_rounded_up_to_normal_promoted_as_zero",
        "mac/lane.py",
        "~rounded.is_subnormal | rounded.field[0]",
        "~rounded.is_subnormal",
    ),
)
