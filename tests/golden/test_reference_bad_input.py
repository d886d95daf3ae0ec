"""Arguments that the reference refuses, and format names that it takes, as the array functions do."""

from fractions import Fraction

import numpy as np
import pytest

from golden import CBFLOAT16, FP32, Reduction, Rounding, kernels, matmul, reference
from golden.reference import Class, Value

OPTIONS = {"operand": "cbfloat16", "accumulator": "fp32"}


def expect_refusal(error, message, function, *arguments, **options):
    with pytest.raises(error, match=message):
        function(*arguments, **options)


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


def test_kernels_use_of_an_array_as_path_raises_naming_it():
    for path in (np.array(["auto", "numpy"]), np.zeros(2), ["auto"], 3, b"auto"):
        with pytest.raises(ValueError, match=r"path: got .*, must be auto, avx512fp16"), kernels.use(path=path):
            raise AssertionError


def test_products_beyond_the_places_of_random_bits_raise_saying_how_many(monkeypatch):
    # There are places for 2^30 products of a result, more than a test can compute.
    monkeypatch.setattr("golden.exact_steps.MOST_STEPS", 3)
    with pytest.raises(ValueError, match="a, b: got 4 codes, must be at most 3 to be rounded stochastically"):
        reference.dot([0] * 4, [0] * 4, operand="cbfloat16", rounding="stochastic")
    assert reference.dot([0] * 3, [0] * 3, operand="cbfloat16", rounding="stochastic")[0] == 0
    assert reference.dot([0] * 4, [0] * 4, operand="cbfloat16", rounding="up")[0] == 0
