"""Histograms of exponents, and distances in ulp, against the plain definition."""

import math
from collections import Counter

import numpy as np
import pytest

import golden
from golden.formats import format_named
from golden.torch.instruments.observe.tallies import Counted, Histogram

VALUES = np.random.default_rng(3).standard_normal(500).astype(np.float32) * np.float32(2.0) ** np.arange(-125, 125, 0.5)
SPECIAL = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, 2.0**-140, -(2.0**-149), 65504.0], np.float32)


def naive(values, fmt):
    """Return the record of values, one by one."""
    wanted = {"format": fmt.name, "total": values.size, "zero": 0, "subnormal": 0, "infinite": 0, "nan": 0}
    exponents = Counter()
    for value in values.ravel().tolist():
        if math.isnan(value):
            wanted["nan"] += 1
        elif math.isinf(value):
            wanted["infinite"] += 1
        elif value == 0:
            wanted["zero"] += 1
        else:
            exponent = max(math.frexp(value)[1] - 1, -127)
            exponents[str(exponent)] += 1
            wanted["subnormal"] += exponent < fmt.emin
    return wanted | {"exponents": exponents}


@pytest.mark.parametrize("name", ["cbfloat16", "float16", "bfloat16", "float8_e4m3fn"])
def test_histogram_of_values_is_what_one_counts_by_hand(name):
    histogram = Histogram(format_named(name))
    values = np.concatenate([VALUES.astype(np.float32), SPECIAL])
    histogram.add(values)
    assert histogram.record() == naive(values, format_named(name))
    assert histogram.beyond_format == sum(
        count for each, count in histogram.record()["exponents"].items() if int(each) > format_named(name).emax
    )


def test_histogram_of_any_strides_counts_every_value():
    fmt, values = format_named("cbfloat16"), np.broadcast_to(VALUES.astype(np.float32)[:60].reshape(6, 10), (3, 6, 10))
    for view in (values, values.swapaxes(0, 2), values[:, ::2, ::-1]):
        histogram = Histogram(fmt)
        histogram.add(view)
        assert histogram.record() == naive(np.ascontiguousarray(view), fmt)


def test_histograms_add_up():
    fmt = format_named("bfloat16")
    parts, whole = [Histogram(fmt), Histogram(fmt)], Histogram(fmt)
    for part, values in zip(parts, (VALUES.astype(np.float32), SPECIAL), strict=True):
        part.add(values)
        whole.add(values)
    parts[0].merge(parts[1])
    assert parts[0].record() == whole.record()


@pytest.mark.parametrize("name", ["cbfloat16", "float16", "bfloat16"])
def test_distance_of_neighbouring_codes_is_one_ulp(name):
    fmt = format_named(name)
    codes = np.arange(1, fmt.max_finite, 7, dtype=np.uint16)
    values = golden.decode(codes, fmt)
    distance = Counted()
    distance.compare(golden.decode((codes + 1).astype(np.uint16), fmt), values, fmt)
    assert (distance.ulp, distance.largest, distance.compared) == (len(codes), 1.0, len(codes))


def test_distance_leaves_out_what_is_not_finite():
    fmt, distance = format_named("float16"), Counted()
    distance.compare(np.array([1.0, math.inf, 3.0], np.float32), np.array([2.0, 1.0, math.nan], np.float32), fmt)
    assert distance.distance() == {"relative": 0.5, "ulp_mean": 512.0, "ulp_max": 512.0}
    assert Counted().distance() is None
