"""The comparison of steps can fail: each fault in the headers is seen."""

from functools import cache

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Rounding, multiply_accumulate

from ...golden.kernels.build import Change
from .build import BFLOAT16, FLOAT16, build, build_switched
from .judge import differences, triples

pytestmark = pytest.mark.long

CASES = 20_000
NARROW = FloatFormat("e4m3", 4, 3)
EVEN, ZERO, DOWN, UP, AWAY, ODD, RANDOM = Rounding

TO_ODD, SUM = "Lanes::multiply_add_to_odd(a, b, acc)", "Lanes::multiply_add(a, b, acc)"
WIDE_SUM = "WideLanes::as_words(WideLanes::multiply_add(a, b, acc))"

# With a fault the steps of a mode differ in some format.
FAULTS = {
    "sums not rounded to odd": (EVEN, Change("lanes1.h", "(as_words(down) & 1) != 0", "false", after=" ?")),
    "sums of zero negative": (
        EVEN, Change("lanes1.h", "(as_words(down) & 1) != 0", "(as_words(up) & 1) == 0", after=" ?")),
    "a NaN carried into the sign": (
        EVEN, Change("steps.h", f"Lanes::quieted({TO_ODD})", TO_ODD)),
    "a NaN carried into the sign, up": (
        UP, Change("mode_steps.h", f"Lanes::quieted(Lanes::as_words({SUM}))", f"Lanes::as_words({SUM})")),
    "a NaN carried into the sign, in doubles": (
        AWAY, Change("wide_steps.h", f"WideLanes::quieted({WIDE_SUM})", WIDE_SUM)),
    "negative NaNs alone": (EVEN, Change("lanes1.h", "0x7FC00000", "0x7FFFFFFF", before="int32_t nan = ")),
    "no infinity at the limit": (
        EVEN, Change(
            "lanes1.h", "as_floats(as_words(x) & 0x7FFFFFFF) >= limit", "as_floats(as_words(x) * 2 / 2) > limit")),
    "infinities positive": (
        EVEN, Change("lanes1.h", "(as_words(x) & 0x80000000) | 0x7F800000", "0x7F800000")),
    "no infinity at the limit, in doubles": (
        RANDOM, Change("lanes1.h", "as_doubles(as_words(x) & ~(1ull << 63)) >= limit", "false")),
    "infinities that are replaced": (ZERO, Change("lanes1.h", "magnitude < 0x7F800000", "true", after=" ? by")),
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
        AWAY, Change("wide_steps.h", "DOUBLE_FRACTION - 1", "DOUBLE_FRACTION - 2", after=" - rule")),
    "random bits too many": (RANDOM, Change("wide_steps.h", "WideLanes::both(random, taken)", "random")),
    "random bits one place too high": (
        RANDOM, Change("wide_steps.h", "64 - DOUBLE_FRACTION", "63 - DOUBLE_FRACTION", after=" +")),
    "doubles of another scale": (RANDOM, Change("wide_steps.h", "DOUBLE_SCALE = 896", "DOUBLE_SCALE = 800")),
    "exact sums down without the sign of zero": (
        DOWN, Change("exact_sums.h", "direction == Rounding::down && sum == 0", "false")),
    "exact sums that forget their error": (AWAY, Change("exact_sums.h", "error != 0", "false", after=" &&")),
    "exact doubles to nearest below the normal ones": (
        AWAY, Change("exact_sums.h", "cut < 0 ? again < cut : again > cut", "false")),
}  # fmt: skip


#: Constants for the compiler: each needs its own build.
OF_THE_COMPILER = {
    "down as up",
    "up as to nearest",
    "nearest away from sums to nearest",
    "toward zero from sums to nearest",
    "doubles of another scale",
}


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    """The steps of a mode with all its faults in them, built at the first use."""

    @cache
    def of(mode):
        faults = {name: change for name, (its, change) in FAULTS.items() if its is mode}
        faults |= NATIVE_FAULTS if mode is EVEN else {}
        switchable = {name: change for name, change in faults.items() if name not in OF_THE_COMPILER}
        return build_switched(tmp_path_factory.mktemp("switched") / str(mode), mode, switchable)

    return of


def seen(steps, mode):
    """Return the first differences from golden's steps, in the format that has any."""
    for fmt in (CBFLOAT16, FP16, BF16, NARROW, FP32):
        found = differences(steps, fmt, mode, triples(fmt, CASES, np.random.default_rng(5)))
        if found:
            return found
    return []


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_steps_is_seen(tmp_path, switched, fault):
    mode, change = FAULTS[fault]
    is_alone = fault in OF_THE_COMPILER
    assert seen(build(tmp_path / "faulty", mode, change) if is_alone else switched(mode).with_fault(fault), mode)


@pytest.mark.parametrize("mode", Rounding, ids=str)
def test_steps_with_every_fault_switched_off_pass_the_same_comparison(switched, mode):
    assert seen(switched(mode).with_fault(None), mode) == []


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


def native_differences(steps):
    different = 0
    for fmt, kind in ((FP16, FLOAT16), (BF16, BFLOAT16)):
        given = [part[: part.size // 2 * 2] for part in triples(fmt, CASES, np.random.default_rng(6))]
        wanted = multiply_accumulate(*given, operand=fmt, accumulator=fmt)
        finite = (wanted & 0x7FFF) <= fmt.inf
        different += (steps.step(kind, fmt, 0.0, *given) != wanted)[finite].sum()
    return different


@pytest.mark.parametrize("fault", NATIVE_FAULTS)
def test_fault_in_the_native_steps_is_seen(switched, fault):
    assert native_differences(switched(EVEN).with_fault(fault))


def test_native_steps_with_every_fault_switched_off_are_the_same(switched):
    assert native_differences(switched(EVEN).with_fault(None)) == 0
