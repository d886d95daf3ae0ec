"""The comparison of steps can fail: each fault in the headers is seen."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Rounding, multiply_accumulate

from ...golden.kernels.build import Change
from .build import BFLOAT16, FLOAT16, build
from .judge import differences, triples

CASES = 20_000
NARROW = FloatFormat("e4m3", 4, 3)
EVEN, ZERO, DOWN, UP, AWAY, ODD, RANDOM = Rounding

# With a fault the steps of a mode differ in some format.
FAULTS = {
    "sums not rounded to odd": (EVEN, Change("lanes1.h", "(as_words(down) & 1) != 0 ?", "false ?")),
    "sums of zero negative": (
        EVEN, Change("lanes1.h", "(as_words(down) & 1) != 0 ?", "(as_words(up) & 1) == 0 ?")),
    "a NaN carried into the sign": (EVEN, Change("steps.h", "Lanes::quieted(Lanes::multiply", "(Lanes::multiply")),
    "a NaN carried into the sign, up": (
        UP, Change("mode_steps.h", "Lanes::quieted(Lanes::as_words(", "(Lanes::as_words(")),
    "a NaN carried into the sign, in doubles": (AWAY, Change("wide_steps.h", "WideLanes::quieted(", "(")),
    "negative NaNs alone": (EVEN, Change("lanes1.h", "int32_t nan = 0x7FC00000", "int32_t nan = 0x7FFFFFFF")),
    "no infinity at the limit": (
        EVEN, Change("lanes1.h", "(as_words(x) & 0x7FFFFFFF) >= limit", "(as_words(x) * 2 / 2) > limit")),
    "infinities positive": (
        EVEN, Change("lanes1.h", "(as_words(x) & 0x80000000) | 0x7F800000", "0x7F800000")),
    "no infinity at the limit, in doubles": (
        RANDOM, Change("lanes1.h", "as_doubles(as_words(x) & ~(1ull << 63)) >= limit", "false")),
    "infinities that are replaced": (ZERO, Change("lanes1.h", "magnitude < 0x7F800000 ? by", "true ? by")),
    "nothing replaced": (DOWN, Change("lanes1.h", "magnitude >= as_words(limit)", "magnitude > as_words(limit)")),
    "down as up": (DOWN, Change("lanes1.h", "return Rounding::down;", "return Rounding::up;")),
    "up as to nearest": (UP, Change("lanes1.h", "return Rounding::up;", "return Rounding::nearest;")),
    "nearest away from sums to nearest": (AWAY, Change("lanes1.h", "        case Mode::nearest_away:\n", "")),
    "toward zero from sums to nearest": (
        ZERO, Change("lanes1.h", "return Rounding::zero;", "return Rounding::nearest;")),
    "signs of words": (UP, Change("lanes1.h", "static_cast<int32_t>(x) >> 31", "static_cast<int32_t>(x) >> 30")),
    "words not flipped": (DOWN, Change("lanes1.h", "return x ^ (where & bits);", "return x ^ bits;")),
    "a sticky bit lost": (EVEN, Change("lanes1.h", "return x | (y & z);", "return x;")),
    "ties go down": (EVEN, Change("steps.h", "Lanes::add(sticky, half_less_one_)", "sticky")),
    "half a place too low": (AWAY, Change("mode_steps.h", "return (below(rule) + 1) / 2;", "return below(rule) / 2;")),
    "the sticky bit of odd lost": (ODD, Change("mode_steps.h", "Lanes::add(Lanes::both(x, below), below)", "below")),
    "half a place too low, in doubles": (
        AWAY, Change("wide_steps.h", "DOUBLE_FRACTION - 1 - rule", "DOUBLE_FRACTION - 2 - rule")),
    "random bits too many": (RANDOM, Change("wide_steps.h", "WideLanes::both(random, taken)", "random")),
    "random bits one place too high": (
        RANDOM, Change("wide_steps.h", "64 - DOUBLE_FRACTION +", "63 - DOUBLE_FRACTION +")),
    "doubles of another scale": (RANDOM, Change("wide_steps.h", "DOUBLE_SCALE = 896", "DOUBLE_SCALE = 800")),
    "exact sums down without the sign of zero": (
        DOWN, Change("exact_sums.h", "direction == Rounding::down && sum == 0", "false")),
    "exact sums that forget their error": (AWAY, Change("exact_sums.h", "error != 0 &&", "false &&")),
    "exact doubles to nearest below the normal ones": (
        AWAY, Change("exact_sums.h", "again < cut : again > cut", "false : false")),
}  # fmt: skip


def seen(steps, mode):
    """Return the first differences from golden's steps, in the format that has any."""
    for fmt in (CBFLOAT16, FP16, BF16, NARROW, FP32):
        found = differences(steps, fmt, mode, triples(fmt, CASES, np.random.default_rng(5)))
        if found:
            return found
    return []


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_steps_is_seen(tmp_path, fault):
    mode, change = FAULTS[fault]
    assert seen(build(tmp_path / "faulty", mode, change), mode)


@pytest.mark.parametrize("mode", Rounding, ids=str)
def test_steps_without_a_fault_pass_the_same_comparison(steps, mode):
    assert seen(steps[mode], mode) == []


NATIVE_FAULTS = {
    "pairs exchanged": Change("native_halves.h", "exact_step(a >> 16, b >> 16, acc >> 16, format) << 16",
                              "exact_step(a, b >> 16, acc >> 16, format) << 16"),
    "not rounded to odd": Change("native_halves.h", "sum_to_odd(product, value_of(acc & 0xFFFF, format))",
                                 "product + value_of(acc & 0xFFFF, format)"),
    "of another format": Change("native_halves.h", "return exact_steps(a, b, acc, {5, 10, 15});",
                                "return exact_steps(a, b, acc, {5, 10, 14});"),
}  # fmt: skip


@pytest.mark.parametrize("fault", NATIVE_FAULTS)
def test_fault_in_the_native_steps_is_seen(tmp_path, fault):
    steps = build(tmp_path / "faulty", Rounding.NEAREST_EVEN, NATIVE_FAULTS[fault])
    different = 0
    for fmt, kind in ((FP16, FLOAT16), (BF16, BFLOAT16)):
        given = [part[: part.size // 2 * 2] for part in triples(fmt, CASES, np.random.default_rng(6))]
        wanted = multiply_accumulate(*given, operand=fmt, accumulator=fmt)
        finite = (wanted & 0x7FFF) <= fmt.inf
        different += (steps.step(kind, fmt, 0.0, *given) != wanted)[finite].sum()
    assert different
