"""Values to codes and back on every compiled path: the bits of NumPy and of outside libraries."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import BF16, CBFLOAT16, FP16, FP32, convert, decode, encode, kernels, quantize

from ..judges import all_codes, assert_same_bits, boundary_codes, formats, random_codes, values_around
from .operands import COMPILED, FORMATS

EVERY_FORMAT = pytest.mark.parametrize("fmt", FORMATS, ids=str)


def on_numpy(function, *arguments):
    with kernels.use("numpy"):
        return function(*arguments)


def float32_patterns(fmt):
    """Float32 patterns at the limits of the format, and any."""
    return np.concatenate([boundary_codes(FP32, near=(fmt,)), random_codes(FP32, 20_003, 110)]).view(np.float32)


def float64_values(fmt):
    """Midpoints and their float64 neighbours, values beyond float32, any pattern."""
    around = values_around(fmt) if fmt.width <= 16 else np.random.default_rng(111).normal(size=1000)
    any_pattern = np.random.default_rng(112).integers(0, 2**64, 5001, dtype=np.uint64).view(np.float64)
    tiny = np.array([0.0, 5e-324, 2.0**-1022, 2.0**-160, 2.0**-149, 2.0**-150, 1e308, np.inf, np.nan])
    return np.concatenate([around, -around, any_pattern, tiny, -tiny])


@COMPILED
@EVERY_FORMAT
def test_encode_compiled_is_numpys(path, fmt):
    for values in (float32_patterns(fmt), float64_values(fmt)):
        wanted, rounded = on_numpy(encode, values, fmt), on_numpy(quantize, values, fmt)
        with kernels.use(path):
            assert_same_bits(encode(values, fmt), wanted, values)
            assert_same_bits(quantize(values, fmt).view(np.uint32), rounded.view(np.uint32), values)


@COMPILED
@EVERY_FORMAT
def test_decode_and_convert_compiled_are_numpys(path, fmt):
    codes = all_codes(fmt) if fmt.width <= 16 else np.append(boundary_codes(fmt), random_codes(fmt, 20_003, 113))
    values = on_numpy(decode, codes, fmt)
    with kernels.use(path):
        assert_same_bits(decode(codes, fmt).view(np.uint32), values.view(np.uint32), codes)
    for destination in FORMATS:
        wanted = on_numpy(convert, codes, fmt, destination)
        with kernels.use(path):
            assert_same_bits(convert(codes, fmt, destination), wanted, codes)


@COMPILED
@pytest.mark.parametrize(("fmt", "host"), [(FP16, np.float16), (BF16, ml_dtypes.bfloat16)], ids=["float16", "bfloat16"])
def test_encode_compiled_is_the_hosts_rounding(path, fmt, host):
    values = float32_patterns(fmt)
    with np.errstate(all="ignore"):
        codes = values.astype(host).view(np.uint16)
    wanted = np.where(np.isnan(values), fmt.nan, codes)
    with kernels.use(path):
        assert_same_bits(encode(values, fmt), wanted, values)


@COMPILED
@given(st.data())
def test_encode_compiled_in_any_format_is_numpys(path, data):
    fmt = data.draw(formats())
    patterns = random_codes(FP32, data.draw(st.integers(0, 40)), data.draw(st.integers(0, 2**32)))
    values = np.append(patterns, boundary_codes(FP32, near=(fmt,))[:: data.draw(st.integers(1, 97))]).astype(np.uint32)
    wanted = on_numpy(encode, values.view(np.float32), fmt)
    with kernels.use(path):
        assert_same_bits(encode(values.view(np.float32), fmt), wanted, values)
        back = on_numpy(decode, wanted, fmt)
        assert_same_bits(decode(wanted, fmt).view(np.uint32), back.view(np.uint32), wanted)


@COMPILED
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 65_535, 65_537, 200_001])
def test_encode_compiled_of_any_length_and_threads_writes_every_element_once(path, count):
    values = random_codes(FP32, count, 114).view(np.float32)
    wanted = on_numpy(quantize, values, CBFLOAT16).view(np.uint32)
    for threads in (1, 2, 3):
        room = np.full(count + 64, 1234.5, np.float32)
        with kernels.use(path, threads):
            assert_same_bits(encode(values, CBFLOAT16), on_numpy(encode, values, CBFLOAT16), values)
            assert quantize(values, CBFLOAT16, out=room[32 : count + 32]).base is room
        assert_same_bits(room[32 : count + 32].view(np.uint32), wanted)
        assert (room[:32] == 1234.5).all()
        assert (room[count + 32 :] == 1234.5).all()


@pytest.mark.parametrize("path", kernels.paths())
def test_quantize_into_out_gives_the_same_wherever_it_lies(path):
    values = random_codes(FP32, 300, 115).view(np.float32)
    wanted = on_numpy(quantize, values, BF16).view(np.uint32)
    with kernels.use(path):
        in_place = values.copy()
        assert quantize(in_place, BF16, out=in_place) is in_place
        assert_same_bits(in_place.view(np.uint32), wanted)
        overlapping = np.append(values, np.float32(0))
        quantize(overlapping[:-1], BF16, out=overlapping[1:])
        assert_same_bits(overlapping[1:].view(np.uint32), wanted)
        strided = quantize(np.repeat(values, 2)[::2], BF16, out=np.empty(300, np.float32))
        assert_same_bits(strided.view(np.uint32), wanted)
        wide = np.empty(300, np.float64)
        wide[...] = np.where(np.isnan(values), np.nan, values)
        assert_same_bits(quantize(wide, BF16, out=np.empty(300, np.float32)).view(np.uint32), wanted)
        assert float(quantize(0.1, CBFLOAT16)) == 0.0999755859375
        assert quantize(np.float32(0.1), CBFLOAT16, out=np.empty((), np.float32)).shape == ()


def test_quantize_into_an_unfit_out_raises_naming_it():
    values = np.zeros(4, np.float32)
    for out, message in ((np.zeros(4), "got an array of float64"), ([0.0] * 4, r"got \[0.0"), (True, "got True")):
        with pytest.raises(TypeError, match=f"out: {message}.*, must be a float32 array or None"):
            quantize(values, BF16, out=out)
    with pytest.raises(ValueError, match=r"out: got shape \(3,\), must be the shape of values, \(4,\)"):
        quantize(values, BF16, out=np.zeros(3, np.float32))
    read_only = np.zeros(4, np.float32)
    read_only.flags.writeable = False
    for out in (np.zeros(8, np.float32)[::2], read_only):
        with pytest.raises(ValueError, match=r"out: got a strided, read-only, .* array, must be C-contiguous"):
            quantize(values, BF16, out=out)
