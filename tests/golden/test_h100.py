"""Sums of a real H100 as an outside judge: its tensor cores' results, kept with their operands, against the presets.

`lab.devices.card` has the kernels that asked for them, on an H100 with driver 580 on 2026-11-26: one instruction after
the other, each adding to the results of the one before. Operands reach over the whole range of exponents.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from golden import BF16, FLOAT8_E4M3FN, FLOAT8_E5M2, FP16, Accumulator, FloatFormat, accumulators, kernels, matmul

from .judges import assert_same_bits

SUMS = np.load(Path(__file__).with_name("h100_sums.npz"))
SIDE = 8
HOPPER, HOPPER_8 = accumulators["nvidia_hopper"], accumulators["nvidia_hopper_fp8"]
INTO_HALF = accumulators["nvidia_hopper_into_fp16"]
TF32 = FloatFormat("tf32", 8, 10)
#: An instruction in TF32, which holds every value of bfloat16, takes 8 products.
OF_BF16 = replace(HOPPER, block=8, join=replace(HOPPER.join, terms=9))
OF_TF32 = replace(OF_BF16, operand_bits=19)


class Kept(NamedTuple):
    operand: FloatFormat
    rule: Accumulator
    sums: int


KEPT = {
    "wgmma float16": Kept(FP16, HOPPER, 3520),
    "wgmma bfloat16": Kept(BF16, HOPPER, 4224),
    "mma bfloat16": Kept(BF16, HOPPER, 4224),
    "mma tf32 bfloat16": Kept(BF16, OF_BF16, 4224),
    "wgmma tf32": Kept(TF32, OF_TF32, 4928),
    "mma tf32": Kept(TF32, OF_TF32, 4928),
    "wgmma float8_e4m3fn": Kept(FLOAT8_E4M3FN, HOPPER_8, 1408),
    "wgmma float8_e5m2": Kept(FLOAT8_E5M2, HOPPER_8, 1408),
    "wgmma float16 into float16": Kept(FP16, INTO_HALF, 3520),
    "mma float16 into float16": Kept(FP16, INTO_HALF, 3520),
}


def products_of(name: str) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield factors of shape (8, K) and (K, 8), and their product by the card."""
    a, b, results, lengths = (SUMS[f"{name}: {part}"] for part in ("a", "b", "results", "lengths"))
    ends = SIDE * np.cumsum(lengths, dtype=np.int64)[:-1]
    of_each = zip(np.split(a, ends), np.split(b, ends), np.split(results, len(lengths)), lengths, strict=True)
    for x, y, result, length in of_each:
        yield x.reshape(SIDE, length), y.reshape(length, SIDE), result.reshape(SIDE, SIDE)


@pytest.mark.parametrize("path", ["numpy", "portable"])
@pytest.mark.parametrize("name", KEPT)
def test_sums_of_an_h100_are_those_of_its_preset(name, path):
    operand, rule, sums = KEPT[name]
    compared = 0
    with kernels.use(path):
        for a, b, wanted in products_of(name):
            assert_same_bits(matmul(a, b, operand=operand, reduction=rule), wanted)
            compared += wanted.size
    assert compared == sums


@pytest.mark.parametrize("exponent", [-126, -132, -134])
@pytest.mark.parametrize("name", ["wgmma bfloat16", "mma bfloat16", "mma tf32 bfloat16", "wgmma tf32", "mma tf32"])
def test_sums_of_an_h100_tell_another_exponent_of_a_total_of_zero(name, exponent):
    operand, rule, _ = KEPT[name]
    wrong = replace(rule, zero_total_exponent=exponent)
    assert any((matmul(a, b, operand=operand, reduction=wrong) != wanted).any() for a, b, wanted in products_of(name))


@pytest.mark.parametrize("bits", [24, 26])
@pytest.mark.parametrize("products", [4, 8, 16])
@pytest.mark.parametrize("name", ["wgmma tf32", "mma tf32"])
def test_sums_of_an_h100_in_tf32_tell_another_block_and_another_number_of_bits(name, products, bits):
    wrong = replace(OF_TF32, block=products, join=replace(OF_TF32.join, terms=products + 1, fraction_bits=bits))
    assert any((matmul(a, b, operand=TF32, reduction=wrong) != wanted).any() for a, b, wanted in products_of(name))


@pytest.mark.parametrize(
    "wrong",
    [
        {"zero_total_exponent": -14},
        {"zero_exponent": -14},
        {"join": replace(INTO_HALF.join, fraction_bits=24)},
        {"join": replace(INTO_HALF.join, fraction_bits=26)},
        {"join": replace(INTO_HALF.join, rounding="toward_zero")},
        {"block": 8, "join": replace(INTO_HALF.join, terms=9)},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["wgmma float16 into float16", "mma float16 into float16"])
def test_sums_of_an_h100_in_float16_tell_another_number_of_their_rule(name, wrong):
    rule = replace(INTO_HALF, **wrong)
    assert any((matmul(a, b, operand=FP16, reduction=rule) != wanted).any() for a, b, wanted in products_of(name))
