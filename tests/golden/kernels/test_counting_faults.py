"""The judges of the counts can fail: an event miscounted by the kernels' source is seen by a comparison with NumPy."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP32, Reduction, encode, kernels, matmul

from .build import Change
from .operands import codes
from .seen import RUN, differences, in_paths
from .test_counting import numbers

pytestmark = pytest.mark.long

VECTORS, ANY, REPEATED = "vector_counts.h", "counting_steps.h", "repeated_counts.h"
FAULTS = in_paths(
    avx512={
        "inexact not counted": Change(VECTORS, "inexact = Lanes::increased(inexact, inexact_here);", "(void)0;"),
        "swamped wherever nothing changes": Change(
            VECTORS,
            "Lanes::equal_where(inexact_here, before, after)",
            "Lanes::equal_where(Lanes::ordered(after, after), before, after)",
        ),
        "underflow below the smallest normal value after rounding there": Change(
            VECTORS, "0x00800000 - (1u << (FLOAT_FRACTION - 2 - rule.format.fraction_bits))", "0x00800000"
        ),
        "underflow never watched for": Change(
            "plan.h", "return smallest < smallest_without_tiny;", "return smallest < 0;"
        ),
        "underflow watched for by the block's first chunk": Change(
            "product.cpp", "(y - b) / b_step / chunk_", "0", before="const int64_t piece = "
        ),
        "overflow not inexact": Change(VECTORS, "inexact = Lanes::either_mask(inexact, overflow);", "(void)0;"),
        "overflow in float of an infinity": Change(VECTORS, "Lanes::both_masks(inexact, infinite)", "infinite"),
        "invalid for every NaN": Change(VECTORS, "Lanes::ordered(product, before)", "Lanes::ordered(a, b)"),
        "invalid not of infinity times zero onto a NaN": Change(
            VECTORS, "Lanes::either_mask(no_product, no_sum)", "no_sum"
        ),
        "largest of infinities, too": Change(
            VECTORS, "Lanes::but_not(Lanes::ordered(after, after), beyond)", "Lanes::ordered(after, after)"
        ),
        "largest exponent of the scaled value": Change(
            "counting.h", "scale", "0", before=">> 52) - 1023 - ", after=";"
        ),
        "promotions counted as products": Change("counting.h", "memory_ + kind * (EVENTS + 1) * size_", "memory_"),
    },
    avx2={
        "swamped of the next vector": Change(VECTORS, "SHARED ? 0 : v", "SHARED ? 0 : USED - 1 - v", after="]);"),
        "underflow of exact sums": Change(VECTORS, "inexact", "Lanes::ordered(acc, acc)", before="less_where("),
        "overflow of an infinity": Change(VECTORS, "Lanes::but_not(beyond, Lanes::at_least(sum, infinity))", "beyond"),
        "largest of the last step": Change(
            "lanes256.h", "larger(as_words(x), both(as_words(y), words(0x7FFFFFFF)))", "as_words(y)"
        ),
        "inexact judged to nearest": Change(
            REPEATED,
            "Rounding::down",
            "Rounding::nearest",
            before="const Environment down(",
            after=");\n            count_steps",
        ),
        "inexact promotions judged to nearest": Change(
            REPEATED,
            "Rounding::down",
            "Rounding::nearest",
            before="const Environment down(",
            after=");\n            count_partials",
        ),
        "steps counted from the first sum": Change(REPEATED, "before = after;", "(void)0;"),
        "last of the counted sums not kept": Change(REPEATED, "Lanes::store(sums + at, before);", "(void)0;"),
        "steps counted with the first factors": Change(REPEATED, "factors.x += now * a_pitch;", "(void)0;"),
        "sums of the first vector counted": Change(
            REPEATED, "((k * ROWS + row) * USED + v)", "((k * ROWS + row) * USED)"
        ),
        "promotions of the first vector counted": Change(
            REPEATED, "counters.load(tally.at(i));", "counters.load(tally.at(0));"
        ),
    },
    portable={
        "inexact not counted, portable": Change(ANY, "tally.inexact[i]++;", ""),
        "underflow below the smallest normal value before rounding, portable": Change(
            ANY, "magnitude < min_normal_", "std::fabs(exact) < min_normal_", before="underflow[i] += "
        ),
        "overflow judged by the result, portable": Change(
            ANY, "tally.overflow[i] += magnitude > max_finite_;", "tally.overflow[i] += after - after != 0;"
        ),
        "swamped wherever nothing changes, portable": Change(
            ANY, "tally.swamped[i] += after == before;", "tally.swamped[i] += after == before || before == 0;"
        ),
        "invalid for every NaN, portable": Change(
            ANY, "(exact != exact && product == product && before == before)", "exact != exact"
        ),
        "largest of infinities, portable": Change(
            ANY, "is_finite(after)", "true", before="if (", after=" && magnitude"
        ),
    },
)


def results():
    """Counts of products that meet every event, of levels 0, 1 and 2, to nearest even and up."""
    rng = np.random.default_rng(140)
    for fmt in (CBFLOAT16, BF16):
        for kind in ("any", "normal", "special", "wide", "edges"):
            a, b = codes(kind, fmt, (5, 90), rng), codes(kind, fmt, (90, 40), rng)
            for level in (0, 1, 2):
                for mode in ("nearest_even", "up"):
                    options = {"operand": fmt, "level": level, "rounding": mode}
                    yield from numbers(matmul(a, b, counts=True, **options)[1])
        half, other = (encode(2.0**exponent, fmt) for exponent in (fmt.emin // 2, fmt.emin - fmt.emin // 2))
        near = (np.uint32(half) + rng.integers(-8, 9, (40, 1))).astype(np.uint16)
        b = (np.uint32(other) + rng.integers(-8, 9, (1, 40))).astype(np.uint16)
        yield from numbers(matmul(near, b, operand=fmt, level=2, counts=True)[1])
        # A chunk of ones, then one with a product alone whose last digits lie below the format's.
        a = encode(np.ones((4, 64)), fmt)
        a[:, 32:], a[:, 63] = 0, fmt.min_normal + 1
        yield from numbers(matmul(a, a.T, operand=fmt, reduction=Reduction(fmt, 32, FP32), counts=True)[1])


@pytest.mark.parametrize("path", RUN)
def test_counts_of_the_unchanged_source_agree(wanted, path):
    with kernels.use(path):
        assert differences(results, wanted) == 0


@pytest.mark.parametrize("path", RUN)
def test_counts_with_every_fault_switched_off_agree(sees, path):
    assert not sees(None, path)


@pytest.mark.parametrize("fault", FAULTS)
def test_miscounted_event_is_seen(sees, fault):
    assert sees(fault, FAULTS[fault][0])
