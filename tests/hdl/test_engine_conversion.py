"""The driver's own conversions on the host: the codes and values of golden, which it does not import."""

import numpy as np
import pytest

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32
from hdl.engine.conversion import to_codes, to_values

FORMATS = (CBFLOAT16, FP16, BF16, CB16)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_conversion_of_every_code_gives_the_value_of_golden(fmt):
    codes = np.arange(1 << 16, dtype=np.uint16)
    wanted = golden.decode(golden.convert(codes, fmt, fmt), fmt)  # the canonical NaN for every NaN
    assert (to_values(codes, fmt).view(np.uint32) == wanted.view(np.uint32)).all()


def values_near(fmt):
    """float32 values: any, every value of the format, the middle between two, and their neighbours."""
    rng = np.random.default_rng(5)
    codes = np.arange(1 << 16, dtype=np.uint16)
    exact = golden.decode(codes, fmt).view(np.uint32).astype(np.int64)
    middle = (exact[:-1] + exact[1:]) // 2
    near = [each + step for each in (exact, middle) for step in (-1, 0, 1)]
    given = np.concatenate([*near, rng.integers(0, 1 << 32, 1 << 18)])
    return (given & 0xFFFFFFFF).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("fmt", [*FORMATS, FP32], ids=str)
def test_conversion_of_values_rounds_as_golden_does(fmt):
    given = values_near(CBFLOAT16 if fmt == FP32 else fmt)
    found, wanted = to_codes(given, fmt), golden.encode(given, fmt)
    assert found.dtype == wanted.dtype
    assert (found == wanted).all()


def test_conversion_keeps_shapes_and_takes_any_strides():
    given = np.linspace(-3, 3, 60, dtype=np.float32).reshape(3, 4, 5).transpose(2, 0, 1)[::2, :, ::-1]
    assert (to_codes(given, BF16) == golden.encode(given, BF16)).all()
    signalling = np.uint32([[0x7F800001, 0xFFFFFFFF]])
    assert (to_values(signalling, FP32).view(np.uint32) == FP32.nan).all()
    assert (signalling == np.uint32([[0x7F800001, 0xFFFFFFFF]])).all(), "the codes of the caller changed"
