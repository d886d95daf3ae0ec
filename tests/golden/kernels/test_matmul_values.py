"""`matmul_values`: quantize, matmul and decode in one call, on NumPy and on every compiled path."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, Reduction, decode, encode, kernels, matmul, matmul_values

from ..judges import assert_same_bits, random_codes
from .operands import SIXTEEN_BIT_FORMATS

EVERY = pytest.mark.parametrize("path", kernels.paths())
LEVELS = pytest.mark.parametrize("level", [0, 1, 2])


def values(shape, seed):
    """Values on no format's grid; among them infinities, NaNs with payloads, zeros and float32's subnormals."""
    rng = np.random.default_rng(seed)
    ordinary = rng.normal(size=shape).astype(np.float32)
    any_pattern = random_codes(FP32, ordinary.size, seed).reshape(shape).view(np.float32)
    return np.where(rng.random(shape) < 0.05, any_pattern, ordinary)


def by_codes(a, b, operand, initial=None, out=None, **options):
    plan = options.get("reduction") or Reduction.for_level(options["level"], operand, chunk=options.get("chunk", 32))
    start = None if initial is None else encode(initial, plan.outer)
    with kernels.use("numpy"):
        product = matmul(encode(a, operand), encode(b, operand), operand=operand, initial=start, out=out, **options)
        return decode(product, out or plan.outer).view(np.uint32)


@EVERY
@LEVELS
@pytest.mark.parametrize("fmt", [*SIXTEEN_BIT_FORMATS, FP32], ids=str)
def test_matmul_values_is_quantize_matmul_and_decode(path, fmt, level):
    a, b, initial = values((7, 65), 100), values((65, 70), 101), values((70,), 102)
    for chunk in (None, 1, 32):
        for start, out in ((None, None), (initial, CBFLOAT16)):
            wanted = by_codes(a, b, fmt, start, out, level=level, chunk=chunk)
            with kernels.use(path):
                got = matmul_values(a, b, operand=fmt, level=level, chunk=chunk, initial=start, out=out)
            assert got.dtype == np.float32
            assert_same_bits(got.view(np.uint32), wanted)


@EVERY
@LEVELS
@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (3, 4, 5)), ((2, 3, 4), (4, 1)), ((1, 4), (4, 90)), ((90, 4), (4, 1)),
     ((0, 4), (4, 5)), ((3, 0), (0, 2))],
)  # fmt: skip
def test_matmul_values_of_any_shape_is_quantize_matmul_and_decode(path, level, left, right):
    a, b = values(left, 103), values(right, 104)
    wanted = by_codes(a, b, BF16, level=level)
    with kernels.use(path):
        assert_same_bits(matmul_values(a, b, operand=BF16, level=level).view(np.uint32), wanted)
        swapped = matmul_values(np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2), operand=BF16, level=level)
    assert_same_bits(np.swapaxes(swapped, -1, -2).view(np.uint32), wanted)


@EVERY
def test_matmul_values_of_nothing_is_the_initial_value_rounded(path):
    a, b = np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)
    with kernels.use(path):
        got = matmul_values(a, b, operand=CBFLOAT16, level=2, initial=np.float32([0.1, np.nan, 1e30]))
        into = matmul_values(a, b, operand=CBFLOAT16, level=1, initial=np.float32(0.1), out=FP16)
    assert_same_bits(got[0].view(np.uint32), np.array([0x3DCCC000, 0x7FC00000, 0x7F800000], np.uint32))
    assert (into == np.float32(np.float16(0.1))).all()


def test_matmul_values_of_anything_but_float32_raises_naming_it():
    good = np.zeros((2, 2), np.float32)
    for bad in (np.zeros((2, 2)), np.zeros((2, 2), np.uint16), [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(TypeError, match=r"^a: got an array of .*, must be float32 values; golden\.decode turns"):
            matmul_values(bad, good, operand=BF16)
        with pytest.raises(TypeError, match=r"^b: got an array of .*, must be float32 values"):
            matmul_values(good, bad, operand=BF16)
        with pytest.raises(TypeError, match=r"^initial: got an array of .*, must be float32 values"):
            matmul_values(good, good, operand=BF16, initial=bad)
    with pytest.raises(ValueError, match=r"a, b: got shapes \(2, 2\) and \(3, 2\), must be"):
        matmul_values(good, np.zeros((3, 2), np.float32), operand=BF16)
    with pytest.raises(ValueError, match=r"initial: got shapes \(3,\) and \(2, 2\), must broadcast to one shape"):
        matmul_values(good, good, operand=BF16, initial=np.zeros(3, np.float32))


def test_matmul_values_of_float16_takes_them_as_they_are():
    a = np.float16([[1.5, -2.0]])
    assert matmul_values(a, a.T, operand=FP16).tolist() == [[6.25]]
