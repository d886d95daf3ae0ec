"""Expected counters of the regression: golden's counts of the stimulus, and every event by construction."""

import numpy as np
import pytest

from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FP16,
    Reduction,
    Rounding,
    encode,
    reference,
)
from golden.formats import SIXTEEN_BIT_FORMATS
from sim.bench.episode import Ran
from sim.bench.explain_reduction import explain_reduction
from sim.bench.findings import Context, findings
from sim.counts import COUNTERS, as_numbers
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.counted import counts_of_segment
from sim.stimulus.counted_events import countable, event_reductions
from sim.stimulus.reductions import UNSUPPORTED, Segment

ONE, LEAST, LARGEST = CBFLOAT16.one, CBFLOAT16.min_subnormal, CBFLOAT16.max_finite
PROMOTIONS = COUNTERS.index("promotions.steps")


def counts(a, level, chunk=0, **given):
    return counts_of_segment(Segment(0, level, a, [ONE] * len(a), chunk=chunk, **given), CBFLOAT16)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("chunk", [0, 2])
def test_counted_segment_is_what_the_reference_counts(level, chunk):
    a = [ONE, LEAST, LARGEST, LARGEST, ONE]
    *_, wanted = reference.dot(a, [ONE] * 5, operand=CBFLOAT16, level=level, chunk=chunk or None, counts=True)
    assert counts(a, level, chunk) == as_numbers(wanted)


@pytest.mark.parametrize(
    ("products", "chunk", "promotions"), [(3, 0, 0), (3, 2, 1), (4, 2, 2), (1, 2, 0), (2, 2, 1)], ids=str
)
def test_counted_segment_given_up_has_the_promotions_of_full_chunks(products, chunk, promotions):
    numbers = counts([ONE] * products, 2, chunk, last=False)
    assert (numbers[0], numbers[PROMOTIONS]) == (products, promotions)
    assert counts([ONE] * products, 0, chunk, last=False)[0] == products


def test_counted_segment_without_products_is_one_step_and_a_refused_one_is_none():
    assert [counts([], level)[0] for level in (0, 1, 2)] == [1, 1, 1]
    assert [counts([], level)[PROMOTIONS] for level in (0, 1, 2)] == [0, 1, 1]
    assert counts([ONE], 1, error=UNSUPPORTED) == [0] * len(COUNTERS)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("operand", SIXTEEN_BIT_FORMATS, ids=str)
def test_counted_events_move_every_counter_that_can_move(operand, level):
    total = np.zeros(len(COUNTERS), np.int64)
    for a, b, chunk in event_reductions(operand, level):
        total += counts_of_segment(Segment(0, level, a, b, chunk=chunk), operand)
    moved = {name for name, number in zip(COUNTERS, total.tolist(), strict=True) if number}
    assert moved >= countable(operand, level)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize(
    ("operand", "inner"),
    [(CBFLOAT16, None), (FP16, None), (FLOAT8_E5M2, None), (FLOAT8_E5M2, CBFLOAT16), (FLOAT4_E2M1FN, CBFLOAT16),
     (FLOAT8_E4M3FNUZ, FP16), (FLOAT6_E3M2FN, BF16)],
    ids=str,
)  # fmt: skip
def test_counted_events_in_every_mode_move_the_counters_that_can_move_and_no_other(operand, inner, level):
    for mode in Rounding:
        moved = set()
        for a, b, chunk in event_reductions(operand, level, inner):
            for number in (0, 15) if mode is Rounding.STOCHASTIC else (0,):
                brought = [[mode.value] * len(a), *[[number] * len(a)] * 2]
                numbers = counts_of_segment(segment_with(a, b, level, chunk, *brought), operand, inner, 4)
                moved |= {name for name, number in zip(COUNTERS, numbers, strict=True) if number}
        assert moved == countable(operand, level, inner), mode


def segment_with(a, b, level, chunk, modes, random, random_promotion):
    """Modes and random numbers of the products of a segment."""
    return Segment(0, level, a, b, chunk=chunk, modes=modes, random=random, random_promotion=random_promotion)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("mode", [Rounding.UP, Rounding.TO_ODD], ids=str)
def test_counted_segment_of_a_mode_is_what_the_reference_counts(level, mode):
    a = [0x39, 0x01, 0x7B, 0x7B, 0x3C]
    plan = Reduction.for_level(level, FLOAT8_E5M2, chunk=2, inner=CB16)
    *_, wanted = reference.dot(a, a, operand=FLOAT8_E5M2, reduction=plan, rounding=mode, counts=True)
    segment = Segment(0, level, a, a, chunk=2, modes=[mode.value] * 5)
    assert counts_of_segment(segment, FLOAT8_E5M2, CB16) == as_numbers(wanted)


@pytest.mark.parametrize(
    ("modes", "numbers", "promotions", "inexact", "swamped"),
    [
        # From 1.0, the chunk 0x0001 * 0x3e00 is the smallest number, which the promotion loses in all modes but "up".
        (["down"], None, 1, 1, 1),
        (["up"], None, 1, 1, 0),
        (["stochastic"], [0], 1, 1, 1),
        # The last product's mode counts: of two chunks of two, one promotion is rounded up.
        (["up", "down", "down", "up"], None, 2, 2, 1),
    ],
)
def test_counted_promotion_has_the_mode_of_the_product_that_ends_its_chunk(
    modes, numbers, promotions, inexact, swamped
):
    length = len(modes)
    codes = [Rounding[mode.upper()].value for mode in modes]
    segment = Segment(0, 2, [LEAST] * length, [ONE] * length, chunk=2, initial=ONE, first=False, modes=codes)
    segment.random = segment.random_promotion = numbers or []
    found = dict(zip(COUNTERS, counts_of_segment(segment, CBFLOAT16, None, 16), strict=True))
    assert [found[f"promotions.{event}"] for event in ("steps", "inexact", "swamped")] == [promotions, inexact, swamped]
    assert found["products.inexact"] == 0


def test_counted_stochastic_steps_take_their_own_numbers():
    # 0x3e00 (1.0) and a quarter of an ulp: of 4 random bits, 12 round it up and 11 do not. A promotion has its own.
    quarter = int(encode(2.0**-11, CBFLOAT16))
    modes = [Rounding.STOCHASTIC.value] * 2
    for chunk, random, promotion, swamped in (
        (0, 12, 0, [0, 0]), (0, 11, 15, [1, 0]), (1, 0, 12, [0, 0]), (1, 15, 11, [0, 1]),
    ):  # fmt: skip
        segment = segment_with([ONE, quarter], [ONE, ONE], 2, chunk, modes, [random] * 2, [promotion] * 2)
        found = dict(zip(COUNTERS, counts_of_segment(segment, CBFLOAT16, None, 4), strict=True))
        assert [found["products.swamped"], found["promotions.swamped"]] == swamped


def ran(numbers):
    """The regression's findings for an episode with such counts."""
    port = Port(Fields({"a": 16}), Fields({"result": 16, "register": 4, "error": 2}), counters="ports")
    scenario = Scenario(
        "one",
        np.zeros(1, np.uint64),
        np.zeros(1, np.uint64),
        np.zeros(1, np.int64),
        counts=np.arange(len(COUNTERS))[None],
    )
    episode = Ran([0], accepted=1, cycles=1, counts=numbers)
    return findings(Context("unit", 1, 1.0, port, []), scenario, [episode], explain_reduction)


def test_findings_of_right_counts_are_none_and_of_a_wrong_one_name_it():
    right = list(range(len(COUNTERS)))
    assert ran(right) == []
    assert ran([*right[:5], 6, *right[6:]])[0] == "products.swamped counts 6, must be 5"
