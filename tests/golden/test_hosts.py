"""16-bit formats against other libraries: NumPy, ml_dtypes, gfloat and APyTypes."""

import apytypes
import gfloat
import ml_dtypes
import numpy as np
import pytest

from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat, convert, decode, encode, reference

from .hosts import gfloat_info
from .judges import all_codes, assert_same_bits, boundary_codes, random_codes, values_around

HOSTS = pytest.mark.parametrize(
    ("fmt", "host"), [(FP16, np.float16), (BF16, ml_dtypes.bfloat16)], ids=["float16", "bfloat16"]
)


def canonical(codes, fmt):
    """Hosts keep a NaN's payload and sign; the contract does not."""
    return np.where(fmt.is_nan(codes), fmt.nan, codes)


def host_codes(float32_codes, host):
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(float32_codes).view(np.float32).astype(host).view(np.uint16)


@HOSTS
def test_decode_every_code_is_the_hosts_value(fmt, host):
    codes = all_codes(fmt)
    with np.errstate(invalid="ignore"):
        wanted = codes.view(host).astype(np.float32).view(np.uint32)
    assert_same_bits(decode(codes, fmt).view(np.uint32), canonical(wanted, FP32), codes)
    assert_same_bits(convert(codes, fmt, FP32), canonical(wanted, FP32), codes)


@HOSTS
def test_encode_every_value_gives_its_code_back(fmt, host):
    codes = all_codes(fmt)
    with np.errstate(invalid="ignore"):
        values = codes.view(host).astype(np.float32)
        wider = values.astype(np.float64)
    assert_same_bits(encode(values, fmt), canonical(codes, fmt), codes)
    assert_same_bits(encode(wider, fmt), canonical(codes, fmt), codes)


@HOSTS
def test_convert_float32_boundaries_is_the_hosts_rounding(fmt, host):
    codes = boundary_codes(FP32, near=(fmt,))
    wanted = canonical(host_codes(codes, host), fmt)
    assert_same_bits(convert(codes, FP32, fmt), wanted, codes)
    assert_same_bits([reference.convert(int(code), FP32, fmt)[0] for code in codes], wanted, codes)


@HOSTS
def test_convert_random_float32_is_the_hosts_rounding(fmt, host):
    codes = random_codes(FP32, 500_000, seed=1)
    wanted = canonical(host_codes(codes, host), fmt)
    assert_same_bits(convert(codes, FP32, fmt), wanted, codes)
    assert_same_bits(encode(codes.view(np.float32), fmt), wanted, codes)


@HOSTS
def test_convert_float32_midpoints_is_the_hosts_rounding(fmt, host):
    # Every value of the format and the float32 patterns at, just below and just above its midpoints.
    with np.errstate(invalid="ignore"):
        values = all_codes(fmt)[: fmt.inf].view(host).astype(np.float32).view(np.uint32).astype(np.int64)
    half = (np.append(values[1:], 2 * values[-1] - values[-2]) - values) // 2
    codes = np.concatenate([values + half + offset for offset in (-1, 0, 1)])
    codes = codes[codes >= 0].astype(np.uint32)
    assert_same_bits(convert(codes, FP32, fmt), canonical(host_codes(codes, host), fmt), codes)


def test_encode_float64_to_float16_is_numpys_single_rounding():
    # Through float32 the first of these would round twice: 1 + 2^-11 + 2^-40 lies above the midpoint, float32 on it.
    values = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-40, -(2.0**-25 + 2.0**-70)])
    assert_same_bits(encode(values, FP16), values.astype(np.float16).view(np.uint16))
    assert int(encode(values[0], FP16)) == 0x3C01 != int(encode(np.float32(values[0]), FP16))


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
