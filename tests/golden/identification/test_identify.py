"""Devices whose rule is known are identified blind; any other is never given a wrong model."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    DLFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    FloatFormat,
    Reduction,
    accumulators,
    identify,
)

VERIFY = 20_000


def device(model, operand):
    return lambda a, b: golden.matmul(a, b, operand=operand, reduction=model)


@pytest.mark.turns
@pytest.mark.parametrize("name", ["nvidia_hopper", "amd_cdna3", "x86_tdpbf16ps", "arm_bfdot"])
def test_identify_preset_returns_it(name):
    found = identify(device(accumulators[name], BF16), operand="bfloat16", verify=VERIFY)
    assert (found.model, found.name, found.verified) == (accumulators[name], name, VERIFY)
    assert name in found.text()


@pytest.mark.long
@pytest.mark.parametrize("name", accumulators)
def test_identify_every_preset_on_every_width_of_operands_returns_its_sums(name):
    rule = accumulators[name]
    for operand in (BF16, FP16) if rule.operand_bits == 16 else (FLOAT8_E4M3FN, FLOAT8_E5M2):
        found = identify(device(rule, operand), operand=operand, verify=VERIFY)
        assert found.model is not None, found.text()
        # In float16 no product is small or large enough to tell some machines apart: any of them is right.
        assert found.model == rule or operand is FP16 or found.verified == VERIFY


@pytest.mark.long
def test_identify_machine_with_operands_in_tf32_returns_it():
    hopper, tf32 = accumulators["nvidia_hopper"], FloatFormat("tf32", 8, 10)
    rule = replace(hopper, operand_bits=19, block=8, join=replace(hopper.join, terms=9))
    assert identify(device(rule, tf32), operand=tf32, verify=VERIFY).model == rule


@pytest.mark.turns
@pytest.mark.parametrize(
    "reduction",
    [
        Reduction.for_level(0, FP16),
        Reduction.for_level(1, BF16, chunk=12),
        Reduction.for_level(2, CBFLOAT16),
        Reduction(CBFLOAT16, None, CBFLOAT16, operand=CBFLOAT16),
        Reduction.for_level(1, FLOAT8_E4M3FN),
        Reduction(CBFLOAT16, 32, CB16, operand=FP16, rounding="up"),
        Reduction(BF16, 5, FP32, operand=FP16, out=FP16, rounding="to_odd", out_rounding="down"),
        Reduction(FP32, None, FP32, operand=BF16, out=BF16, rounding="nearest_away", out_rounding="toward_zero"),
        Reduction(FP16, 32, FP32, operand=FP16, subnormals="flush"),
        Reduction(CBFLOAT16, 32, CBFLOAT16, operand=CBFLOAT16, out=DLFLOAT16),
        Reduction(CBFLOAT16, 32, CBFLOAT16, operand=FLOAT8_E4M3FN),
    ],
    ids=str,
)
def test_identify_reduction_returns_one_with_the_same_sums(reduction):
    operand = reduction.operand or FP16
    found = identify(device(reduction, operand), operand=operand, verify=VERIFY)
    assert isinstance(found.model, Reduction), found.text()
    asked = found.model
    wanted = (reduction.inner, reduction.outer, reduction.rounding, reduction.subnormals)
    assert (asked.inner, asked.outer, asked.rounding, asked.subnormals) == wanted
    assert asked.chunk == reduction.chunk or reduction.inner == reduction.outer


def in_float64(a, b):
    with np.errstate(all="ignore"):
        return golden.encode(golden.decode(a, BF16).astype(float) @ golden.decode(b, BF16).astype(float), FP32)


@pytest.mark.long
def test_identify_sum_in_float64_finds_no_model_and_shows_the_nearest_and_a_failing_sum():
    found = identify(in_float64, operand=BF16, verify=VERIFY)
    assert found.model is None
    assert found.reduction is None
    assert all(each.share < 1 for each in found.nearest)
    assert "No model" in found.text()
    assert found.failing is not None
    a, b = (np.array(codes, np.uint16) for codes in zip(*found.failing.products, strict=True))
    assert found.failing.result == in_float64(a[None], b[:, None])[0, 0]


@pytest.mark.long
def test_identify_device_with_one_wrong_ulp_in_a_thousand_sums_finds_no_model():
    def faulty(a, b):
        result = golden.matmul(a, b, operand=BF16, level=0)
        # Where the last factor's fraction has its top bits set, a carry is lost.
        return result ^ ((a[:, -1:] & 0x7F) == 0x7D).astype(np.uint32)

    found = identify(faulty, operand=BF16, verify=VERIFY)
    assert found.model is None
    assert found.nearest[0].share > 0.9


def test_identify_device_of_zeros_finds_no_model():
    with pytest.raises(ValueError, match=r"^result: cannot tell the format of results"):
        identify(lambda a, b: np.zeros((a.shape[0], b.shape[1]), np.uint32), operand=BF16)
    found = identify(
        lambda a, b: np.zeros((a.shape[0], b.shape[1]), np.uint32), operand=BF16, result="float32", verify=VERIFY
    )
    assert found.model is None
    assert found.findings[0].statement.startswith("All results are equal")


def test_identify_stochastic_device_says_that_results_do_not_repeat():
    random = np.random.default_rng(3)

    def device_with_noise(a, b):
        return golden.matmul(a, b, operand=FP16, level=2, rounding="stochastic", seed=int(random.integers(2**32)))

    found = identify(device_with_noise, operand=FP16, verify=VERIFY)
    assert found.model is None
    statements = [each.statement for each in found.findings]
    assert "Results do not repeat." in statements
    assert "Results depend on their place." in statements


@pytest.mark.turns
@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("nvidia_hopper", "Order: blocks of 16 products; within a block, all are lost together."),
        ("nvidia_hopper", "Of the first three products 1, 2^-25, -1 the small term comes out; that of 2^-26 does not."),
        ("nvidia_volta", "Order: blocks of 4 products; within a block, all are lost together."),
        ("x86_vdpbf16ps", "Subnormal operands are flushed to zero."),
        ("nvidia_ada", "Subnormal operands keep their values."),
        ("amd_cdna1", "Order: blocks of 4 products; within a block, in several steps."),
    ],
)
def test_identify_findings_state_what_the_machine_is_known_for(name, statement):
    found = identify(device(accumulators[name], BF16), operand=BF16, verify=0)
    assert statement in [each.statement for each in found.findings]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"operand": "float32"}, ValueError, "operand: got float32, must have at most 19 bits"),
        ({"verify": -1}, ValueError, "verify: got -1, must be an int from 0 to"),
        ({"seed": "1"}, ValueError, "seed: got '1'"),
        ({"values": True, "result": "float16"}, ValueError, "result: got float16 with values=True, must be float32"),
        ({"function": 3}, TypeError, "function: got 3, must be callable"),
        ({"function": lambda a, b: a}, ValueError, r"function: got a result of shape"),
        ({"function": lambda a, b: np.zeros((len(a), b.shape[1]))}, TypeError, "must be unsigned codes"),
    ],
)
def test_identify_wrong_argument_is_refused_by_name(options, error, match):
    given = {"function": device(Reduction.for_level(0, BF16), BF16), "operand": BF16, "verify": 10} | options
    with pytest.raises(error, match=match):
        identify(given.pop("function"), **given)


@pytest.mark.parametrize("result", [None, "float32"])
@pytest.mark.parametrize("made", [lambda codes: codes.astype(np.int64), lambda codes: codes.tolist()])
def test_identify_results_in_int64_or_lists_are_refused_by_their_dtype(made, result):
    known = "of float32 in uint32" if result else "in uint8 or uint16 or uint32"
    match = f"^function: got results in int64, must be unsigned codes {known}, or the same bits in signed integers"
    with pytest.raises(TypeError, match=match):
        identify(lambda a, b: made(golden.matmul(a, b, operand=BF16)), operand=BF16, result=result, verify=10)


@pytest.mark.parametrize("result", [None, "float32"])
def test_identify_results_in_int32_are_the_same_bits(result):
    def signed(a, b):
        return golden.matmul(a, b, operand=BF16, level=1, chunk=12).view(np.int32)

    found = identify(signed, operand=BF16, result=result, verify=VERIFY)
    assert found.model == Reduction(BF16, 12, FP32, operand=BF16, out=FP32)


def test_identify_signed_results_wider_than_their_format_are_refused():
    def wider(a, b):
        return golden.matmul(a, b, operand=BF16, level=2).view(np.int16).astype(np.int32)

    with pytest.raises(TypeError, match="got results in int32, must be unsigned codes of bfloat16 in uint16"):
        identify(wider, operand=BF16, result="bfloat16", verify=10)


def test_identify_operands_of_4_bits_finds_a_model_and_states_no_order():
    model = Reduction(BF16, 32, FP32, operand=FLOAT4_E2M1FN)
    found = identify(device(model, FLOAT4_E2M1FN), operand=FLOAT4_E2M1FN, verify=VERIFY)
    assert (found.model.inner, found.model.chunk, found.model.outer) == (BF16, 32, FP32)
    statements = [each.statement for each in found.findings]
    assert statements[0].startswith("Order: not found.")
    assert not any(statement.startswith("Rounding is random") for statement in statements)
