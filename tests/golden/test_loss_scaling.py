"""The rule of NUMERICS section 7 against a model on exact fractions, step by step."""

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from golden import CBFLOAT16
from golden.formats import WIDE_FORMATS
from golden.loss_scaling import DynamicLossScale, LossScaleState

from .judges import power

FP32_LARGEST = (2 - power(-23)) * power(127)


def nearest_fp32(number: Fraction) -> Fraction:
    """Round a number that is not negative to fp32, ties to even, in exact arithmetic; infinity is past the largest."""
    if number == 0:
        return number
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    exponent -= power(exponent) > number
    ulp = power(max(exponent, -126) - 23)
    return round(number / ulp) * ulp  # Python rounds ties to even


@dataclass
class ExactModel:
    """The four sentences of the contract, transcribed; nothing is shared with the code under test."""

    initial: Fraction
    steps_per_increase: int
    smallest: Fraction
    largest: Fraction
    tolerance: Fraction

    def __post_init__(self):
        self.scale = min(self.largest, self.initial)
        self.unclamped = self.scale
        self.steps = self.overflows = self.skipped = 0

    def step(self, finite):
        self.steps += 1
        if not finite:
            self.overflows += 1
            self.skipped += 1
        if self.tolerance < nearest_fp32(Fraction(self.overflows, self.steps)):
            self.scale = nearest_fp32(self.scale / 2)
            self.steps = self.overflows = 0
        if self.steps_per_increase < self.steps:
            self.scale *= 2  # exact, or beyond every maximum
            self.steps = self.overflows = 0
        self.unclamped = min(self.scale, self.largest)
        self.scale = max(self.unclamped, self.smallest)


fp32_scales = st.floats(2.0**-149, float(FP32_LARGEST), width=32) | st.integers(-149, 127).map(lambda e: 2.0**e)
tolerances = st.sampled_from([0.0, 0.05, 0.25, 0.5, 1.0]) | st.floats(0, 1, width=32)
# Runs of equal outcomes: independent coin tosses would never let the scale grow.
histories = st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=25).map(
    lambda runs: [finite for finite, length in runs for _ in range(length)]
)


@settings(max_examples=500)
@given(
    initial=fp32_scales,
    limits=st.tuples(fp32_scales, fp32_scales).map(sorted),
    steps_per_increase=st.integers(0, 12),
    tolerance=tolerances,
    history=histories,
)
@example(1.0, [2.0**-149, float(FP32_LARGEST)], 0, 0.0, [True] * 130)  # up to the clamp at the top of fp32
@example(1.0, [2.0**-149, 1.0], 100, 0.0, [False] * 152)  # down to the smallest subnormal number
@example(2.0**15, [2.0**-14, 2.0**15], 100, 0.05, [True] * 19 + [False])  # 1/20 does not exceed 0.05 in fp32
@example(2.0**15, [2.0**-14, 2.0**15], 100, 0.05, [True] * 18 + [False])
# 0x3f333333, fp32's neighbour below 7/10: the ratio must be rounded, too
@example(4.0, [2.0**-14, 2.0**15], 100, float(np.float32(0.7)), [True] * 3 + [False] * 7)
@example(2.0**10, [2.0**-14, 2.0**15], 3, 0.0, [True] * 4)  # grows on step 4
def test_rule_on_any_history_equals_the_exact_model(initial, limits, steps_per_increase, tolerance, history):
    smallest, largest = limits
    rule = DynamicLossScale(
        init_scale=initial,
        steps_per_increase=steps_per_increase,
        min_loss_scale=smallest,
        max_loss_scale=largest,
        overflow_tolerance=tolerance,
    )
    model = ExactModel(
        Fraction(initial),
        steps_per_increase,
        Fraction(smallest),
        Fraction(largest),
        nearest_fp32(Fraction(tolerance)),
    )
    state = rule.start()
    for finite in [None, *history]:
        if finite is not None:
            state = rule.next(state, finite=finite)
            model.step(finite)
        assert Fraction(float(state.loss_scale)) == model.scale
        assert Fraction(float(state.non_clamped_scale)) == model.unclamped
        assert state.steps_since_rescale == model.steps
        assert state.overflows_since_rescale == model.overflows
        assert state.num_skipped_steps == model.skipped
        assert state.loss_scale.dtype == np.float32


def scales(rule, history):
    states = [rule.start()]
    for finite in history:
        states.append(rule.next(states[-1], finite=finite))
    return [float(state.loss_scale) for state in states[1:]]


ERA = DynamicLossScale.cs_dynamic_loss_scale


@pytest.mark.parametrize(
    ("rule", "history", "end"),
    [
        (DynamicLossScale(init_scale=1.0, steps_per_increase=2000), [True] * 2001, [1.0, 2.0]),
        (ERA(initial_loss_scale=1.0), [True] * 2000, [1.0, 2.0]),
        (ERA(), [True] * 19 + [False], [2.0**15]),
        (ERA(), [True] * 18 + [False], [2.0**14]),
    ],
    ids=["increase", "increase of the TensorFlow era", "one overflow in twenty", "one overflow in nineteen"],
)
def test_scale_of_a_history_ends_as_its_rule_says(rule, history, end):
    assert scales(rule, history)[-len(end) :] == end


def test_tolerance_of_a_twentieth_is_compared_in_fp32():
    # In float64, fp32(1/20) = 0x3d4ccccd = 0.0500000007 would exceed 0.05.
    assert float(np.float32(1) / np.float32(20)) > 0.05
    rule = DynamicLossScale(init_scale=4.0, overflow_tolerance=0.05)
    assert scales(rule, [True] * 19 + [False])[-1] == 4.0


def test_scale_at_the_minimum_remembers_the_non_clamped_scale():
    rule = DynamicLossScale(init_scale=2.0**-14)
    state = rule.next(rule.start(), finite=False)
    assert (float(state.loss_scale), float(state.non_clamped_scale)) == (2.0**-14, 2.0**-15)


@pytest.mark.parametrize("fmt", WIDE_FORMATS, ids=str)
def test_defaults_of_a_format_are_those_of_the_contract(fmt):
    rule = DynamicLossScale.for_format(fmt)
    largest = 2.0**31 if fmt == CBFLOAT16 else 2.0**15
    assert rule == DynamicLossScale(
        init_scale=largest, steps_per_increase=2000, min_loss_scale=2.0**-14, max_loss_scale=largest
    )
    assert rule.start() == LossScaleState(np.float32(largest), non_clamped_scale=np.float32(largest))
    assert DynamicLossScale.for_format(fmt.name) == rule


def test_initial_scale_above_the_maximum_starts_at_the_maximum():
    rule = DynamicLossScale.for_format("float16", init_scale=2.0**20)
    assert float(rule.start().loss_scale) == 2.0**15


def test_maximum_given_alone_is_the_initial_scale_too():
    assert DynamicLossScale.for_format("cbfloat16", max_loss_scale=8.0).init_scale == 8.0


def test_hysteresis_of_three_halves_on_the_third_overflow_in_a_row():
    rule = DynamicLossScale(init_scale=8.0, hysteresis=3)
    assert scales(rule, [False, False, True, False, False, False, False]) == [8, 8, 8, 8, 8, 4, 4]


def test_halving_and_doubling_with_zero_steps_per_increase_doubles_only_on_finite_steps():
    rule = DynamicLossScale(init_scale=8.0, steps_per_increase=0)
    assert scales(rule, [True, False, True]) == [16, 8, 16]


@pytest.mark.parametrize("name", ["init_scale", "min_loss_scale", "max_loss_scale"])
@pytest.mark.parametrize(
    ("given", "error"),
    [
        (0, ValueError),
        (-1.0, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        (1e39, ValueError),
        (1e-46, ValueError),
        (True, TypeError),
        ("dynamic", TypeError),
        (1j, TypeError),
    ],
)
def test_scale_that_is_not_a_positive_finite_number_is_refused_by_name(name, given, error):
    with pytest.raises(error, match=f"^{name}: got .*{re.escape(str(given))}.*, must be"):
        DynamicLossScale.for_format("cbfloat16", **{name: given})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"steps_per_increase": -1}, ValueError),
        ({"steps_per_increase": 2000.0}, TypeError),
        ({"steps_per_increase": True}, TypeError),
        ({"hysteresis": 0}, ValueError),
        ({"hysteresis": "2"}, TypeError),
        ({"overflow_tolerance": -0.1}, ValueError),
        ({"overflow_tolerance": 1.1}, ValueError),
        ({"overflow_tolerance": float("nan")}, ValueError),
        ({"overflow_tolerance": "0.05"}, TypeError),
        ({"min_loss_scale": 4.0, "max_loss_scale": 2.0}, ValueError),
        ({"half": "float8"}, ValueError),
    ],
)
def test_parameter_out_of_range_is_refused_by_name(arguments, error):
    with pytest.raises(error, match=rf"^{next(iter(arguments))}: got .*, must"):
        DynamicLossScale.for_format(**{"half": "cbfloat16"} | arguments)


@pytest.mark.parametrize(("given", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_increment_period_that_is_not_a_positive_int_is_refused(given, error):
    with pytest.raises(error, match=r"^increment_period: got .*, must be"):
        DynamicLossScale.cs_dynamic_loss_scale(increment_period=given)


def test_state_of_a_checkpoint_has_overflows_in_a_row_with_hysteresis_only():
    state = LossScaleState(np.float32(8), np.float32(8), 1, 2, 3, 4)
    without = {"loss_scale": 8.0, "steps_since_rescale": 1, "overflows_since_rescale": 2, "num_skipped_steps": 3}
    assert state.to_dict() == without
    assert state.to_dict(with_hysteresis=True) == without | {"overflows_in_a_row": 4}
    assert LossScaleState(np.float32(2), np.float32(4)).with_values(state.to_dict(with_hysteresis=True)) == state


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_skiped_steps", 1, "num_skiped_steps: is not part of the state, .*; perhaps num_skipped_steps is meant$"),
        ("zzz", 1, r"zzz: is not part of the state, must be one of loss_scale, .*, overflows_in_a_row$"),
        ("num_skipped_steps", -1, "num_skipped_steps: got -1, must be a number of steps, 0 or more"),
        ("num_skipped_steps", 1.5, "num_skipped_steps: got 1.5, must be a number of steps, 0 or more"),
        ("num_skipped_steps", "2", "num_skipped_steps: got '2', must be a number of steps, 0 or more"),
    ],
)
def test_state_with_a_value_that_is_not_possible_is_refused_by_name(name, value, words):
    with pytest.raises(ValueError, match=words):
        LossScaleState(np.float32(8), np.float32(8)).with_values({name: value})


def test_step_from_anything_but_a_state_is_refused_by_name():
    with pytest.raises(TypeError, match=r"^state: got 5, must be a LossScaleState; start\(\) returns the first one"):
        DynamicLossScale.for_format("cbfloat16").next(5, finite=True)
