"""The rounding modes of the reference against MPFR, SoftFloat and gfloat: codes and flags (NUMERICS sections 9, 10)."""

from fractions import Fraction

import gfloat
import gmpy2
import numpy as np
import pytest
import softfloatpy
from gfloat import RoundMode

from golden import BF16, CB16, CBFLOAT16, FP16, FP32, Flag, FloatFormat, Rounding, reference
from golden.reference import Class, Value

from .hosts import GFLOAT_MODES, gfloat_info
from .judges import Mpfr, boundary_codes, codes_of, random_codes, values_of

E4M3 = FloatFormat("e4m3", 4, 3)
FORMATS = [FP16, BF16, CBFLOAT16, CB16, E4M3]
MPFR_MODES = {
    Rounding.NEAREST_EVEN: gmpy2.RoundToNearest,
    Rounding.TOWARD_ZERO: gmpy2.RoundToZero,
    Rounding.DOWN: gmpy2.RoundDown,
    Rounding.UP: gmpy2.RoundUp,
}
SOFTFLOAT_MODES = [mode for mode in Rounding if mode.value <= 4]
ALL_FORMATS = pytest.mark.parametrize("fmt", FORMATS, ids=str)


def some(codes, count, seed):
    return np.random.default_rng(seed).choice(codes, count)


def numbers(fmt, count, seed, near=()):
    """Codes without NaNs: half at the edges of binades and of other formats, half random."""
    edges = some(boundary_codes(fmt, near), count // 2, seed)
    codes = np.concatenate([edges, random_codes(fmt, count // 2, seed)])
    return codes[~fmt.is_nan(codes)]


@pytest.mark.parametrize("mode", MPFR_MODES, ids=str)
@ALL_FORMATS
def test_convert_in_every_mode_of_mpfr_is_its_rounding(fmt, mode):
    codes = numbers(FP32, 1200, 1, near=(fmt,))
    values, flags = Mpfr(fmt, MPFR_MODES[mode]).apply_all("plus", values_of(codes, FP32))
    wanted = zip(codes_of(values, fmt).tolist(), flags.tolist(), strict=True)
    for code, expected in zip(codes.tolist(), wanted, strict=True):
        assert reference.convert(code, FP32, fmt, rounding=mode) == expected, hex(code)


@pytest.mark.parametrize("mode", MPFR_MODES, ids=str)
@ALL_FORMATS
@pytest.mark.parametrize("is_wide", [False, True], ids=["same", "float32"])
def test_step_in_every_mode_of_mpfr_is_its_fma(fmt, mode, is_wide):
    accumulator = FP32 if is_wide else fmt
    a, b, acc = numbers(fmt, 600, 2), numbers(fmt, 600, 3), numbers(accumulator, 600, 4, near=(fmt,))
    count = min(map(len, (a, b, acc)))
    a, b, acc = a[:count], b[:count], acc[:count]
    # Sums that cancel: in the mode `down` a zero is then negative.
    one = np.full(200, fmt.one, a.dtype)
    there = np.array([reference.convert(code, fmt, accumulator)[0] for code in a[:200].tolist()], acc.dtype)
    a, b, acc = np.append(a, a[:200]), np.append(b, one), np.append(acc, there ^ accumulator.sign_mask)
    exact = values_of(a, fmt), values_of(b, fmt), values_of(acc, accumulator)
    values, flags = Mpfr(accumulator, MPFR_MODES[mode]).apply_all("fma", *exact)
    wanted = zip(codes_of(values, accumulator).tolist(), flags.tolist(), strict=True)
    operands = zip(a.tolist(), b.tolist(), acc.tolist(), strict=True)
    for each, expected in zip(operands, wanted, strict=True):
        got = reference.multiply_accumulate(*each, operand=fmt, accumulator=accumulator, rounding=str(mode))
        assert got == expected, [hex(code) for code in each]


def softfloat(mode, operation, *operands):
    """Return code and flags; the mode's number is SoftFloat's too."""
    softfloatpy.set_rounding_mode(softfloatpy.RoundingMode(mode.value))
    softfloatpy.set_tininess_mode(softfloatpy.TininessMode.AFTER_ROUNDING)
    softfloatpy.set_exception_flags(0)
    result = getattr(softfloatpy, operation)(*operands)
    return int.from_bytes(result.to_bytes(), "big"), softfloatpy.get_exception_flags()


@pytest.mark.parametrize("mode", SOFTFLOAT_MODES, ids=str)
def test_convert_in_every_mode_of_ieee_is_softfloats(mode):
    for code in numbers(FP32, 3000, 5, near=(FP16,)).tolist():
        judged = softfloat(mode, "f32_to_f16", softfloatpy.Float32.from_bytes(code.to_bytes(4, "big")))
        assert reference.convert(code, FP32, FP16, rounding=mode) == judged, hex(code)


@pytest.mark.parametrize("mode", SOFTFLOAT_MODES, ids=str)
def test_step_in_every_mode_of_ieee_is_softfloats(mode):
    steps = zip(*(numbers(FP16, 3000, seed).tolist() for seed in (6, 7, 8)), strict=False)
    for operands in steps:
        numbers_there = [softfloatpy.Float16.from_bytes(code.to_bytes(2, "big")) for code in operands]
        code, flags = softfloat(mode, "f16_mul_add", *numbers_there)
        wanted = (FP16.nan if FP16.is_nan(code) else code, flags)
        got = reference.multiply_accumulate(*operands, operand=FP16, accumulator=FP16, rounding=mode)
        assert got == wanted, [hex(code) for code in operands]


@pytest.mark.parametrize("mode", GFLOAT_MODES, ids=str)
@pytest.mark.parametrize("fmt", [CBFLOAT16, CB16, E4M3], ids=str)
def test_convert_in_a_mode_of_gfloat_is_its_code(fmt, mode):
    codes, info = numbers(FP32, 3000, 9, near=(fmt,)), gfloat_info(fmt)
    rounded = gfloat.round_ndarray(info, values_of(codes, FP32), GFLOAT_MODES[mode])
    wanted = gfloat.encode_ndarray(info, rounded).tolist()
    for code, expected in zip(codes.tolist(), wanted, strict=True):
        assert reference.convert(code, FP32, fmt, rounding=mode)[0] == expected, hex(code)


@pytest.mark.parametrize("fmt", [FP16, CBFLOAT16, E4M3], ids=str)
def test_convert_to_odd_keeps_what_is_exact_and_else_takes_the_odd_neighbour(fmt):
    """The definition, on the neighbours of the number, which MPFR's directed modes give."""
    codes = numbers(FP32, 4000, 10, near=(fmt,))
    codes = codes[~FP32.is_inf(codes)]
    exact = values_of(codes, FP32)
    below = codes_of(Mpfr(fmt, gmpy2.RoundToZero).apply_all("plus", exact)[0], fmt)
    flags = Mpfr(fmt, gmpy2.RoundToZero).apply_all("plus", exact)[1]
    is_odd = (flags == 0) | (below % 2 == 1)  # the largest finite value is odd: it takes larger numbers
    wanted = np.where(is_odd, below, below + 1)
    seen = set()
    for code, expected, raised in zip(codes.tolist(), wanted.tolist(), flags.tolist(), strict=True):
        assert reference.convert(code, FP32, fmt, rounding="to_odd") == (expected, raised), hex(code)
        seen.add(raised)
    assert {0, Flag.INEXACT, Flag.INEXACT | Flag.UNDERFLOW, Flag.INEXACT | Flag.OVERFLOW} <= seen


@pytest.mark.parametrize("bits", [3, 8, 16])
@pytest.mark.parametrize("fmt", [CBFLOAT16, E4M3], ids=str)
def test_convert_stochastic_is_gfloats_fastest_stochastic(fmt, bits):
    codes, info = numbers(FP32, 1500, 11, near=(fmt,)), gfloat_info(fmt)
    words = np.random.default_rng(12).integers(0, 2**bits, len(codes))
    for code, value, word in zip(codes.tolist(), values_of(codes, FP32).tolist(), words.tolist(), strict=True):
        judged = gfloat.round_float(info, value, RoundMode.StochasticFastest, srbits=word, srnumbits=bits)
        got, _ = reference.convert(code, FP32, fmt, rounding="stochastic", random=word, random_bits=bits)
        assert got == gfloat.encode_float(info, judged), (hex(code), word)


@pytest.mark.parametrize("number", [Fraction(5, 16), Fraction(-1, 3), 3, Fraction(1, 10**20)])
def test_stochastic_of_every_random_word_goes_up_as_often_as_the_distance_says(number):
    lower = reference.quantize(number, E4M3, rounding="toward_zero").as_fraction()
    upper = reference.quantize(number, E4M3, rounding="up" if number > 0 else "down").as_fraction()
    options = {"rounding": Rounding.STOCHASTIC, "random_bits": 6}
    got = [reference.quantize(number, E4M3, random=word, **options).as_fraction() for word in range(64)]
    times = 64 * (number - lower) // (upper - lower) if upper != lower else 0
    assert got == [lower] * (64 - times) + [upper] * times


@pytest.mark.parametrize(
    ("mode", "positive", "negative"),
    [
        ("nearest_even", CBFLOAT16.inf, CBFLOAT16.inf),
        ("toward_zero", CBFLOAT16.max_finite, CBFLOAT16.max_finite),
        ("down", CBFLOAT16.max_finite, CBFLOAT16.inf),
        ("up", CBFLOAT16.inf, CBFLOAT16.max_finite),
        ("nearest_away", CBFLOAT16.inf, CBFLOAT16.inf),
        ("to_odd", CBFLOAT16.max_finite, CBFLOAT16.max_finite),
        ("stochastic", CBFLOAT16.inf, CBFLOAT16.inf),
    ],
)
def test_overflow_in_every_mode_is_the_contracts(mode, positive, negative):
    random = 0 if mode == "stochastic" else None
    for sign, magnitude in ((0, positive), (1, negative)):
        value = Value(Class.FINITE, sign, 1, 100)
        code, flags = reference.round_value(value, CBFLOAT16, rounding=mode, random=random)
        assert (code, flags) == (magnitude | sign * CBFLOAT16.sign_mask, Flag.OVERFLOW | Flag.INEXACT)


def test_dot_in_a_mode_rounds_steps_and_promotions_by_it_and_the_result_by_out_rounding():
    rng = np.random.default_rng(13)
    a, b = (rng.integers(0x3000, 0x4800, 70).tolist() for _ in "ab")
    for mode in (Rounding.TOWARD_ZERO, Rounding.UP, Rounding.TO_ODD):
        total = 0
        for start in range(0, 70, 32):
            partial = 0
            for x, y in zip(a[start : start + 32], b[start : start + 32], strict=True):
                step = {"operand": CBFLOAT16, "accumulator": CBFLOAT16, "rounding": mode}
                partial, _ = reference.multiply_accumulate(x, y, partial, **step)
            step = {"operand": CBFLOAT16, "accumulator": FP32, "rounding": mode}
            total, _ = reference.multiply_accumulate(partial, CBFLOAT16.one, total, **step)
        for last in (Rounding.NEAREST_EVEN, Rounding.DOWN):
            wanted = reference.convert(total, FP32, BF16, rounding=last)[0]
            got = reference.dot(a, b, operand=CBFLOAT16, rounding=mode, out="bf16", out_rounding=last)[0]
            assert got == wanted
        assert reference.matmul([a], [[y] for y in b], operand=CBFLOAT16, rounding=mode) == [[total]]
    plain = reference.dot(a, b, operand=CBFLOAT16)
    assert plain == reference.dot(a, b, operand=CBFLOAT16, rounding="nearest_even")
    assert plain != reference.dot(a, b, operand=CBFLOAT16, rounding="toward_zero")


def test_modes_and_random_bits_that_are_none_raise_naming_them():
    def refused(error, message, **options):
        for call in (
            lambda: reference.round_value(Value(Class.FINITE), FP16, **options),
            lambda: reference.encode(1, FP16, **options),
            lambda: reference.quantize(1, FP16, **options),
            lambda: reference.convert(0, FP16, FP16, **options),
            lambda: reference.multiply_accumulate(FP16.nan, 0, 0, operand=FP16, accumulator=FP16, **options),
        ):
            with pytest.raises(error, match=message):
                call()

    refused(
        ValueError, "rounding: got 'RNE', must be a Rounding or one of nearest_even, .*, stochastic", rounding="RNE"
    )
    refused(TypeError, "rounding: got 1, must be a Rounding or the name of one", rounding=1)
    refused(ValueError, "random: got 3, must be None: only rounding='stochastic'", random=3)
    refused(TypeError, "random: got None, must be an int for rounding='stochastic'", rounding="stochastic")
    stochastic = {"rounding": Rounding.STOCHASTIC}
    refused(TypeError, "random_bits: got 1.0, must be an int", random=0, random_bits=1.0, **stochastic)
    refused(ValueError, "random_bits: got 0, must be at least 1", random=0, random_bits=0, **stochastic)
    refused(ValueError, "random: got 65536, must be 0 to 65535, which fits 16 bits", random=65536, **stochastic)
    refused(ValueError, "random: got -1, must be 0 to 7", random=-1, random_bits=3, **stochastic)
    for argument in ("rounding", "out_rounding"):
        with pytest.raises(ValueError, match=f"{argument}: got 'odd', must be a Rounding or one of"):
            reference.dot([], [], operand=FP16, **{argument: "odd"})
