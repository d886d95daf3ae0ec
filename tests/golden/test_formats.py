"""The constants of NUMERICS section 1, each written out here and derived in the golden model."""

import numpy as np
import pytest

from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat, decode, encode, format_named
from golden.formats import FORMATS, NARROW_FORMATS, NEIGHBOUR_FORMATS, WIDE_FORMATS

# name, alias, exponent bits, fraction bits, bias, max finite, min normal, min subnormal, inf, nan
TABLE = [
    ("float32", "fp32", 8, 23, 127, (2 - 2.0**-23) * 2.0**127, 2.0**-126, 2.0**-149, 0x7F800000, 0x7FC00000),
    ("float16", "fp16", 5, 10, 15, 65504.0, 2.0**-14, 2.0**-24, 0x7C00, 0x7E00),
    ("bfloat16", "bf16", 8, 7, 127, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 2.0**-133, 0x7F80, 0x7FC0),
    ("cbfloat16", "cbfloat16", 6, 9, 31, 4290772992.0, 2.0**-30, 2.0**-39, 0x7E00, 0x7F00),
    ("cb16", "cb16", 6, 9, 42, 2095104.0, 2.0**-41, 2.0**-50, 0x7E00, 0x7F00),
]


def test_cb16_published_constant_is_six():
    assert float(decode(0x5900, CB16)) == 6.0
    assert int(encode(6.0, CB16)) == 0x5900


def test_cbfloat16_initial_loss_scale_is_finite_and_has_the_largest_exponent():
    assert CBFLOAT16.emax == 31
    assert float(decode(encode(2.0**31, CBFLOAT16), CBFLOAT16)) == 2.0**31
    assert int(encode(2.0**32, CBFLOAT16)) == CBFLOAT16.inf


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_format_constants_are_those_of_the_contract(row):
    name, alias, exponent_bits, fraction_bits, bias, max_finite, min_normal, min_subnormal, inf, nan = row
    fmt = format_named(name)
    assert fmt is format_named(alias)
    assert (fmt.exponent_bits, fmt.fraction_bits, fmt.bias) == (exponent_bits, fraction_bits, bias)
    assert fmt.width == 1 + exponent_bits + fraction_bits
    assert fmt.precision == fraction_bits + 1
    assert (fmt.inf, fmt.nan) == (inf, nan)
    assert float(decode(fmt.max_finite, fmt)) == max_finite
    assert float(decode(fmt.min_normal, fmt)) == min_normal == 2.0**fmt.emin
    assert float(decode(fmt.min_subnormal, fmt)) == min_subnormal
    assert float(decode(fmt.one, fmt)) == 1.0
    assert np.signbit(decode(fmt.sign_mask, fmt))
    assert float(decode(fmt.inf, fmt)) == np.inf


def test_formats_list_holds_those_of_the_contract():
    assert [fmt.name for fmt in WIDE_FORMATS] == [row[0] for row in TABLE]
    assert (*WIDE_FORMATS, *NARROW_FORMATS, *NEIGHBOUR_FORMATS) == FORMATS
    assert {fmt.width for fmt in NARROW_FORMATS} == {4, 6, 8}


def test_float32_holds_every_format_and_cbfloat16_not_float16():
    assert all(FP32.holds(fmt) for fmt in FORMATS)
    assert not CBFLOAT16.holds(FP16)  # range suffices, precision does not
    assert not FP16.holds(BF16)
    assert not CBFLOAT16.holds(CB16)  # same fields, but another bias


def test_format_bias_defaults_to_half_the_exponent_range():
    assert [FloatFormat("any", bits, 2).bias for bits in range(2, 9)] == [1, 3, 7, 15, 31, 63, 127]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("", 6, 9), TypeError, r"name: got '', must be a non-empty string"),
        ((3, 6, 9), TypeError, r"name: got 3"),
        (("f", 6.0, 9), TypeError, r"exponent_bits: got 6\.0, must be an int from 2 to 8"),
        (("f", True, 9), TypeError, r"exponent_bits: got True"),
        (("f", 1, 9), ValueError, r"exponent_bits: got 1, must be from 2 to 8"),
        (("f", 9, 9), ValueError, r"exponent_bits: got 9, must be from 2 to 8"),
        (("f", 6, 0), ValueError, r"fraction_bits: got 0, must be from 1 to 23"),
        (("f", 6, 24), ValueError, r"fraction_bits: got 24, must be from 1 to 23"),
        (("f", 6, 9, 1.5), TypeError, r"bias: got 1\.5, must be an int or None"),
        (("f", 8, 9, 126), ValueError, r"bias: got 126, which puts .* to 2\^128; float32 must hold every value"),
        (("f", 8, 23, 128), ValueError, r"bias: got 128, which puts .* from 2\^-150 "),
    ],
)
def test_format_outside_limits_raises_naming_argument(arguments, error, message):
    with pytest.raises(error, match=message):
        FloatFormat(*arguments)


def test_format_without_one_raises_when_asked_for_it():
    with pytest.raises(ValueError, match=r"far with bias 140 has no normal code for 1\.0"):
        _ = FloatFormat("far", 5, 3, bias=140).one
