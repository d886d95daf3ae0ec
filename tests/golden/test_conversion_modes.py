"""Conversions of arrays in every rounding mode and with both overflows, against the reference and gfloat."""

import numpy as np
import pytest
from gfloat import RoundMode

from golden import (
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FORMATS,
    FP16,
    FP32,
    Flag,
    FloatFormat,
    Rounding,
    convert,
    decode,
    encode,
    quantize,
    reference,
)
from golden.formats import NARROW_FORMATS

from .hosts import GFLOAT_MODES, gfloat_codes
from .judges import all_codes, assert_same_bits, boundary_codes, random_codes, values_of

MODES = pytest.mark.parametrize("mode", Rounding, ids=str)
INTO = pytest.mark.parametrize("destination", FORMATS, ids=str)
OVERFLOWS = ("special", "saturate")
JUDGED = (*NARROW_FORMATS, FP16, CBFLOAT16, CB16)


def words(mode, count, bits=16, seed=20):
    """Random words of a stochastic rounding: the least and the largest, and any."""
    if mode is not Rounding.STOCHASTIC:
        return None
    drawn = np.random.default_rng(seed).integers(0, 2**bits, count).astype(np.uint32)
    drawn[:2] = [0, 2**bits - 1][: min(count, 2)]
    return drawn


def asked(source, destination):
    """All codes of a narrow source, the limits of both formats and random ones of a wide one."""
    if source.width <= 8:
        return all_codes(source).astype(np.uint8)
    rng = np.random.default_rng(21)
    limits = boundary_codes(source, near=(destination,))
    return np.concatenate([rng.choice(limits, 250), random_codes(source, 50, 22)])


@MODES
@INTO
def test_convert_in_every_mode_has_the_references_code_and_flags(destination, mode):
    rng = np.random.default_rng(23)
    for source in FORMATS:
        given = asked(source, destination)
        for overflow in OVERFLOWS:
            codes = rng.permutation(given)[:100]
            random = words(mode, len(codes))
            got, flags = convert(
                codes, source, destination, rounding=mode, overflow=overflow, random=random, return_flags=True
            )
            numbers = [None] * len(codes) if random is None else random.tolist()
            wanted = [
                reference.convert(code, source, destination, rounding=mode, overflow=overflow, random=number)
                for code, number in zip(codes.tolist(), numbers, strict=True)
            ]
            assert_same_bits(got, np.array([code for code, _ in wanted]), codes)
            assert_same_bits(flags, np.array([int(raised) for _, raised in wanted]), codes)
            options = {"rounding": mode, "overflow": overflow, "random": random}
            assert_same_bits(convert(codes, source, destination, **options), got, codes)
            assert_same_bits(encode(decode(codes, source), destination, **options), got, codes)


def test_convert_of_many_codes_is_that_of_few():
    # Many codes are looked up, few are computed: a wide source with few codes has no table.
    for source, destination in ((CBFLOAT16, FLOAT8_E5M2), (FP16, CB16), (FP32, FLOAT8_E4M3FNUZ)):
        codes = asked(source, destination) if source is FP32 else all_codes(source)
        codes = np.resize(codes, 1 << 16)
        for mode in Rounding:
            options = {"rounding": mode, "overflow": "saturate", "return_flags": True}
            random = words(mode, len(codes))
            got, flags = convert(codes, source, destination, random=random, **options)
            for at in range(0, len(codes), 1 << 13):
                few = slice(at, at + 1000)
                some = None if random is None else random[few]
                code, raised = convert(codes[few], source, destination, random=some, **options)
                assert_same_bits(got[few], code, codes[few])
                assert_same_bits(flags[few], raised, codes[few])


@pytest.mark.parametrize("mode", GFLOAT_MODES, ids=str)
@pytest.mark.parametrize("fmt", JUDGED, ids=str)
def test_encode_in_a_mode_of_gfloat_is_its_code_with_both_overflows(fmt, mode):
    codes = np.concatenate([boundary_codes(FP32, near=(fmt,)), random_codes(FP32, 20_000, 24)])
    values = values_of(codes, FP32)
    values = np.append(values[~np.isnan(values)], [1e300, -1e300, 1e-300, -1e-300])
    for overflow in OVERFLOWS:
        wanted = gfloat_codes(values, fmt, GFLOAT_MODES[mode], overflow == "saturate")
        wanted = np.where(fmt.is_nan(wanted), fmt.nan, wanted) if fmt.has_nan else wanted
        assert_same_bits(encode(values, fmt, rounding=mode, overflow=overflow), wanted, values)
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        wanted = gfloat_codes(narrow.astype(np.float64), fmt, GFLOAT_MODES[mode], overflow == "saturate")
        wanted = np.where(fmt.is_nan(wanted), fmt.nan, wanted) if fmt.has_nan else wanted
        got = encode(narrow, fmt, rounding=mode, overflow=overflow)
        assert_same_bits(got, wanted, narrow)
        rounded = quantize(narrow, fmt, rounding=mode, overflow=overflow)
        assert_same_bits(rounded.view(np.uint32), decode(got, fmt).view(np.uint32), narrow)


@pytest.mark.parametrize("bits", [1, 3, 8, 16, 32])
@pytest.mark.parametrize("fmt", JUDGED, ids=str)
def test_encode_stochastic_is_gfloats_fastest_stochastic(fmt, bits):
    codes = np.concatenate([boundary_codes(FP32, near=(fmt,)), random_codes(FP32, 5000, 25)])
    values = values_of(codes, FP32)
    values = values[~np.isnan(values)]
    random = words(Rounding.STOCHASTIC, len(values), bits)
    mode = RoundMode.StochasticFastest
    wanted = gfloat_codes(values, fmt, mode, False, srbits=random.astype(np.int64), srnumbits=bits)
    wanted = np.where(fmt.is_nan(wanted), fmt.nan, wanted) if fmt.has_nan else wanted
    for given in (values, values.astype(np.float32)):
        assert_same_bits(encode(given, fmt, rounding="stochastic", random=random, random_bits=bits), wanted, values)


@pytest.mark.parametrize("fmt", [FLOAT4_E2M1FN, FLOAT8_E4M3FN, CBFLOAT16], ids=str)
def test_quantize_stochastic_over_all_words_goes_up_as_often_as_the_distance_says(fmt):
    values = np.array([1.0, 1.2, 2.7, -2.3, 5.1])[:, np.newaxis]
    random = np.arange(1 << 10, dtype=np.uint16)
    options = {"rounding": "stochastic", "random": random, "random_bits": 10}
    got = quantize(np.broadcast_to(values, (5, 1 << 10)), fmt, **options)
    low, high = quantize(np.abs(values), fmt, rounding="toward_zero"), quantize(np.abs(values), fmt, rounding="up")
    between = high > low
    share = np.floor((np.abs(values) - low) / np.where(between, high - low, 1) * 1024) * between
    assert (((np.abs(got) == high) & between).sum(axis=1) == share[:, 0]).all()
    assert (np.sign(got) == np.sign(values)).all()


def test_overflow_saturates_infinities_and_numbers_alike_and_leaves_nan():
    both = int(Flag.OVERFLOW | Flag.INEXACT)
    values = np.float32([1e9, -1e9, np.inf, -np.inf, np.nan, 448, 464, 465])
    codes = values.view(np.uint32)
    got, flags = convert(codes, "float32", FLOAT8_E4M3FN, overflow="saturate", return_flags=True)
    assert got.tolist() == [0x7E, 0xFE, 0x7E, 0xFE, 0x7F, 0x7E, 0x7E, 0x7E]
    assert flags.tolist() == [both, both, both, both, 0, 0, int(Flag.INEXACT), both]
    got, flags = convert(codes, "float32", FLOAT8_E4M3FN, return_flags=True)
    assert got.tolist() == [0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7E, 0x7E, 0x7F]
    assert flags.tolist() == [both, both, 0, 0, 0, 0, int(Flag.INEXACT), both]
    got, flags = convert(codes, "float32", FLOAT4_E2M1FN, return_flags=True)
    assert got.tolist() == [0x7, 0xF, 0x7, 0xF, 0x0, 0x7, 0x7, 0x7]
    assert flags.tolist() == [both, both, both, both, int(Flag.INVALID), both, both, both]
    assert encode([np.inf, -1e10], CBFLOAT16, overflow="saturate").tolist() == [0x7DFF, 0xFDFF]
    assert encode([np.inf, -np.inf], CBFLOAT16, rounding="toward_zero").tolist() == [0x7E00, 0xFE00]


def test_words_broadcast_and_python_ints_are_words():
    values = np.full((3, 4), 1.3, np.float32)
    words_of_columns = np.array([0, 100, 65_000, 65_535], np.uint16)
    got = encode(values, FLOAT8_E5M2, rounding="stochastic", random=words_of_columns)
    assert (got == got[0]).all()
    for column, word in enumerate(words_of_columns.tolist()):
        alone = encode(1.3, FLOAT8_E5M2, rounding="stochastic", random=word)
        assert alone == encode(np.float64(1.3), FLOAT8_E5M2, rounding=Rounding.STOCHASTIC, random=np.uint32(word))
        assert alone == got[0, column]


CALLS = {
    "encode": lambda **options: encode(np.ones(3, np.float32), FLOAT8_E5M2, **options),
    "quantize": lambda **options: quantize(np.ones(3, np.float32), FLOAT8_E5M2, **options),
    "convert": lambda **options: convert(np.ones(3, np.uint8), FLOAT8_E5M2, FP16, **options),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rounding": "RNE"}, ValueError, "rounding: got 'RNE', must be a Rounding or one of nearest_even, .*, stoch"),
        ({"rounding": 1}, TypeError, "rounding: got 1, must be a Rounding or the name of one"),
        ({"overflow": "clip"}, ValueError, "overflow: got 'clip', must be 'special' or 'saturate'"),
        ({"overflow": True}, TypeError, "overflow: got True, must be 'special' or 'saturate'"),
        ({"random": 3}, ValueError, "random: got 3, must be None: only rounding='stochastic' takes random words"),
        (
            {"rounding": "up", "random": np.zeros(3, np.uint16)},
            ValueError,
            "random: got an array of uint16, must be Non",
        ),
        (
            {"rounding": "stochastic"},
            TypeError,
            "random: got None, must be unsigned words of 16 bits for rounding='sto",
        ),
        (
            {"rounding": "stochastic", "random": np.zeros(3)},
            TypeError,
            "random: got an array of float64, must be unsigned words of 16 bits",
        ),
        (
            {"rounding": "stochastic", "random": np.array([0, 7, 8], np.uint8), "random_bits": 3},
            ValueError,
            "random: got 0x8, must be 0 to 0x7, which fits random_bits=3",
        ),
        ({"rounding": "stochastic", "random": 1 << 16}, ValueError, "random: got 0x10000, must be 0 to 0xffff"),
        ({"rounding": "stochastic", "random": -1}, ValueError, "random: got -0x1, must be 0 to 0xffff"),
        (
            {"rounding": "stochastic", "random": 0, "random_bits": 33},
            ValueError,
            "random_bits: got 33, must be 1 to 32",
        ),
        ({"rounding": "stochastic", "random": 0, "random_bits": 0}, ValueError, "random_bits: got 0, must be 1 to 32"),
        (
            {"rounding": "stochastic", "random": 0, "random_bits": 8.0},
            TypeError,
            "random_bits: got 8.0, must be an int",
        ),
        (
            {"rounding": "stochastic", "random": np.zeros(2, np.uint16)},
            ValueError,
            r"(values|codes), random: got shapes \(3,\) and \(2,\), must broadcast",
        ),
        (
            {"rounding": "stochastic", "random": np.zeros((2, 3), np.uint16)},
            ValueError,
            r"random: got shape \(2, 3\), must broadcast to the shape of (values|codes), \(3,\)",
        ),
    ],
)
def test_arguments_of_a_rounding_that_are_wrong_are_named(name, options, error, message):
    with pytest.raises(error, match=message):
        CALLS[name](**options)


def test_codes_of_the_wrong_dtype_or_width_are_named():
    with pytest.raises(
        TypeError, match=r"codes: got an array of int64, must be unsigned codes of float8_e5m2 \(uint8\)"
    ):
        decode(np.zeros(2, np.int64), FLOAT8_E5M2)
    with pytest.raises(ValueError, match="codes: got code 0x10, must be 0 to 0xf for float4_e2m1fn"):
        decode(np.array([3, 16], np.uint8), FLOAT4_E2M1FN)
    with pytest.raises(ValueError, match="codes: got code 0x100, must be 0 to 0xff for float8_e5m2"):
        convert(np.array([256], np.uint16), FLOAT8_E5M2, FP16)
    assert decode(np.array([255], np.uint16), FLOAT8_E4M3FNUZ).tolist() == [-240.0]


@pytest.mark.parametrize("mode", Rounding, ids=str)
def test_encode_of_a_float64_far_below_a_large_smallest_value_is_not_exact(mode):
    # The smallest value is 2^50 or more: 2^-1074, 0x1, over that underflows float64 and looked exact, 0 in every mode.
    tiny = [5e-324, -5e-324, 2.0**-1022, -(2.0**-1030)]
    words = {"random": 0xFFFF} if mode is Rounding.STOCHASTIC else {}
    for fmt in (FloatFormat("high", 4, 4, bias=-53), FloatFormat("high_fn", 5, 2, bias=-5, specials="fn")):
        wanted = np.array([reference.encode(value, fmt, rounding=mode, **words) for value in tiny])
        assert_same_bits(encode(np.array(tiny), fmt, rounding=mode, **words), wanted)
        values = quantize(np.array(tiny), fmt, rounding=mode, **words)
        assert_same_bits(values.view(np.uint32), decode(wanted.astype(encode(0.0, fmt).dtype), fmt).view(np.uint32))
