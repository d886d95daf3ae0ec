"""Accumulators of other machines: kept results of outside judges, arrays against the reference, bad input."""

import pickle
import re
from dataclasses import FrozenInstanceError, fields, replace
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import NamedTuple, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from golden import BF16, CBFLOAT16, FLOAT8_E4M3FN, FP16, FP32, FusedSum, Rounding, accumulators, reference
from golden.code_arrays import code_dtype
from golden.formats import FLOAT8_E5M2, FORMATS, format_named
from lab.suites.accumulators.cases import draw, draw_edges
from lab.suites.accumulators.faults import faults_of

from .judges import assert_same_bits

NAMES = pytest.mark.parametrize("name", accumulators)
VECTORS = Path(__file__).with_name("accumulator_vectors.txt")
#: Faults that change no result in the formats of the machine.
HARMLESS = {
    ("amd_cdna1", "stage 1: rounding"): "float32 holds every product of float16",
    ("amd_cdna2", "stage 1: rounding"): "a product that float32 does not hold is flushed",
    ("amd_cdna2_bf16", "stage 1: rounding"): "likewise",
    ("arm_bfdot", "stage 1: rounding"): "likewise",
    ("amd_cdna3_fp8", "no overflow of products"): "products of 8 bits are below 2**33",
    ("amd_cdna2", "flushing of another kind"): "shows in signs of zeros: test_zeros_of_cdna2_...",
    ("amd_cdna2_bf16", "flushing of another kind"): "likewise",
    ("amd_cdna2", "total flushed at every block"): "likewise",
    ("amd_cdna2_bf16", "total flushed at every block"): "likewise",
    **{
        ("nvidia_hopper_into_fp16", f"total of 0 at {exponent}"): "every term of float16 is above it"
        for exponent in (-134, -132, -126)
    },
}


class Vector(NamedTuple):
    name: str
    fmt: golden.FloatFormat
    judge: str
    total: int
    result: int
    a: list[int]
    b: list[int]


@lru_cache(maxsize=1)
def vectors():
    lines = VECTORS.read_text().splitlines()[1:]
    made = []
    for head, *rows in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, fmt, judge, total, result = head.split()
        a, b = ([int(code, 16) for code in row.split()] for row in rows)
        made.append(Vector(name, format_named(fmt), judge, int(total, 16), int(result, 16), a, b))
    return made


def is_right(vector, got):
    """Tell whether a result is the judge's; AMD's and x86's NaNs carry payloads that are not modelled."""
    if vector.name.startswith(("amd", "x86")) and FP32.is_nan(vector.result):
        return bool(FP32.is_nan(got)) and got == accumulators[vector.name].nan
    return got == vector.result


def dot(vector, rule):
    dtype = np.uint8 if vector.fmt.width <= 8 else np.uint16
    a, b = (np.array(codes, dtype) for codes in (vector.a, vector.b))
    return int(golden.dot(a, b, operand=vector.fmt, reduction=rule, initial=code_dtype(rule.outer)(vector.total)))


@NAMES
def test_kept_vectors_of_outside_judges_are_met_by_reference_and_arrays(name):
    mine = [vector for vector in vectors() if vector.name == name]
    assert mine
    for vector in mine:
        rule = accumulators[name]
        exact, flags = reference.dot(vector.a, vector.b, operand=vector.fmt, reduction=rule, initial=vector.total)
        assert is_right(vector, exact), (vector, hex(exact))
        assert flags == 0
        assert is_right(vector, dot(vector, rule)), vector


@NAMES
def test_one_wrong_number_in_a_rule_is_shown_by_the_kept_vectors(name):
    mine = [vector for vector in vectors() if vector.name == name]
    for fault, wrong in faults_of(accumulators[name]):
        shown = any(not is_right(vector, dot(vector, wrong)) for vector in mine)
        assert shown or (name, fault) in HARMLESS, fault


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(list(accumulators)), st.integers(0, 2**32), st.integers(1, 70), st.data())
def test_arrays_have_the_references_codes_in_every_format(name, seed, length, data):
    rule = accumulators[name]
    fmt = data.draw(
        st.sampled_from([fmt for fmt in FORMATS if (fmt.width <= 8) == (rule.operand_bits == 8) and fmt.width <= 16])
    )
    cases = draw(np.random.default_rng(seed), fmt, 2, length, 2, rule.outer)
    options = {"operand": fmt, "reduction": rule}
    got = golden.matmul(cases.a, cases.b, initial=cases.totals, **options)
    wanted = [
        [reference.dot(a, b, initial=int(cases.totals[i, j]), **options)[0] for j, b in enumerate(cases.b.T.tolist())]
        for i, a in enumerate(cases.a.tolist())
    ]
    assert_same_bits(got, np.array(wanted, code_dtype(rule.outer)))


@NAMES
def test_matmul_dot_and_matmul_values_agree(name):
    rule = accumulators[name]
    fmt = BF16 if rule.operand_bits == 16 else FLOAT8_E4M3FN
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 3, 150)).astype(np.float32), rng.normal(size=(150, 4)).astype(np.float32)
    start = rng.normal(size=(3, 4)).astype(np.float32)
    a, b, c = golden.encode(x, fmt), golden.encode(y, fmt), golden.encode(start, rule.outer)
    options = {"operand": fmt, "reduction": rule}
    product = golden.matmul(a, b, initial=c, **options)
    assert product.shape == (2, 3, 4)
    assert product.dtype == code_dtype(rule.outer)
    assert_same_bits(golden.dot(a[:, :, None], b.T, initial=c, **options), product)
    assert_same_bits(golden.decode(product, rule.outer), golden.matmul_values(x, y, initial=start, **options))
    narrow = golden.matmul(a, b, initial=c, out=CBFLOAT16, **options)
    assert_same_bits(narrow, golden.convert(product, rule.outer, CBFLOAT16))
    assert (
        reference.matmul(a[0].tolist(), b[:, :1].tolist(), **options)
        == golden.matmul(a[0], b[:, :1], **options).tolist()
    )


@NAMES
def test_empty_reduction_gives_the_initial_value(name):
    rule = accumulators[name]
    fmt = BF16 if rule.operand_bits == 16 else FLOAT8_E4M3FN
    empty = np.zeros((3, 0), np.uint8 if fmt.width == 8 else np.uint16)
    options = {"operand": fmt, "reduction": rule}
    assert golden.dot(empty, empty, **options).tolist() == [0, 0, 0]
    least = rule.outer.sign_mask | 1
    assert golden.dot(empty, empty, initial=np.uint32(least), **options).tolist() == [least] * 3
    assert reference.dot([], [], initial=least, **options)[0] == least


@NAMES
def test_empty_reduction_keeps_the_code_of_an_initial_nan(name):
    rule = accumulators[name]
    fmt = BF16 if rule.operand_bits == 16 else FLOAT8_E4M3FN
    signalling, empty = rule.outer.inf | 1, np.zeros(0, code_dtype(fmt))
    for backend in golden.backends():
        options = {"operand": fmt, "reduction": rule, "backend": backend}
        assert golden.dot(empty, empty, initial=np.uint32(signalling), **options) == signalling
    assert reference.dot([], [], initial=signalling, operand=fmt, reduction=rule)[0] == signalling


def test_total_alone_keeps_the_digits_of_the_total():
    rule = golden.Accumulator(16, 2, FusedSum(3, 4), total_fraction_bits=8, nan=FP32.nan)
    a, total, wanted = [1, 2.0**-6], 2.0**-7, 1 + 2.0**-7  # four bits below 1 lose 2^-6
    codes, ones = golden.encode(np.array(a), BF16), np.full(2, BF16.one, np.uint16)
    for backend in golden.backends():
        options = {"operand": BF16, "reduction": rule, "backend": backend}
        code = golden.dot(codes, ones, initial=golden.encode(total, FP32), **options)
        assert golden.decode(code, FP32) == wanted


def both(a, b, total, rule):
    """Return the code that reference and arrays agree on."""
    options = {"operand": BF16, "reduction": rule}
    exact, _ = reference.dot(a, b, initial=total, **options)
    assert golden.dot(np.uint16(a), np.uint16(b), initial=np.uint32(total), **options) == exact
    return exact


def test_x86_flushes_what_is_tiny_with_an_unbounded_exponent():
    # 2^-126 - 0.375 * 2^-149: float32 rounds it to 2^-126, with an unbounded exponent it stays below; the processor's
    # VDPBF16PS gives 0. So does TDPBF16PS for (1 + 2^-6 + 2^-14) 2^-126 - 2^-132 - 169 * 97 * 2^-154.
    assert both([0x0DB0], [0xA700], 0x00800001, accumulators["x86_vdpbf16ps"]) == 0
    assert both([0x0DA0], [0xA700], 0x00800001, accumulators["x86_vdpbf16ps"]) == 0x00800000
    a, b = [0x2181, 0, 0xA180, 0, 0xA029], [0x1E81, 0, 0x1B80, 0, 0x18C2]
    wanted = [(1 + 2**-7) * 2.0**-60, 0, -(2.0**-60), 0, -169 * 2.0**-70]
    assert golden.decode(np.uint16(a), BF16).tolist() == wanted
    assert both(a, b, 0, accumulators["x86_tdpbf16ps"]) == 0


@pytest.mark.parametrize("name", accumulators)
def test_arrays_have_the_references_codes_at_zeros_subnormals_and_the_smallest_normal(name):
    rule = accumulators[name]
    rng = np.random.default_rng(9)
    for fmt in (BF16, FP16) if rule.operand_bits == 16 else (FLOAT8_E4M3FN, FLOAT8_E5M2):
        for length in (1, 2, rule.block):
            a, b, totals = draw_edges(rng, fmt, 4, length, 6, rule.outer)
            got = golden.matmul(a, b, operand=fmt, reduction=rule, initial=totals)
            for at in np.ndindex(totals.shape):
                wanted = reference.dot(
                    a[at[0]].tolist(), b[:, at[1]].tolist(), operand=fmt, reduction=rule, initial=int(totals[at])
                )[0]
                assert got[at] == wanted, (fmt, length, a[at[0]], b[:, at[1]], hex(totals[at]))


def test_zeros_of_cdna2_lose_their_sign_where_an_instruction_begins_and_keep_it_within():
    # MMA-Sim gives these results. Products of -2^-252 are -0, and so is their sum.
    rule = accumulators["amd_cdna2_bf16"]
    assert both([0x0080] * 2, [0x8080] * 2, 0x80000000, rule) == 0
    assert both([0x0080] * 2, [0x8080] * 2, 0x80000000, replace(rule, flush="signed")) == 0x80000000
    a = [0xA1E2, 0x219C, 0x9F3F, 0xA2CA, 0xA1E3, 0x219C, 0x9F3F, 0xA2CA]
    b = [0xA040, 0x9EA0, 0x9F00, 0x9CC0, 0x2040, 0x1EA0, 0x1F00, 0x1CC0]
    assert both(a, b, 0x000C0000, rule) == 0x80000000
    assert both(a, b, 0x000C0000, replace(rule, depth=None)) == 0
    long = accumulators["amd_cdna2"]
    assert both([0x0080] * 4, [0x8080] * 4, 0x80000000, long) == 0
    assert both([0x0080] * 4, [0x8080] * 4, 0x80000000, replace(long, flush="signed")) == 0x80000000
    # The first eight leave -(2^-128), which is flushed to -0; the others are zeros of that sign.
    a = [0x0080, 0, 0, 0, 0x0080, 0, 0, 0, *[0x0080] * 8]
    b = [0x3FC0, 0, 0, 0, 0xBFE0, 0, 0, 0, *[0x8080] * 8]
    assert both(a, b, 0, long) == 0x80000000
    assert both(a, b, 0, replace(long, depth=None)) == 0


def test_tensor_core_of_hopper_cuts_what_it_cannot_align():
    # 2^-26 lies below the 25 bits that stay, and is lost; Volta's 23 bits lose 2^-24.
    one, small = int(golden.encode(1.0, FP16)), {e: int(golden.encode(-(2.0**-e), FP16)) for e in (11, 12, 13)}
    for name, lost, kept, result in (
        ("nvidia_hopper", (13, 13), (13, 12), 0x3F7FFFFF),
        ("nvidia_volta", (12, 12), (12, 11), 0x3F7FFFFE),
    ):
        options = {"operand": FP16, "reduction": accumulators[name]}
        assert reference.dot([one, small[lost[0]]], [one, small[lost[1]] ^ 0x8000], **options)[0] == 0x3F800000
        assert reference.dot([one, small[kept[0]]], [one, small[kept[1]] ^ 0x8000], **options)[0] == result


def test_presets_of_equal_rules_are_refused_under_their_own_names():
    ones = np.full(4, 0x3C00, np.uint16)
    equal = [preset for preset in accumulators.values() if list(accumulators.values()).count(preset) > 1]
    assert len(equal) >= 6
    for preset in equal:
        with pytest.raises(ValueError, match=re.escape(f"the flags of {preset.provenance.machine} are not modelled")):
            golden.dot(ones, ones, operand=FP16, reduction=preset, return_flags=True)


def test_what_a_machine_has_not_is_refused_with_the_reason():
    hopper = accumulators["nvidia_hopper"]
    ones = np.full(4, 0x3F80, np.uint16)
    options = {"operand": BF16, "reduction": hopper}
    with pytest.raises(ValueError, match="return_flags: got True"):
        golden.dot(ones, ones, return_flags=True, **options)
    for call in (golden.dot, lambda a, b, **named: golden.matmul(a[None], b[:, None], **named)):
        with pytest.raises(ValueError, match="rounding: got another mode"):
            call(ones, ones, rounding="down", **options)
    with pytest.raises(ValueError, match="rounding: got another mode"):
        reference.dot([0x3F80], [0x3F80], rounding="stochastic", **options)
    with pytest.raises(ValueError, match="counts: got True"):
        reference.dot([0x3F80], [0x3F80], counts=True, **options)
    with pytest.raises(ValueError, match="operand: got float8_e4m3fn of 8 bits, must have 9 to 16 bits"):
        golden.dot(np.uint8([1]), np.uint8([1]), operand=FLOAT8_E4M3FN, reduction=hopper)
    with pytest.raises(ValueError, match="must have 1 to 8 bits"):
        reference.dot([1], [1], operand=BF16, reduction=accumulators["deepseek_fp8"])
    with pytest.raises(ValueError, match="must have 9 to 16 bits"):
        golden.matmul_values(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32), operand=FP32, reduction=hopper)
    with pytest.raises(
        TypeError, match=r"reduction: got 'nvidia_hopper', must be a Reduction, one of golden\.accumulators"
    ):
        golden.dot(ones, ones, operand=BF16, reduction="nvidia_hopper")
    with pytest.raises(TypeError):
        accumulators["mine"] = hopper


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"operand_bits": 32}, "operand_bits: got 32"),
        ({"operand_bits": True}, "operand_bits: got True, must be int"),
        ({"products_overflow": 1}, "products_overflow: got 1, must be bool"),
        ({"total_fraction_bits": 41}, "total_fraction_bits: got 41, must be 1 to 40"),
        ({"total_reach": 41}, "total_reach: got 41, must be 1 to 40"),
        ({"total_reach": 1.5}, "total_reach: got 1.5, must be int or None$"),
        ({"zero_exponent": -1001}, "zero_exponent: got -1001, must be -1000 to 256"),
        ({"nan": 2**32}, f"nan: got {2**32}, must be 0 to {2**32 - 1}"),
        ({"block": 0}, "block: got 0"),
        ({"block": 8}, "join: got 17 terms, must be 9"),
        ({"stages": (FusedSum(3, 24),)}, "stages: got sums of 3 terms, must divide the 16 terms before them"),
        ({"join": FusedSum(17, 25, rounding=None)}, "join: got rounding None"),
        ({"order": (0, 0)}, r"order: got \(0, 0\)"),
        ({"flush": "all"}, "flush: got 'all'"),
        ({"promote_every": 24}, "promote_every: got 24"),
        ({"depth": 1.5}, "depth: got 1.5"),
        ({"nan": 0x7F800000}, "nan: got 0x7f800000"),
    ],
)
def test_rule_that_does_not_fit_together_is_refused(change, match):
    with pytest.raises((TypeError, ValueError), match=match):
        replace(accumulators["nvidia_hopper"], **change)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"terms": 0}, "terms: got 0, must be 1 to 65"),
        ({"terms": 66, "chain": True}, "terms: got 66, must be 1 to 65"),
        ({"terms": 2, "fraction_bits": 0}, "fraction_bits: got 0, must be 1 to 40"),
        ({"terms": 2, "fraction_bits": 41}, "fraction_bits: got 41, must be 1 to 40"),
        ({"terms": 3}, "terms: got 3 that are not cut"),
        ({"terms": 2, "rounding": None}, "rounding: got None"),
        ({"terms": 2, "fraction_bits": 24, "chain": True}, "chain: got True"),
        ({"terms": 2, "fraction_bits": 24, "cut": Rounding.UP}, "cut: got"),
        ({"terms": 2, "rounding": Rounding.UP}, "rounding: got"),
        ({"terms": 2, "result": CBFLOAT16}, "result: got cbfloat16, must be float16, or have the exponents of float32"),
        ({"terms": 2, "result": BF16}, "result: got bfloat16, must be float32 or float16 to round"),
    ],
)
def test_sum_that_no_machine_forms_is_refused(arguments, match):
    with pytest.raises((TypeError, ValueError), match=match):
        FusedSum(**arguments)


def test_rule_takes_the_largest_of_every_number():
    FusedSum(65, chain=True)
    largest = {"total_fraction_bits": 40, "total_reach": 40, "zero_exponent": 256, "nan": 2**32 - 1}
    changed = replace(accumulators["nvidia_hopper"], join=FusedSum(17, 40), **largest)
    assert [getattr(changed, argument) for argument in largest] == [40, 40, 256, 2**32 - 1]


@pytest.mark.parametrize("path", golden.kernels.paths())
def test_product_on_cdna3_is_infinite_from_2_to_the_128(path):
    rule = accumulators["amd_cdna3"]
    with golden.kernels.use(path):
        # 16 * 16, 2^64 * 2^63 and 2^64 * 2^64, in three blocks.
        for a, b, wanted in ((0x4180, 0x4180, 0x43800000), (0x5F80, 0x5F00, 0x7F000000), (0x5F80, 0x5F80, 0x7F800000)):
            assert both([a], [b], 0, rule) == wanted


@NAMES
@pytest.mark.parametrize("path", golden.kernels.paths())
def test_infinite_operands_keep_their_sign_in_every_rule(name, path):
    rule = accumulators[name]
    fmt = BF16 if rule.operand_bits == 16 else FLOAT8_E5M2
    minus, length = fmt.sign_mask, 2 * rule.block
    for sign in (0, minus):
        for at in (0, length - 1):
            a, b = [fmt.one] * length, [fmt.one ^ minus] * length
            a[at] = fmt.inf
            b[at] ^= sign
            codes = (np.array(each, np.uint16 if fmt.width > 8 else np.uint8) for each in (a, b))
            with golden.kernels.use(path):
                got = golden.dot(*codes, operand=fmt, reduction=rule)
            assert int(got) == rule.outer.inf | (0 if sign else rule.outer.sign_mask)
            assert int(got) == reference.dot(a, b, operand=fmt, reduction=rule)[0]


def test_machine_of_your_own_takes_names_of_modes_and_needs_no_provenance():
    # Named modes were refused: got 'toward_zero', must be nearest_even, toward_zero, to_odd or None.
    volta = accumulators["nvidia_volta"]
    named = FusedSum(5, 23, cut="toward_zero", rounding="toward_zero")
    mine = golden.Accumulator(operand_bits=16, block=4, join=named, zero_exponent=-126, nan=0x7FFFFFFF)
    assert named == volta.join
    assert mine == volta
    with pytest.raises(ValueError, match=r"must have 9 to 16 bits for the accumulator of your own machine; golden"):
        mine.check_operand(FLOAT8_E4M3FN)


def test_fused_sum_says_in_its_types_that_names_of_modes_are_accepted_and_modes_are_kept():
    # Type checkers refused the names that it accepts: both had the type of the field.
    accepted, kept = get_type_hints(FusedSum.__init__), get_type_hints(FusedSum)
    assert (accepted["cut"], accepted["rounding"]) == (Rounding | str, Rounding | str | None)
    assert (kept["cut"], kept["rounding"]) == (Rounding, Rounding | None)
    assert [field.name for field in fields(FusedSum)] == list(signature(FusedSum).parameters)
    given = FusedSum(3, 24, "down", "to_odd", BF16, interleaved=True)
    assert replace(given) == given == pickle.loads(pickle.dumps(given))
    assert replace(given, cut="to_odd") == FusedSum(3, 24, Rounding.TO_ODD, Rounding.TO_ODD, BF16, interleaved=True)
    with pytest.raises(FrozenInstanceError):
        given.terms = 4


@pytest.mark.parametrize("result", ["float32", None])
def test_fused_sum_with_a_result_that_is_no_format_is_refused_by_name(result):
    # It was an AttributeError: 'str' object has no attribute 'exponent_bits'.
    with pytest.raises(TypeError, match=f"^result: got {result!r}, must be a FloatFormat"):
        FusedSum(2, result=result)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rounding": "nearest"}, "rounding: got 'nearest', must be a Rounding or one of nearest_even"),
        ({"rounding": "up"}, "rounding: got up, must be nearest_even, toward_zero, to_odd or None"),
        ({"cut": Rounding.UP}, "cut: got up, must be toward_zero, down, to_odd"),
    ],
)
def test_fused_sum_with_a_mode_that_it_has_not_is_refused_by_name(arguments, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        FusedSum(5, 23, **arguments)
