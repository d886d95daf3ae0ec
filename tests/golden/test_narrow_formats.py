"""Formats of 8 bits and fewer, on arrays and in the reference, against ml_dtypes and PyTorch: every code and pair."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch

from golden import FLOAT8_E4M3FN, FORMATS, FP32, FloatFormat, convert, decode, encode, kernels, quantize, reference
from golden.formats import NARROW_FORMATS, SIXTEEN_BIT_FORMATS
from golden.reference import Class

from .hosts import host, judged
from .judges import all_codes, assert_same_bits, boundary_codes, random_codes

NARROW = (
    *NARROW_FORMATS,
    FloatFormat("float8_e3m4", 3, 4),
    FloatFormat("float8_e4m3", 4, 3),
    FloatFormat("float8_e4m3b11fnuz", 4, 3, 11, specials="fnuz"),
)
EACH = pytest.mark.parametrize("fmt", NARROW, ids=str)
IN_PYTORCH = [fmt for fmt in NARROW if hasattr(torch, fmt.name)]


def values_in(fmt):
    """The values of every code, as float32, by ml_dtypes."""
    with np.errstate(invalid="ignore"):
        return np.arange(1 << fmt.width, dtype=np.uint8).view(host(fmt)).astype(np.float32)


def limits(fmt):
    """Float32 values at, between and beyond the values of a format, and their neighbours; infinities and NaNs."""
    values = np.unique(np.abs(values_in(fmt)))
    values = values[np.isfinite(values)]
    middle = (values[1:] + values[:-1]) / 2
    values = np.concatenate(
        [middle, values, [values[-1] * 2 - middle[-1], 2 * values[-1], 1e38, np.inf, 1e-40, np.nan]]
    )
    values = values.astype(np.float32)
    beside = [np.nextafter(values, np.float32(0)), np.nextafter(values, np.float32(np.inf))]
    values = np.concatenate([values, *beside])
    return np.append(values, -values)


def by_reference(codes, source, destination):
    return np.array([reference.convert(code, source, destination)[0] for code in codes.tolist()])


@EACH
def test_decode_every_code_is_ml_dtypes_value(fmt):
    codes, wanted = np.arange(1 << fmt.width, dtype=np.uint8), values_in(fmt)
    wanted = np.where(np.isnan(wanted), np.float32(np.nan), wanted)
    assert_same_bits(decode(codes, fmt).view(np.uint32), wanted.view(np.uint32), codes)
    assert decode(codes, fmt).dtype == np.float32
    for code, number in zip(codes.tolist(), wanted.tolist(), strict=True):
        value = reference.decode(code, fmt)
        assert value.is_nan == np.isnan(number) == fmt.is_nan(code)
        assert (value.kind is Class.INFINITE) == np.isinf(number) == fmt.is_inf(code)
        assert value.kind is not Class.FINITE or float(value.as_fraction()) == number
        assert value.is_nan or value.sign == np.signbit(number)


@EACH
def test_encode_and_quantize_of_float32_are_ml_dtypes(fmt):
    patterns = np.concatenate([boundary_codes(FP32, near=(fmt,)), random_codes(FP32, 50_000, 1)]).view(np.float32)
    for values in (limits(fmt), patterns):
        wanted = judged(values, fmt)
        got = encode(values, fmt)
        assert got.dtype == np.uint8
        assert_same_bits(got, wanted, values)
        # One by one they are computed, together they are looked up.
        alone = np.concatenate([encode(piece, fmt) for piece in np.array_split(values[:5000], 7)])
        assert_same_bits(alone, wanted[:5000], values[:5000])
        some = slice(None, None, 1 + len(values) // 3000)
        assert_same_bits(by_reference(values[some].view(np.uint32), FP32, fmt), wanted[some], values[some])
        for path in kernels.paths():
            with kernels.use(path):
                assert_same_bits(quantize(values, fmt).view(np.uint32), decode(got, fmt).view(np.uint32), values)


@EACH
def test_encode_of_float64_beside_every_midpoint_is_the_exact_rounding(fmt):
    values = np.unique(np.abs(limits(fmt).astype(np.float64)))
    values = values[np.isfinite(values)]
    values = np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, np.inf), [5e-324, 1e308]])
    wanted = [reference.encode(Fraction(value), fmt) for value in values.tolist()]
    assert_same_bits(encode(values, fmt), np.array(wanted), values)


@EACH
@pytest.mark.parametrize("source", [*SIXTEEN_BIT_FORMATS, *NARROW], ids=str)
def test_convert_every_code_into_a_narrow_format_is_ml_dtypes_code(source, fmt):
    codes = all_codes(source)
    values = decode(codes, source) if source in SIXTEEN_BIT_FORMATS else values_in(source)
    got = convert(codes, source, fmt)
    assert got.dtype == np.uint8
    wanted = judged(values, fmt)
    assert_same_bits(got, wanted, codes)
    some = slice(None) if source in NARROW else slice(None, None, 31)
    assert_same_bits(by_reference(codes[some], source, fmt), wanted[some], codes[some])


@EACH
@pytest.mark.parametrize("destination", FORMATS, ids=str)
def test_convert_every_narrow_code_into_another_format_has_its_value(fmt, destination):
    codes, values = np.arange(1 << fmt.width, dtype=np.uint8), values_in(fmt)
    got = decode(convert(codes, fmt, destination), destination)
    if destination.width == 32 or destination.name == "bfloat16":
        assert_same_bits(got.view(np.uint32), decode(codes, fmt).view(np.uint32), codes)
    elif hasattr(ml_dtypes, destination.name):
        assert_same_bits(convert(codes, fmt, destination), judged(values, destination), codes)
    else:
        assert_same_bits(convert(codes, fmt, destination), encode(values, destination), codes)


def test_float16_holds_every_value_of_the_narrow_formats():
    for fmt in NARROW_FORMATS:
        values = values_in(fmt)
        with np.errstate(invalid="ignore"):
            there = values.astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(there, values)


@pytest.mark.parametrize("fmt", IN_PYTORCH, ids=str)
def test_encode_and_decode_are_pytorchs(fmt):
    kind = getattr(torch, fmt.name)
    codes = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(codes.copy()).view(kind).float().numpy()
    np.testing.assert_array_equal(decode(codes, fmt), theirs)
    values = limits(fmt)
    wanted = torch.from_numpy(values.copy()).to(kind).view(torch.uint8).numpy()
    # PyTorch saturates into this one format, and into no other.
    overflow = "saturate" if fmt is FLOAT8_E4M3FN else "special"
    got = encode(values, fmt, overflow=overflow)
    assert_same_bits(got, np.where(fmt.is_nan(wanted), np.uint8(fmt.nan), wanted), values)
    assert len(IN_PYTORCH) == 4
