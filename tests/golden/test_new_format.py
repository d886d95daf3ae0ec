"""A new format is four numbers: one that no other file knows works in every function."""

from fractions import Fraction

import numpy as np
import pytest

from golden import (
    FloatFormat,
    Reduction,
    convert,
    decode,
    dot,
    encode,
    multiply_accumulate,
    reference,
    softmax,
)
from golden.formats import WIDE_FORMATS

from .judges import Mpfr, all_codes, assert_same_bits, boundary_codes, codes_of, random_codes, values_around, values_of

E7M8 = FloatFormat("e7m8", 7, 8)
E4M3 = FloatFormat("e4m3_with_infinity", 4, 3, bias=9)
E8M15 = FloatFormat("e8m15", 8, 15)
NEW = pytest.mark.parametrize("fmt", [E7M8, E4M3, E8M15], ids=str)


@NEW
def test_new_format_decodes_and_encodes_every_code(fmt):
    codes = all_codes(fmt) if fmt.width <= 16 else random_codes(fmt, 50_000, 14)
    values = decode(codes, fmt)
    wanted = values_of(codes, fmt)
    np.testing.assert_array_equal(values.astype(np.float64), wanted)
    assert_same_bits(encode(values, fmt), np.where(np.isnan(wanted), fmt.nan, codes), codes)


@NEW
def test_new_format_rounds_as_mpfr_does(fmt):
    values = values_around(fmt)
    values = values[:: 1 + len(values) // 20_000]
    wanted, _ = Mpfr(fmt).apply_all("plus", values)
    assert_same_bits(encode(values, fmt), codes_of(wanted, fmt), values)
    for value in values[::50].tolist():
        assert reference.encode(Fraction(value), fmt) == int(encode(value, fmt)), value.hex()


@NEW
def test_new_format_converts_to_and_from_every_named_one(fmt):
    for other in WIDE_FORMATS:
        for source, destination in ((fmt, other), (other, fmt)):
            codes = boundary_codes(source, near=(destination,))[::3]
            got, flags = convert(codes, source, destination, return_flags=True)
            wanted = [reference.convert(code, source, destination) for code in codes.tolist()]
            assert_same_bits(got, np.array([code for code, _ in wanted]), codes)
            assert_same_bits(flags, np.array([int(raised) for _, raised in wanted]), codes)


@NEW
def test_new_format_accumulates_in_itself_and_in_float32(fmt):
    a, b = random_codes(fmt, 2000, 15), random_codes(fmt, 2000, 16)
    for accumulator in (fmt, WIDE_FORMATS[0]):
        acc = random_codes(accumulator, 2000, 17)
        got, flags = multiply_accumulate(a, b, acc, operand=fmt, accumulator=accumulator, return_flags=True)
        for *operands, code, raised in zip(*(x.tolist() for x in (a, b, acc, got, flags)), strict=True):
            step = reference.multiply_accumulate(*operands, operand=fmt, accumulator=accumulator)
            assert step == (code, raised), operands


@NEW
def test_new_format_reduces_and_normalises_as_the_reference_does(fmt):
    rng = np.random.default_rng(18)
    a, b = encode(rng.normal(size=(4, 21)), fmt), encode(rng.normal(size=(4, 21)), fmt)
    for level in (0, 1, 2):
        plan = Reduction.for_level(level, fmt, chunk=8, inner=fmt)
        got = dot(a, b, operand=fmt, reduction=plan)
        wanted = [
            reference.dot(x, y, operand=fmt, reduction=plan)[0] for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
        assert_same_bits(got, np.array(wanted))
    assert_same_bits(softmax(a, fmt), np.array([reference.softmax(row, fmt) for row in a.tolist()]))


def test_new_format_as_inner_of_a_reduction_with_another_outer_is_the_references():
    rng = np.random.default_rng(19)
    a, b = encode(rng.normal(size=30), E4M3), encode(rng.normal(size=30), E4M3)
    plan = Reduction(E7M8, 7, E8M15)
    got, flags = dot(a, b, operand=E4M3, reduction=plan, return_flags=True)
    assert (int(got), int(flags)) == reference.dot(a.tolist(), b.tolist(), operand=E4M3, reduction=plan)
