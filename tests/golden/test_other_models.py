"""The 1-6-9 formats, in both biases, against gfloat and APyTypes."""

import apytypes
import gfloat
import numpy as np
import pytest

from golden import CB16, CBFLOAT16, FloatFormat, decode, encode

from .hosts import gfloat_info
from .judges import all_codes, assert_same_bits, values_around

FORMATS = pytest.mark.parametrize("fmt", [CBFLOAT16, CB16], ids=str)


def asked_values(fmt: FloatFormat) -> np.ndarray:
    edges = values_around(fmt)
    rng = np.random.default_rng(11)
    exponents = rng.integers(fmt.emin - fmt.fraction_bits - 2, fmt.emax + 3, 100_000)
    values = np.concatenate([edges, -edges, np.ldexp(rng.uniform(1, 2, 100_000), exponents)])
    return np.concatenate([values, [np.inf, -np.inf, -0.0]])


@FORMATS
def test_decode_every_code_is_gfloats_value(fmt):
    codes = all_codes(fmt)
    wanted = gfloat.decode_ndarray(gfloat_info(fmt), codes.astype(np.int64))
    np.testing.assert_array_equal(decode(codes, fmt).astype(np.float64), wanted)
    numbers = ~np.isnan(wanted)
    assert_same_bits(np.signbit(decode(codes, fmt))[numbers], np.signbit(wanted)[numbers], codes[numbers])


@FORMATS
def test_encode_edges_and_random_values_is_gfloats_code(fmt):
    values, info = asked_values(fmt), gfloat_info(fmt)
    assert_same_bits(encode(values, fmt), gfloat.encode_ndarray(info, gfloat.round_ndarray(info, values)), values)


@FORMATS
def test_encode_edges_and_random_values_is_apytypes_code(fmt):
    # from_float, not cast: in APyTypes 0.5.1 cast flushes values just below the smallest normal.
    values = asked_values(fmt)
    judged = apytypes.APyFloatArray.from_float(values.tolist(), fmt.exponent_bits, fmt.fraction_bits, fmt.bias)
    assert_same_bits(encode(values, fmt), np.array(judged.to_bits()), values)


@FORMATS
def test_decode_every_finite_code_is_apytypes_value(fmt):
    codes = all_codes(fmt)[: fmt.inf]
    judged = apytypes.APyFloatArray.from_bits(codes.tolist(), fmt.exponent_bits, fmt.fraction_bits, fmt.bias)
    np.testing.assert_array_equal(decode(codes, fmt).astype(np.float64), judged.to_numpy())
