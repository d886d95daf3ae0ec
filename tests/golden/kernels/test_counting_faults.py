"""The judges of the counts can fail: an event miscounted by the kernels' source is seen by a comparison with NumPy."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP32, Reduction, encode, kernels, matmul
from lab.mutants.table import seen_by

from .operands import codes
from .switches import RUN, differences
from .test_counting import numbers

pytestmark = pytest.mark.long

FAULTS = seen_by(__file__)


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
        # A chunk of ones, then a chunk with a single product, whose last digits lie below the digits of the format.
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
    assert sees(fault, FAULTS[fault].by)
