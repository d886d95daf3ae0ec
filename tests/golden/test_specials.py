"""Formats that are not IEEE 754's, made by hand, against ml_dtypes; and a format's answers about its codes."""

import ml_dtypes
import numpy as np
import pytest

import golden
from golden import CBFLOAT16, FP16, FP32, Flag, FloatFormat, Reduction, Rounding, reference
from golden.formats import NARROW_FORMATS, WIDE_FORMATS
from golden.reference import Class, Value

from .hosts import host, judged

FN, FNUZ, FINITE = {"specials": "fn"}, {"specials": "fnuz"}, {"specials": "finite"}
NARROW = [
    FloatFormat("float8_e4m3fn", 4, 3, **FN),
    FloatFormat("float8_e5m2", 5, 2),
    FloatFormat("float8_e4m3fnuz", 4, 3, **FNUZ),
    FloatFormat("float8_e5m2fnuz", 5, 2, **FNUZ),
    FloatFormat("float6_e2m3fn", 2, 3, **FINITE),
    FloatFormat("float6_e3m2fn", 3, 2, **FINITE),
    FloatFormat("float4_e2m1fn", 2, 1, **FINITE),
    FloatFormat("float8_e4m3", 4, 3),
    FloatFormat("float8_e3m4", 3, 4),
    FloatFormat("float8_e4m3b11fnuz", 4, 3, 11, **FNUZ),
]
E4M3FN, E4M3FNUZ, E2M1FN = NARROW[0], NARROW[2], NARROW[6]
ALL = pytest.mark.parametrize("fmt", NARROW, ids=str)


def codes_in(fmt):
    return np.arange(1 << fmt.width, dtype=np.uint8 if fmt.width <= 8 else np.uint16)


def test_named_formats_are_those_made_by_hand():
    assert tuple(NARROW[:7]) == NARROW_FORMATS
    for fmt in NARROW_FORMATS:
        assert getattr(golden, fmt.name.upper()) is golden.format_named(fmt.name) is fmt


@ALL
def test_constants_are_ml_dtypes(fmt):
    limits = ml_dtypes.finfo(host(fmt))
    assert float(reference.decode(fmt.max_finite, fmt).as_fraction()) == float(limits.max)
    assert float(reference.decode(fmt.min_normal, fmt).as_fraction()) == float(limits.smallest_normal)
    assert float(reference.decode(fmt.min_subnormal, fmt).as_fraction()) == float(limits.smallest_subnormal)
    assert (fmt.emin, fmt.emax) == (limits.minexp, limits.maxexp - 1)
    assert reference.decode(fmt.one, fmt).as_fraction() == 1


@ALL
def test_convert_to_float32_and_back_keeps_every_code(fmt):
    codes = codes_in(fmt)
    there = [reference.convert(code, fmt, FP32) for code in codes.tolist()]
    back = np.array([reference.convert(code, FP32, fmt)[0] for code, _ in there])
    np.testing.assert_array_equal(back, judged(codes.view(host(fmt)).astype(np.float32), fmt))
    raised = np.array([int(flags) for _, flags in there])
    np.testing.assert_array_equal(raised, fmt.is_signalling(codes) * int(Flag.INVALID))


def test_overflow_infinities_and_nans_raise_the_flags_of_the_contract():
    both = Flag.OVERFLOW | Flag.INEXACT
    huge, infinite = Value(Class.FINITE, 1, 1, 100), Value(Class.INFINITE, 1)
    assert [reference.round_value(huge, fmt) for fmt in NARROW[:3]] == [(0x7F, both), (0xFC, both), (0x80, both)]
    assert [reference.round_value(infinite, fmt) for fmt in NARROW[:3]] == [(0x7F, 0), (0xFC, 0), (0x80, 0)]
    assert reference.round_value(huge, E2M1FN) == reference.round_value(infinite, E2M1FN) == (0xF, both)
    for kind in (Class.QUIET_NAN, Class.SIGNALLING_NAN):
        assert reference.round_value(Value(kind, 1), E2M1FN) == (0, Flag.INVALID)
        assert reference.round_value(Value(kind), E4M3FN)[1] == (Flag.INVALID if kind is Class.SIGNALLING_NAN else 0)
    for mode in (Rounding.TOWARD_ZERO, Rounding.UP, Rounding.TO_ODD):
        assert reference.round_value(huge, E4M3FN, rounding=mode) == (0xFE, both)
        assert reference.round_value(huge, E4M3FNUZ, rounding=mode) == (0xFF, both)


def test_negative_zero_of_a_format_without_one_is_positive():
    tiny = Value(Class.FINITE, 1, 1, -100)
    assert reference.round_value(Value(Class.FINITE, 1), E4M3FNUZ) == (0, 0)
    assert reference.round_value(tiny, E4M3FNUZ) == (0, Flag.INEXACT | Flag.UNDERFLOW)
    assert reference.round_value(tiny, E4M3FNUZ, rounding="down") == (0x81, Flag.INEXACT | Flag.UNDERFLOW)
    assert reference.round_value(tiny, E4M3FN) == (0x80, Flag.INEXACT | Flag.UNDERFLOW)


@pytest.mark.parametrize("fmt", [*WIDE_FORMATS[1:], *NARROW], ids=str)
def test_what_a_format_says_of_a_code_it_says_of_an_array_of_codes(fmt):
    codes = codes_in(fmt)
    for question in (fmt.is_nan, fmt.is_inf, fmt.is_finite, fmt.is_signalling):
        np.testing.assert_array_equal(question(codes), [question(code) for code in codes.tolist()])
    classes = [fmt.classify(code) for code in codes.tolist()]
    assert (fmt.is_finite(codes) == [each is Class.FINITE for each in classes]).all()
    assert (fmt.is_inf(codes) == [each is Class.INFINITE for each in classes]).all()
    assert (fmt.is_signalling(codes) == [each is Class.SIGNALLING_NAN for each in classes]).all()
    assert (fmt.is_nan(codes) == [each in (Class.QUIET_NAN, Class.SIGNALLING_NAN) for each in classes]).all()
    assert classes[fmt.max_finite] is Class.FINITE
    assert classes[fmt.max_finite + 1] is not Class.FINITE or not fmt.has_nan


def test_format_asked_for_a_code_that_it_lacks_raises_saying_so():
    for fmt in (E4M3FN, E4M3FNUZ, E2M1FN):
        assert not fmt.has_inf
        with pytest.raises(ValueError, match=f"{fmt} has no infinity .*ask has_inf first"):
            _ = fmt.inf
    with pytest.raises(ValueError, match=r"float4_e2m1fn has no NaN .*ask has_nan first"):
        _ = E2M1FN.nan
    with pytest.raises(ValueError, match="specials: got 'ocp', must be one of ieee, fn, fnuz, finite"):
        FloatFormat("any", 4, 3, specials="ocp")
    with pytest.raises(TypeError, match="specials: got None, must be one of ieee"):
        FloatFormat("any", 4, 3, specials=None)


def test_holds_minds_the_largest_value_below_a_nan():
    assert not E4M3FN.holds(FloatFormat("finite", 4, 3, **FINITE))  # 480 is the NaN of one
    assert FloatFormat("finite", 4, 3, **FINITE).holds(E4M3FN)
    assert all(FP32.holds(fmt) for fmt in NARROW)
    assert not FP16.holds(FloatFormat("finite", 5, 10, **FINITE))


def test_steps_take_narrow_operands_and_refuse_accumulators_without_infinity():
    three = reference.encode(3, E4M3FN)
    step = {"operand": E4M3FN, "accumulator": FP32}
    assert reference.multiply_accumulate(three, three, 0, **step) == (0x41100000, 0)
    assert reference.multiply_accumulate(E4M3FN.nan, three, 0, **step) == (FP32.nan, 0)
    assert reference.dot([three] * 2, [three] * 2, operand=E4M3FN, level=0) == (0x41900000, 0)
    with pytest.raises(ValueError, match="accumulator: got float8_e4m3fn, must have infinities"):
        reference.multiply_accumulate(0, 0, 0, operand=E4M3FN, accumulator=E4M3FN)
    assert reference.dot([three] * 2, [three] * 2, operand=E4M3FN) == (0x41900000, 0)
    assert reference.dot([three] * 2, [three] * 2, operand=E4M3FN, level=2) == (reference.encode(18, CBFLOAT16), 0)
    with pytest.raises(ValueError, match="fmt: got float4_e2m1fn, must have infinities"):
        reference.softmax([0], E2M1FN)
    assert reference.exponential(2000, E4M3FN) == E4M3FN.nan
    assert reference.exponential(2000, E2M1FN) == E2M1FN.max_finite


def test_formats_without_infinity_are_refused_where_sums_are_kept_in_them():
    codes, message = np.zeros(1, np.uint8), r": got float8_e4m3fn \(specials 'fn'\), must have "
    calls = {
        "fmt": lambda: golden.softmax(codes, E4M3FN),
        "accumulator": lambda: golden.multiply_accumulate(codes, codes, codes, operand=FP16, accumulator=E4M3FN),
        "outer": lambda: Reduction(CBFLOAT16, 4, E4M3FN),
        "inner": lambda: Reduction.for_level(1, CBFLOAT16, inner=E4M3FN),
    }
    for argument, call in calls.items():
        with pytest.raises(ValueError, match=f"^{argument}{message}"):
            call()
