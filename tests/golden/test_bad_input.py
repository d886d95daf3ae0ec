"""Arguments that array functions and the reference refuse: the message names argument, value and allowed values."""

from fractions import Fraction

import numpy as np
import pytest

import golden
from golden import (
    CBFLOAT16,
    FP32,
    FloatFormat,
    Reduction,
    Rounding,
    accumulators,
    convert,
    decode,
    dot,
    encode,
    format_named,
    matmul,
    matmul_values,
    multiply_accumulate,
    quantize,
    reference,
    softmax,
)
from golden.nearest import complete, did_you_mean
from golden.reference import Class, Value

NARROW = FloatFormat("e4m3_narrow", 4, 3)
CODES, SQUARE = np.zeros(4, np.uint16), np.zeros((4, 4), np.uint16)


def expect_refusal(error, message, function, *arguments, **options):
    with pytest.raises(error, match=message):
        function(*arguments, **options)


@pytest.mark.parametrize(
    "values",
    [CODES, *(np.zeros(2, dtype) for dtype in (np.int64, bool, complex, np.longdouble)), "1.5", None],
)
@pytest.mark.parametrize("function", [encode, quantize])
def test_encode_of_anything_but_floats_raises_type_error(function, values):
    message = r"values: got an array of .*, must be float16, float32 or float64 values"
    are_integers = np.asarray(values).dtype.kind in "iu"
    end = (
        "; golden.decode turns codes into values, astype.np.float64. makes values of integers$" if are_integers else "$"
    )
    expect_refusal(TypeError, message + end, function, values, CBFLOAT16)


def test_encode_python_int_0x1000001000000001_is_refused_as_float64_would_round_it_first():
    # 2^60 + 2^36 + 1 lies above a midpoint of fp32, its float64 on it: 0x5D800001 is right, 0x5D800000 was given.
    expect_refusal(
        ValueError, r"values: got an int beyond 2\*\*53, must be given as a float", encode, 2**60 + 2**36 + 1, FP32
    )
    expect_refusal(ValueError, r"values: got an int beyond 2\*\*53", quantize, [1, -(2**53) - 1], FP32)
    assert int(encode(2**53, FP32)) == int(encode(2.0**53, FP32))
    assert int(encode(-(2**53), FP32)) == int(encode(-(2.0**53), FP32))


def test_encode_python_int_0x1000001000000001_beside_a_float_is_refused_too():
    # NumPy makes float64 of such a list, and objects of ints beyond 64 bits.
    for values in ([2**60 + 2**36 + 1, 1.5], [2**63 + 2**39 + 1, -1], [[2**53 + 1], [0.5]], 2**70, [10**400, 1]):
        expect_refusal(ValueError, r"values: got an int beyond 2\*\*53, must be given as a float", encode, values, FP32)
    assert encode([2**53, 1.5], FP32).tolist() == [0x5A000000, 0x3FC00000]
    assert encode([2.0**60, 1], FP32).tolist() == [0x5D800000, 0x3F800000]


@pytest.mark.parametrize("bits", [0x7F812345, 0x7FC12345, 0xFFC00000, 0xFF800001])
def test_quantize_nan_0xffc00000_and_others_is_the_canonical_float32(bits):
    value = np.array([bits], np.uint32).view(np.float32)
    for fmt in (CBFLOAT16, FP32):
        assert quantize(value, fmt).view(np.uint32).tolist() == [0x7FC00000]


BAD_CODES = [
    (np.zeros(2, np.float32), TypeError, r"got an array of float32, must be .* \(uint16\); golden.encode turns values"),
    (np.zeros(2, np.int16), TypeError, r"got an array of int16, must be unsigned codes of cbfloat16 \(uint16\)"),
    (
        np.zeros(2, np.int64),
        TypeError,
        r"got an array of int64, .* \(uint16\); astype\(np.uint16\) makes codes of signed",
    ),
    (np.array([None]), TypeError, r"got an array of object, must be unsigned codes of cbfloat16 \(uint16\)$"),
    (np.zeros(2, bool), TypeError, r"got an array of bool"),
    (1.5, TypeError, r"got an array of float64"),
    (np.array([1, 0x10000], np.uint32), ValueError, r"got code 0x10000, must be 0 to 0xffff for cbfloat16"),
    ([0, 0x12345], ValueError, r"got code 0x12345, must be 0 to 0xffff for cbfloat16"),
    ([0, -1], ValueError, r"got code -0x1, must be 0 to 0xffff for cbfloat16"),
    ([0, 2**64], ValueError, r"got code 0x10000000000000000, must be 0 to 0xffff for cbfloat16"),
]


@pytest.mark.parametrize(("codes", "error", "message"), BAD_CODES)
def test_codes_of_wrong_type_or_width_raise_naming_their_argument(codes, error, message):
    options = {"operand": CBFLOAT16, "accumulator": CBFLOAT16}
    expect_refusal(error, "codes: " + message, decode, codes, CBFLOAT16)
    expect_refusal(error, "codes: " + message, convert, codes, CBFLOAT16, FP32)
    expect_refusal(error, "codes: " + message, softmax, codes, CBFLOAT16)
    expect_refusal(error, "^a: " + message, multiply_accumulate, codes, 0, 0, **options)
    expect_refusal(error, "^b: " + message, multiply_accumulate, 0, codes, 0, **options)
    expect_refusal(error, "acc: " + message, multiply_accumulate, 0, 0, codes, **options)
    expect_refusal(error, "^a: " + message, dot, codes, CODES, operand=CBFLOAT16)
    expect_refusal(error, "^b: " + message, dot, CODES, codes, operand=CBFLOAT16)
    expect_refusal(error, "^a: " + message, matmul, codes, SQUARE, operand=CBFLOAT16)
    expect_refusal(error, "^b: " + message, matmul, SQUARE, codes, operand=CBFLOAT16)
    expect_refusal(error, "initial: " + message, dot, CODES, CODES, operand=CBFLOAT16, level=2, initial=codes)


def test_codes_wider_than_a_format_of_eight_bits_raise_value_error():
    assert decode(np.array([0xFF], np.uint8), NARROW).shape == (1,)
    expect_refusal(ValueError, "codes: got code 0x100, must be 0 to 0xff for e4m3_narrow", decode, CODES + 256, NARROW)
    expect_refusal(ValueError, "codes: got code 0x100000000, must be 0 to 0xffffffff for float32", decode, 2**32, FP32)


@pytest.mark.parametrize(
    ("given", "error"), [("fp8", ValueError), ("CB16", ValueError), (16, TypeError), (None, TypeError)]
)
def test_format_that_does_not_exist_raises_naming_argument_and_formats(given, error):
    allowed = "must be a FloatFormat or (one of float32, .*, float4_e2m1fn|the name of one)"
    expect_refusal(error, f"fmt: got {given!r}, {allowed}", encode, 1.0, given)
    expect_refusal(error, f"fmt: got {given!r}, {allowed}", quantize, 1.0, given)
    expect_refusal(error, f"fmt: got {given!r}, {allowed}", decode, CODES, given)
    expect_refusal(error, f"fmt: got {given!r}, {allowed}", softmax, CODES, given)
    expect_refusal(error, f"source: got {given!r}, {allowed}", convert, CODES, given, FP32)
    expect_refusal(error, f"destination: got {given!r}, {allowed}", convert, CODES, FP32, given)
    expect_refusal(error, f"operand: got {given!r}, {allowed}", dot, CODES, CODES, operand=given)
    expect_refusal(error, f"operand: got {given!r}, {allowed}", matmul, SQUARE, SQUARE, operand=given)
    step = {"operand": CBFLOAT16, "accumulator": given}
    expect_refusal(error, f"accumulator: got {given!r}, {allowed}", multiply_accumulate, 0, 0, 0, **step)
    if given is not None:
        expect_refusal(error, f"out: got {given!r}, {allowed}", dot, CODES, CODES, operand=CBFLOAT16, out=given)
    expect_refusal(
        error, f"name: got {given!r}, must be (a string|one of float32, .*, fp32, fp16, bf16)", format_named, given
    )


@pytest.mark.parametrize("function", [dot, matmul])
def test_level_and_chunk_outside_limits_raise_naming_them(function):
    def refused(error, message, **options):
        expect_refusal(error, message, function, SQUARE, SQUARE, operand=CBFLOAT16, **options)

    refused(ValueError, r"level: got 3, must be 0 .* 1 .* or 2", level=3)
    refused(ValueError, r"level: got -1, must be 0", level=-1)
    for level in (1.0, "1", True, None):
        refused(TypeError, f"level: got {level!r}, must be 0, 1 or 2", level=level)
    refused(ValueError, r"chunk: got 0, must be at least 1, or None", chunk=0)
    refused(ValueError, r"chunk: got -4, must be at least 1, or None", chunk=-4)
    for chunk in (32.0, "32", True):
        refused(TypeError, f"chunk: got {chunk!r}, must be an int of at least 1, or None", chunk=chunk)
    refused(ValueError, r"chunk: got 0, must be at least 1", level=0, chunk=0)
    refused(TypeError, r"reduction: got 2, must be a Reduction, one of golden.accumulators, or None", reduction=2)


def test_reduction_of_wrong_types_raises_naming_them():
    expect_refusal(TypeError, r"inner: got 'cb16', must be a FloatFormat", Reduction, "cb16", 32, FP32)
    expect_refusal(TypeError, r"outer: got None, must be a FloatFormat", Reduction, FP32, 32, None)
    expect_refusal(ValueError, r"chunk: got 0, must be at least 1", Reduction, FP32, 0, FP32)
    by_name = r"operand: got 'cb16', must be a FloatFormat; golden.format_named\('cb16'\) returns one by its name"
    expect_refusal(TypeError, by_name, Reduction.for_level, 1, "cb16")


@pytest.mark.parametrize("function", [dot, matmul])
@pytest.mark.parametrize("operand", [None, CBFLOAT16])
def test_level_or_chunk_that_differs_from_the_reductions_is_refused(function, operand):
    whole = Reduction(CBFLOAT16, 8, FP32, operand=operand)
    options = {"operand": CBFLOAT16, "reduction": whole}
    for argument, given in (("chunk", 1), ("chunk", None), ("chunk", "junk"), ("level", 0)):
        said = rf"^{argument}: got {given!r}, must be left out beside reduction='.*chunk=8 .*'; Reduction.for_level"
        expect_refusal(ValueError, said, function, SQUARE, SQUARE, **options, **{argument: given})
    expect_refusal(
        ValueError,
        "^chunk: got 8",
        function,
        SQUARE,
        SQUARE,
        **options | {"reduction": accumulators["amd_cdna2"]},
        chunk=8,
    )
    assert function(SQUARE, SQUARE, **options, chunk=8).tolist() == function(SQUARE, SQUARE, **options).tolist()


def test_shapes_that_do_not_fit_raise_naming_them():
    a, b = np.zeros((2, 4), np.uint16), np.zeros((3, 4), np.uint16)
    same = {"operand": CBFLOAT16}
    expect_refusal(ValueError, r"a, b: got shapes \(2,\) and \(3,\), must broadcast to one shape", dot, a, b, **same)
    expect_refusal(
        ValueError, r"a, b: got 4 and 2 products on the last axis, must be equal", dot, a, b.reshape(6, 2), **same
    )
    expect_refusal(ValueError, r"a: got a scalar, must have at least one axis to reduce", dot, 0, CODES, **same)
    expect_refusal(ValueError, r"b: got a scalar, must have at least one axis to reduce", dot, CODES, 0, **same)
    step = {"operand": CBFLOAT16, "accumulator": CBFLOAT16}
    message = r"a, b, acc: got shapes \(4,\) and \(3,\) and \(\), must broadcast to one shape"
    expect_refusal(ValueError, message, multiply_accumulate, CODES, CODES[:3], 0, **step)


def test_initial_of_a_shape_that_is_not_the_results_raises_naming_it():
    for shape in ((3,), (2, 3), (5, 4)):
        initial = np.zeros(shape, np.uint32)
        expect_refusal(ValueError, r"initial: got shape", dot, SQUARE, SQUARE, operand=CBFLOAT16, initial=initial)
    one_more_axis = np.zeros((5, 4), np.uint32)
    message = r"initial: got shape \(5, 4\), must broadcast to the result's shape \(4,\)"
    expect_refusal(ValueError, message, dot, SQUARE, SQUARE, operand=CBFLOAT16, initial=one_more_axis)
    expect_refusal(
        ValueError, r"initial: got shape", matmul, SQUARE, SQUARE, operand=CBFLOAT16, initial=np.zeros(3, np.uint32)
    )


def test_softmax_of_an_axis_that_is_missing_or_empty_raises_naming_it():
    expect_refusal(ValueError, r"axis: got 2, must be -2 to 1 for shape \(4, 4\)", softmax, SQUARE, CBFLOAT16, axis=2)
    expect_refusal(ValueError, r"axis: got -3, must be -2 to 1", softmax, SQUARE, CBFLOAT16, axis=-3)
    expect_refusal(ValueError, "codes: got a scalar, must have at least one axis", softmax, np.uint16(0), CBFLOAT16)
    expect_refusal(
        ValueError, r"codes: got shape \(3, 0\), axis -1 must not be empty", softmax, SQUARE[:3, :0], CBFLOAT16
    )


def test_reduction_in_a_format_without_one_raises_value_error():
    without_one = FloatFormat("e4m3_high_bias", 4, 3, bias=60)
    expect_refusal(
        ValueError, "inner: got e4m3_high_bias with bias 60, must have 1.0", Reduction, without_one, 32, FP32
    )


@pytest.mark.parametrize("given", [[[1, 2], [3]], [[], [[1]]]])
def test_lists_of_unequal_lengths_raise_naming_the_argument(given):
    message = r"must be an array, or lists of equal lengths"
    expect_refusal(ValueError, f"codes: got .*{message}", decode, given, CBFLOAT16)
    expect_refusal(ValueError, f"a: got .*{message}", dot, given, CODES, operand=CBFLOAT16)
    expect_refusal(ValueError, f"b: got .*{message}", matmul, SQUARE, given, operand=CBFLOAT16)


def test_products_beyond_the_places_of_random_bits_raise_saying_how_many(monkeypatch):
    # There are places for 2^30 products of a result, more than a test can compute.
    monkeypatch.setattr("golden.arrays.requests.MOST_STEPS", 3)
    message = "a, b: got 4 products a result, must be at most 3 to round stochastically"
    values = np.zeros((4, 4), np.float32)
    for options in ({"rounding": "stochastic"}, {"out": CBFLOAT16, "out_rounding": "stochastic"}):
        expect_refusal(ValueError, message, dot, CODES, CODES, operand=CBFLOAT16, **options)
        expect_refusal(ValueError, message, matmul, SQUARE, SQUARE, operand=CBFLOAT16, **options)
        expect_refusal(ValueError, message, matmul_values, values, values, operand=CBFLOAT16, **options)
    assert dot(CODES[:3], CODES[:3], operand=CBFLOAT16, rounding="stochastic") == 0
    assert dot(CODES, CODES, operand=CBFLOAT16, rounding="up") == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("cbfloat61", "; did you mean cbfloat16?"),
        ("CBFLOAT16", "; did you mean cbfloat16?"),
        ("float8_e4m3", "; did you mean float8_e4m3fn?"),
        ("posit", ""),
        ("", ""),
    ],
)
def test_nearest_name_is_offered_where_one_is_near(given, said):
    assert did_you_mean(given, [each.name for each in golden.FORMATS]) == said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: golden.format_named("float8_e4m3"), r"name: got 'float8_e4m3', .*; did you mean float8_e4m3fn\?$"),
        (lambda: golden.encode(1.0, "bf61"), r"fmt: got 'bf61', .*; did you mean bf16\?$"),
        (lambda: golden.encode(1.0, "fp16", rounding="nearest_evn"), r"rounding: .*; did you mean nearest_even\?$"),
    ],
)
def test_unknown_name_of_a_format_or_mode_is_answered_with_the_nearest(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_accumulators_unknown_name_lists_all_and_offers_the_nearest():
    with pytest.raises(KeyError, match=r"golden.accumulators: got 'nvidia_hoper', .* deepseek_fp8; did you mean nvi"):
        golden.accumulators["nvidia_hoper"]
    assert golden.accumulators.get("nvidia_hoper") is None
    assert "nvidia_hoper" not in golden.accumulators


OPTIONS = {"operand": "cbfloat16", "accumulator": "fp32"}


def test_reference_takes_formats_by_name():
    assert reference.encode(6, "cb16") == 0x5900
    assert reference.decode(0x5900, "cb16") == reference.quantize(6, "cb16")
    assert reference.convert(0x5900, "cb16", "fp32") == (0x40C00000, 0)
    assert reference.multiply_accumulate(0x3E00, 0x3E00, 0, **OPTIONS) == (0x3F800000, 0)
    assert reference.dot([0x3E00], [0x3E00], operand="cbfloat16", out="bf16") == (0x3F80, 0)
    assert reference.matmul([[0x3E00]], [[0x3E00]], operand="cbfloat16") == [[0x3F800000]]
    assert reference.exponential(0, "bf16") == 0x3F80
    assert reference.softmax([0, 0], "bf16") == [0x3F00, 0x3F00]
    assert reference.round_value(Value(Class.FINITE, 0, 6, 0), "cb16") == (0x5900, 0)


@pytest.mark.parametrize(
    ("given", "error"), [("fp8", ValueError), (16, TypeError), (None, TypeError), (np.zeros(2), TypeError)], ids=str
)
def test_reference_format_that_does_not_exist_raises_naming_its_argument(given, error):
    expect_refusal(error, "fmt: got .*must be a FloatFormat", reference.decode, 0, given)
    expect_refusal(error, "fmt: got .*must be a FloatFormat", reference.encode, 0, given)
    expect_refusal(error, "fmt: got .*must be a FloatFormat", reference.quantize, 0, given)
    expect_refusal(error, "fmt: got .*must be a FloatFormat", reference.round_value, reference.NAN, given)
    expect_refusal(error, "fmt: got .*must be a FloatFormat", reference.exponential, 0, given)
    expect_refusal(error, "fmt: got .*must be a FloatFormat", reference.softmax, [0], given)
    expect_refusal(error, "source: got .*must be a FloatFormat", reference.convert, 0, given, FP32)
    expect_refusal(error, "destination: got .*must be a FloatFormat", reference.convert, 0, FP32, given)
    for name in ("operand", "accumulator"):
        formats = OPTIONS | {name: given}
        expect_refusal(error, f"{name}: got .*must be a FloatFormat", reference.multiply_accumulate, 0, 0, 0, **formats)
    expect_refusal(error, "operand: got .*must be a FloatFormat", reference.dot, [0], [0], operand=given)
    expect_refusal(error, "operand: got .*must be a FloatFormat", reference.matmul, [[0]], [[0]], operand=given)
    if given is not None:
        expect_refusal(error, "out: got .*must be a FloatFormat", reference.dot, [0], [0], operand=FP32, out=given)


def test_reference_codes_of_wrong_type_or_width_raise_naming_their_argument():
    for code in (1.0, "1", None, True):
        expect_refusal(
            TypeError, "code: got .*, must be an int, a code of cbfloat16", reference.decode, code, CBFLOAT16
        )
        expect_refusal(TypeError, "^b: got .*, must be an int", reference.multiply_accumulate, 0, code, 0, **OPTIONS)
    expect_refusal(ValueError, "acc: got 0x100000000", reference.multiply_accumulate, 0, 0, 2**32, **OPTIONS)
    expect_refusal(ValueError, "initial: got -0x1", reference.dot, [], [], operand=FP32, initial=-1)
    expect_refusal(ValueError, "codes: got 0x10000", reference.softmax, [0, 65536], CBFLOAT16)
    expect_refusal(ValueError, "a, b: got 1 and 2 codes", reference.dot, [0], [0, 0], operand=FP32)
    expect_refusal(ValueError, r"b: got rows of \[0, 1\] codes", reference.matmul, [[0]], [[0], []], operand=FP32)
    expect_refusal(TypeError, "a: got 3, must be a list or tuple", reference.matmul, 3, [[0]], operand=FP32)
    expect_refusal(TypeError, "reduction: got 2, must be a Reduction", reference.dot, [], [], operand=FP32, reduction=2)
    assert reference.decode(np.uint16(0x3E00), CBFLOAT16).as_fraction() == 1


def test_reference_numbers_that_are_none_raise_naming_them():
    for number in ("1", None, True, 1j):
        expect_refusal(
            TypeError, "number: got .*, must be an int, a Fraction or a finite", reference.encode, number, FP32
        )
    for number in (float("inf"), float("nan")):
        expect_refusal(ValueError, "number: got .*, must be finite", reference.exponential, number, FP32)
    assert reference.exponential(Fraction(10**8), FP32) == FP32.inf
    assert reference.encode(0.5, FP32) == 0x3F000000


def test_reference_values_that_are_none_raise_naming_what_is_wrong():
    expect_refusal(TypeError, "kind: got 'finite', must be a member of Class", Value, "finite")
    expect_refusal(ValueError, "sign: got 2, must be 0 or 1", Value, Class.FINITE, 2)
    expect_refusal(TypeError, "sign, exponent: got 0 and 0.5, must be ints", Value, Class.FINITE, 0, 1, 0.5)
    expect_refusal(TypeError, "significand: got 0.5, must be an int or a Fraction", Value, Class.FINITE, 0, 0.5)
    expect_refusal(ValueError, "significand: got -1, must be 0 or more", Value, Class.FINITE, 0, -1)
    expect_refusal(TypeError, "value: got 1.5, must be a Value", reference.round_value, 1.5, FP32)
    assert reference.round_value(reference.NAN, FP32, rounding=Rounding.NEAREST_EVEN)[0] == FP32.nan


def test_chunk_beyond_64_bits_raises_naming_it():
    codes = np.zeros((1, 1), np.uint16)
    message = r"chunk: got an int beyond 2\*\*63 - 1, must be at most that, or None"
    expect_refusal(ValueError, message, matmul, codes, codes, operand=CBFLOAT16, chunk=2**63)
    expect_refusal(ValueError, message, reference.dot, [0], [0], operand=CBFLOAT16, chunk=2**64)
    expect_refusal(ValueError, message, Reduction, CBFLOAT16, 2**1000, FP32)
    assert matmul(codes, codes, operand=CBFLOAT16, chunk=2**63 - 1).tolist() == [[0]]


def test_reference_products_beyond_the_places_of_random_bits_raise_saying_how_many(monkeypatch):
    # There are places for 2^30 products of a result, more than a test can compute.
    monkeypatch.setattr("golden.exact_steps.MOST_STEPS", 3)
    with pytest.raises(ValueError, match="a, b: got 4 codes, must be at most 3 to be rounded stochastically"):
        reference.dot([0] * 4, [0] * 4, operand="cbfloat16", rounding="stochastic")
    assert reference.dot([0] * 3, [0] * 3, operand="cbfloat16", rounding="stochastic")[0] == 0
    assert reference.dot([0] * 4, [0] * 4, operand="cbfloat16", rounding="up")[0] == 0


def test_table_of_every_point_is_returned_in_any_order():
    table = {"b": 1, "a": 2}
    assert complete("table", table, ("a", "b")) is table


@pytest.mark.parametrize("table", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, ["a", "b", "b"]], ids=["fewer", "more", "twice"])
def test_table_with_other_points_raises_naming_it_and_all_points(table):
    said = f"table: got entries for {', '.join(table)}; must have one for each of a, b"
    with pytest.raises(ValueError, match=f"^{said}$"):
        complete("table", table, ("a", "b"))
