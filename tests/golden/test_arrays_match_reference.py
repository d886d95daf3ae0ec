"""The array functions against the exact reference: every 16-bit code, fp32 boundaries, and formats that are drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden import FP32, convert, decode, encode, multiply_accumulate, reference
from golden.formats import SIXTEEN_BIT_FORMATS, WIDE_FORMATS

from .judges import all_codes, assert_same_bits, boundary_codes, codes, formats, random_codes

PAIRS = [(x, y) for x in SIXTEEN_BIT_FORMATS for y in WIDE_FORMATS]


def converted(given_codes, source, destination):
    results = [reference.convert(code, source, destination) for code in given_codes.tolist()]
    return np.array([code for code, _ in results]), np.array([int(flags) for _, flags in results])


@pytest.mark.turns
@pytest.mark.parametrize(("source", "destination"), PAIRS, ids=[f"{x}-{y}" for x, y in PAIRS])
def test_convert_every_sixteen_bit_code_is_the_references(source, destination):
    # The reference is asked for every code without a sign and for every 17th with one: the others are mirror images.
    given_codes, without_sign = all_codes(source), source.sign_mask
    wanted, wanted_flags = converted(given_codes[:without_sign], source, destination)
    mirrored = np.where(wanted == destination.nan, wanted, wanted + destination.sign_mask)
    some, some_flags = converted(given_codes[without_sign::17], source, destination)
    assert_same_bits(some, mirrored[::17], given_codes[without_sign::17])
    assert_same_bits(some_flags, wanted_flags[::17], given_codes[without_sign::17])

    got, flags = convert(given_codes, source, destination, return_flags=True)
    assert_same_bits(got, np.concatenate([wanted, mirrored]), given_codes)
    assert_same_bits(flags, np.concatenate([wanted_flags, wanted_flags]), given_codes)
    assert_same_bits(convert(given_codes, source, destination), got, given_codes)


@pytest.mark.parametrize("destination", WIDE_FORMATS, ids=str)
def test_convert_float32_boundaries_and_random_codes_is_the_references(destination):
    given_codes = np.concatenate([boundary_codes(FP32, near=(destination,)), random_codes(FP32, 5000, 12)])
    wanted, wanted_flags = converted(given_codes, FP32, destination)
    got, flags = convert(given_codes, FP32, destination, return_flags=True)
    assert_same_bits(got, wanted, given_codes)
    assert_same_bits(flags, wanted_flags, given_codes)


@pytest.mark.turns
@pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
def test_decode_every_sixteen_bit_code_is_the_references_value(fmt):
    for code, number in enumerate(decode(all_codes(fmt), fmt).tolist()):
        wanted = reference.decode(code, fmt)
        if wanted.kind is reference.Class.FINITE:
            assert wanted.as_fraction() == number, hex(code)
            assert wanted.sign == np.signbit(number), hex(code)
        else:
            assert wanted.is_nan == np.isnan(number), hex(code)
            assert wanted.is_nan or number == (-np.inf if wanted.sign else np.inf), hex(code)


@settings(max_examples=300)
@given(data=st.data())
def test_convert_between_drawn_formats_is_the_references(data):
    source, destination = data.draw(formats()), data.draw(formats())
    given_codes = np.array(data.draw(st.lists(codes(source), min_size=1, max_size=20)))
    wanted, wanted_flags = converted(given_codes, source, destination)
    got, flags = convert(given_codes.astype(np.uint32), source, destination, return_flags=True)
    assert_same_bits(got, wanted, given_codes)
    assert_same_bits(flags, wanted_flags, given_codes)


@settings(max_examples=300)
@given(data=st.data())
def test_encode_float64_to_a_drawn_format_is_the_references(data):
    fmt = data.draw(formats())
    value = data.draw(st.floats(allow_nan=False, allow_infinity=False) | st.floats(width=32, allow_nan=False))
    code = int(encode(value, fmt))
    if np.isinf(value):
        assert code == fmt.inf + (value < 0) * fmt.sign_mask
    elif value == 0:
        assert code == np.signbit(value) * fmt.sign_mask
    else:
        ratio = reference.Fraction(value)
        assert code == reference.encode(ratio, fmt)
        # Zeros keep the sign, which a Fraction loses.
        assert code >> (fmt.width - 1) == (value < 0)


@settings(max_examples=500)
@given(data=st.data())
def test_step_in_drawn_formats_is_the_references(data):
    operand, accumulator = data.draw(formats()), data.draw(formats())
    triple = st.tuples(codes(operand), codes(operand), codes(accumulator))
    triples = data.draw(st.lists(triple, min_size=1, max_size=12))
    results = [reference.multiply_accumulate(*each, operand=operand, accumulator=accumulator) for each in triples]
    a, b, acc = (np.array(column, np.uint32) for column in zip(*triples, strict=True))
    got, flags = multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator, return_flags=True)
    assert_same_bits(got, np.array([code for code, _ in results]), a, b, acc)
    assert_same_bits(flags, np.array([int(raised) for _, raised in results]), a, b, acc)


@settings(max_examples=300)
@given(data=st.data())
def test_step_in_one_drawn_format_cancelling_its_product_is_the_references(data):
    # acc within two codes of -round(a*b): the sums whose leading digits cancel.
    fmt = data.draw(formats())
    a, b = data.draw(codes(fmt)), data.draw(codes(fmt))
    product, _ = reference.multiply_accumulate(a, b, 0, operand=fmt, accumulator=fmt)
    acc = (product ^ fmt.sign_mask) + data.draw(st.integers(-2, 2))
    acc = min(max(acc, 0), 2**fmt.width - 1)
    step = reference.multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt)
    assert multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt, return_flags=True) == step
