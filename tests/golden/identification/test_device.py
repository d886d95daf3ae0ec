"""The device as `identify` asks it: results of values, and formats of results that few products tell apart."""

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, DLFLOAT16, FP16, FP32, FloatFormat
from golden.identification.device import Device, result_format
from golden.identification.probes import Probe

#: Neither infinity nor NaN tells formats of results apart.
FINITE = FloatFormat("finite", 7, 8, specials="finite")


def device_into(out, operand, changed=lambda codes: codes, **options):
    def multiply(a, b):
        with np.errstate(all="ignore"):
            products = golden.decode(a, operand).astype(np.float64) @ golden.decode(b, operand).astype(np.float64)
        return changed(golden.encode(products, out, **options))

    return Device(multiply, operand, values=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_device_of_values_gives_codes_of_float32(dtype):
    device = Device(lambda a, b: (a @ b).astype(dtype), BF16, values=True)
    probe = Probe("own", golden.encode([[1.5, 2.0]], BF16), golden.encode([[3.0], [-0.25]], BF16))
    codes = device.product(probe)
    assert (codes.dtype, golden.decode(codes, FP32).tolist()) == (np.uint32, [[4.0]])
    assert result_format(device) == FP32


@pytest.mark.parametrize("out", [CBFLOAT16, DLFLOAT16])
@pytest.mark.parametrize("operand", [BF16, FP16, FINITE], ids=str)
def test_result_format_is_told_from_another_with_the_same_small_numbers(out, operand):
    assert result_format(device_into(out, operand)) == out


def test_result_format_of_a_device_with_its_own_nan_is_told_by_infinity():
    # Operands in float16 reach no binade in which the two formats differ.
    def changed(codes):
        return np.where(CBFLOAT16.is_nan(codes), np.uint16(CBFLOAT16.nan + 1), codes)

    assert result_format(device_into(CBFLOAT16, FP16, changed)) == CBFLOAT16


def test_result_format_of_a_device_without_infinity_is_told_by_the_largest_binade():
    assert result_format(device_into(DLFLOAT16, BF16, overflow="saturate")) == DLFLOAT16
    with pytest.raises(ValueError, match=r"result: cannot tell the format of results .* cbfloat16 and dlfloat16"):
        result_format(device_into(DLFLOAT16, FP16, overflow="saturate"))
