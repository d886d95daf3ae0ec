"""Every step class over one lane, on the host, has golden's bits; a fault in the headers is seen."""

import numpy as np
import pytest

from golden import BF16, FP16, FP32, FloatFormat, Rounding, decode, encode, kernels, multiply_accumulate, quantize
from golden.formats import SIXTEEN_BIT_FORMATS

from ...golden.kernels.operands import ODD_ONES
from .build import BFLOAT16, FLOAT16
from .judge import SMALL, all_triples, differences, triples, values_of

MODES = pytest.mark.parametrize("mode", Rounding, ids=str)
SHORT = [fmt for fmt in (*SIXTEEN_BIT_FORMATS, *ODD_ONES) if fmt.fraction_bits <= 21 and fmt.emin <= 0]
CASES = 700_000  # of each format and mode
ALL_CASES = len(SHORT) * CASES  # of each step class: 5 million and more
assert ALL_CASES >= 5_000_000


@pytest.mark.turns
@MODES
@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_scaled_steps_of_every_kind_of_operand_are_goldens(steps, fmt, mode):
    given = triples(fmt, CASES, np.random.default_rng([1, mode.value]))
    assert differences(steps[mode], fmt, mode, given) == []


@pytest.mark.turns
@MODES
def test_steps_in_float_of_every_kind_of_operand_are_goldens(steps, mode):
    given = triples(FP32, ALL_CASES, np.random.default_rng([2, mode.value]))
    assert differences(steps[mode], FP32, mode, given) == []


@MODES
def test_scaled_steps_of_every_triple_of_a_format_of_six_bits_are_goldens(steps, mode):
    for seed in range(4 if mode is Rounding.STOCHASTIC else 1):
        assert differences(steps[mode], SMALL, mode, all_triples(SMALL), seed) == []


@pytest.mark.parametrize(("fmt", "kind"), [(FP16, FLOAT16), (BF16, BFLOAT16)], ids=["float16", "bfloat16"])
def test_native_steps_of_every_kind_of_operand_are_goldens(steps, fmt, kind):
    given = triples(fmt, ALL_CASES, np.random.default_rng(3))
    given = [part[: part.size // 2 * 2] for part in given]
    with kernels.use("portable"):
        wanted = multiply_accumulate(*given, operand=fmt, accumulator=fmt)
    got = steps[Rounding.NEAREST_EVEN].step(kind, fmt, 0.0, *given)
    nans = np.isnan(decode(wanted, fmt))
    assert (got[~nans] == wanted[~nans]).all()
    assert (got[nans] == 0x7FFF).all()


@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_values_rounded_at_the_last_place_are_goldens(steps, fmt):
    rng = np.random.default_rng(4)
    scale = -126 - fmt.emin
    singles = rng.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    doubles = rng.normal(size=200_000) * 2.0 ** rng.integers(fmt.emin - 30, fmt.emax, 200_000)
    ties = decode(rng.integers(0, fmt.max_finite, 50_000).astype(np.uint32 if fmt.width > 16 else np.uint16), fmt)
    doubles[:50_000] = ties.astype(np.float64) * (1 + 2.0 ** -(fmt.fraction_bits + 1))
    for values in (singles, doubles):
        exact = encode(values, fmt)
        inside = np.isfinite(quantize(values, fmt))
        got = steps[Rounding.NEAREST_EVEN].rounded(fmt, 2.0**scale, values)
        expected = values_of(fmt, exact, scale)
        assert (got.view(np.uint32) == expected.view(np.uint32))[inside].all()


def test_step_with_a_limit_of_infinity_times_zero_is_a_nan_whatever_the_devices_nan(steps):
    # A device's NaN is 0x7FFFFFFF: half a place more would make it a zero.
    for mode in Rounding:
        for fmt in (FloatFormat("e5m10", 5, 10), FloatFormat("e6m9", 6, 9)):
            inf = np.array([fmt.inf, fmt.inf, 0], np.uint16)
            given = [
                inf,
                np.array([0, 0x3C00, 1], np.uint16),
                np.array([0, fmt.sign_mask | fmt.inf, fmt.nan], np.uint16),
            ]
            assert differences(steps[mode], fmt, mode, given) == []
