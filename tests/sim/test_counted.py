"""What the regression expects of counters: golden's counts of what is driven, and every event by construction."""

import numpy as np
import pytest

from golden import CBFLOAT16, reference
from golden.formats import SIXTEEN_BIT_FORMATS
from sim.bench.episode import Ran
from sim.bench.explain_reduction import explain_reduction
from sim.bench.findings import Context, findings
from sim.counts import COUNTERS, as_numbers
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.counted import countable, counts_of_segment, event_reductions
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


def ran(numbers):
    """What the regression says of an episode that has counted so."""
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
