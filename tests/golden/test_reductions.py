"""Dot products at the three levels: against the reference, and against the contract's loop run on MPFR."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, Flag, Reduction, convert, decode, dot, encode, reference
from golden.formats import SIXTEEN_BIT_FORMATS

from .judges import INVALID, Mpfr, assert_same_bits, codes_of, random_codes, values_of

ALL = pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
LEVELS = pytest.mark.parametrize("level", [0, 1, 2])
CHUNK = 4


def outer_of(level, fmt):
    return fmt if level == 2 else FP32


def normal_codes(shape, fmt, seed):
    return encode(np.random.default_rng(seed).normal(size=shape), fmt)


def wanted(a, b, initial=None, **options):
    starts = np.broadcast_to(0 if initial is None else initial, len(a)).tolist()
    rows = zip(a.tolist(), b.tolist(), starts, strict=True)
    results = [reference.dot(x, y, initial=start, **options) for x, y, start in rows]
    return np.array([code for code, _ in results]), np.array([int(flags) for _, flags in results])


def assert_agrees(a, b, **options):
    got, flags = dot(a, b, return_flags=True, **options)
    codes, raised = wanted(a, b, **options)
    assert_same_bits(got, codes)
    assert_same_bits(flags, raised)
    assert_same_bits(dot(a, b, **options), codes)
    return got


def mpfr_dot(a, b, inner, chunk, outer, initial=0.0):
    """Section 5, line by line, on float64 values that MPFR rounds; a chain if `chunk` is 0."""
    steps, total, flags = (Mpfr(inner), Mpfr(outer)), initial, 0
    for start in range(0, len(a), chunk or 1):
        if not chunk:
            total, raised = steps[1].apply("fma", a[start], b[start], total)
            flags |= raised
            continue
        partial = 0.0
        for x, y in zip(a[start : start + chunk], b[start : start + chunk], strict=True):
            partial, raised = steps[0].apply("fma", x, y, partial)
            flags |= raised
        total, raised = steps[1].apply("add", partial, total)
        flags |= raised
    return int(codes_of(np.array([total]), outer)[0]), flags


@ALL
@LEVELS
@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 1])
def test_dot_of_any_length_is_the_references(fmt, level, length):
    a, b = normal_codes((5, length), fmt, 20), normal_codes((5, length), fmt, 21)
    initial = normal_codes(5, outer_of(level, fmt), 22)
    for chunk in (CHUNK, 1, None):
        assert_agrees(a, b, operand=fmt, level=level, chunk=chunk)
        assert_agrees(a, b, operand=fmt, level=level, chunk=chunk, initial=initial)
        assert_agrees(a, b, operand=fmt, level=level, chunk=chunk, out=CBFLOAT16)


@ALL
@LEVELS
def test_dot_of_any_codes_has_the_references_codes_and_flags(fmt, level):
    # Any pattern: infinities, NaNs of both kinds, subnormals, overflows within and across chunks.
    a, b = random_codes(fmt, 600, 23).reshape(200, 3), random_codes(fmt, 600, 24).reshape(200, 3)
    assert_agrees(
        a, b, operand=fmt, level=level, chunk=2, initial=random_codes(outer_of(level, fmt), 200, 25), out=FP16
    )


@ALL
@LEVELS
def test_dot_is_the_loop_of_the_contract_on_mpfr(fmt, level):
    a, b = normal_codes((20, 70), fmt, 26), normal_codes((20, 70), fmt, 27)
    inner, chunk = (FP32, 0) if level == 0 else (fmt, 32)
    got, flags = dot(a, b, operand=fmt, level=level, return_flags=True)
    for x, y, code, raised in zip(values_of(a, fmt), values_of(b, fmt), got.tolist(), flags.tolist(), strict=True):
        assert mpfr_dot(x.tolist(), y.tolist(), inner, chunk, outer_of(level, fmt)) == (code, raised)


@ALL
def test_dot_of_ones_stalls_where_the_accumulators_precision_ends(fmt):
    limit = 2**fmt.precision  # above it the ulp is 2, and a one is a tie that goes to the even total
    ones = np.full(limit + 100, fmt.one, np.uint16)
    assert float(decode(dot(ones, ones, operand=fmt, level=2, chunk=None), fmt)) == limit
    assert float(decode(dot(ones, ones, operand=fmt, level=1, chunk=None), FP32)) == limit
    assert float(decode(dot(ones, ones, operand=fmt, level=1), FP32)) == limit + 100
    assert float(decode(dot(ones, ones, operand=fmt, level=0), FP32)) == limit + 100


def test_dot_of_ones_in_chunks_stalls_at_the_chunk_times_that_limit():
    ones = np.full(32 * 256 + 320, BF16.one, np.uint16)
    assert float(decode(dot(ones, ones, operand=BF16, level=2), BF16)) == 32 * 256
    assert float(decode(dot(ones, ones, operand=BF16, level=1), FP32)) == len(ones)
    four = np.full(4096 + 40, CBFLOAT16.one, np.uint16)
    assert float(decode(dot(four, four, operand=CBFLOAT16, level=2, chunk=4), CBFLOAT16)) == 4096


def test_dot_keeps_the_order_of_the_products():
    # 2^10, whose ulp is 2, swallows every later half; summed first, the halves count.
    big, half = encode(2.0**10, CBFLOAT16), encode(0.5, CBFLOAT16)
    first, last = np.array([big, *[half] * 8], np.uint16), np.array([*[half] * 8, big], np.uint16)
    ones = np.full(9, CBFLOAT16.one, np.uint16)
    values = [float(decode(dot(x, ones, operand=CBFLOAT16, level=2), CBFLOAT16)) for x in (first, last)]
    assert values == [1024.0, 1028.0]


@ALL
def test_dot_of_negative_zeros_keeps_the_sign_only_in_the_chain_of_level_0(fmt):
    minus_zero, one = np.array([fmt.sign_mask], np.uint16), np.array([fmt.one], np.uint16)
    for level, code in ((0, FP32.sign_mask), (1, 0), (2, 0)):
        initial = outer_of(level, fmt).sign_mask
        # Levels 1 and 2: the partial starts from +0, and +0 + -0 is +0.
        got = dot(minus_zero, one, operand=fmt, level=level, initial=initial)
        assert int(got) == code
        assert reference.dot(minus_zero.tolist(), one.tolist(), operand=fmt, level=level, initial=initial) == (code, 0)
        assert int(dot(minus_zero[:0], one[:0], operand=fmt, level=level, initial=initial)) == initial
        assert int(dot(minus_zero, one, operand=fmt, level=level)) == 0


@LEVELS
def test_dot_of_nothing_gives_the_initial_value_whatever_it_is(level):
    nothing, fmt = np.zeros(0, np.uint16), CBFLOAT16
    outer = outer_of(level, fmt)
    for initial in (0, outer.one, outer.inf, outer.inf + 1, outer.sign_mask | outer.nan):
        assert dot(nothing, nothing, operand=fmt, level=level, initial=initial, return_flags=True) == (initial, 0)
        assert reference.dot([], [], operand=fmt, level=level, initial=initial) == (initial, 0)


def test_dot_of_nothing_from_signalling_nan_0x7f800001_into_its_own_format_is_converted():
    nothing = np.zeros(0, np.uint16)
    options = {"operand": CBFLOAT16, "level": 0, "initial": 0x7F800001, "out": FP32}
    assert reference.dot([], [], **options) == (0x7FC00000, INVALID)
    assert dot(nothing, nothing, return_flags=True, **options) == (0x7FC00000, INVALID)


def test_dot_flags_are_those_of_every_step_promotion_and_conversion():
    def flags(a, b, **options):
        options = {"operand": FP16, "chunk": 2, **options}
        given = (encode(np.array(each), FP16) for each in (a, b))
        code, raised = dot(*given, return_flags=True, **options)
        return int(code), Flag(int(raised))

    big = 65504.0
    inexact, overflow = Flag.INEXACT, Flag.OVERFLOW | Flag.INEXACT
    one = FP32.one
    assert flags([1.0, 2.0], [1.0, 0.0], level=1) == (one, Flag(0))
    # An overflow in the first chunk, met by an infinity of the other sign in the second.
    assert flags([big, big, -np.inf], [1.0, 1.0, 1.0], level=2) == (FP16.nan, overflow | Flag.INVALID)
    # In a step only: 1 + 2^-12 is inexact in fp16, and not in fp32.
    assert flags([1.0, 2.0**-6], [1.0, 2.0**-6], level=1) == (one, inexact)
    assert flags([1.0, 2.0**-6], [1.0, 2.0**-6], level=0) == (one + (1 << 11), Flag(0))
    # In the promotion only: both chunks are exact, their fp16 sum is not, their fp32 sum is.
    assert flags([1.0, 0.0, 2.0**-6], [1.0, 0.0, 2.0**-6], level=2) == (FP16.one, inexact)
    assert flags([1.0, 0.0, 2.0**-6], [1.0, 0.0, 2.0**-6], level=1) == (one + (1 << 11), Flag(0))
    # In the conversion only.
    assert flags([big, 0.0, big], [1.0, 0.0, 1.0], level=1, out=FP16) == (FP16.inf, overflow)


def test_dot_takes_a_reduction_in_place_of_a_level():
    fmt = BF16
    a, b = normal_codes((3, 11), fmt, 28), normal_codes((3, 11), fmt, 29)
    plan = Reduction(CBFLOAT16, 3, FP16)
    assert_agrees(a, b, operand=fmt, reduction=plan)
    assert_same_bits(
        dot(a, b, operand=fmt, reduction=Reduction.for_level(2, fmt, chunk=5)), dot(a, b, operand=fmt, level=2, chunk=5)
    )


def test_reduction_for_level_is_the_table_of_the_contract():
    assert Reduction.for_level(0, BF16, chunk=5) == Reduction(FP32, None, FP32)
    assert Reduction.for_level(1, BF16) == Reduction(BF16, 32, FP32)
    assert Reduction.for_level(2, BF16, chunk=None) == Reduction(BF16, None, BF16)


def test_dot_scalar_and_broadcast_shapes_are_kept():
    fmt = CBFLOAT16
    a, b = normal_codes((2, 1, 5), fmt, 30), normal_codes((3, 5), fmt, 31)
    assert np.ndim(dot(b[0], b[1], operand=fmt)) == 0
    got = dot(a, b, operand=fmt)
    assert got.shape == (2, 3)
    assert got.dtype == np.uint32
    assert int(got[1, 2]) == int(dot(a[1, 0], b[2], operand=fmt))
    in_out = dot(a, b, operand=fmt, out="fp16")
    assert in_out.dtype == np.uint16
    assert_same_bits(in_out, convert(got, FP32, FP16))
