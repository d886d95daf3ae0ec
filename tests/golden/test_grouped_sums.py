"""RISC-V's integrated matrix extension: `golden.accumulators.riscv_ime` against a model written from its SAIL code.

The model below folds fractions and rounds them by itself: it uses nothing of golden but the numbers of a format.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import golden
from golden import (
    BF16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    Flag,
    Reduction,
    accumulators,
    reference,
)
from golden.arrays.exact_sums import exact_sum

from .judges import INEXACT, INVALID, OVERFLOW, UNDERFLOW, all_codes, boundary_codes

NAN, POSITIVE, NEGATIVE = "nan", "+inf", "-inf"
MODES = ("nearest_even", "toward_zero", "down", "up", "nearest_away")


def decoded(code, fmt):
    """A code as (value, sign of a zero, signals): a fraction, or the name of a special."""
    sign, magnitude = divmod(code, 1 << fmt.width - 1)
    field, fraction = divmod(magnitude, 1 << fmt.fraction_bits)
    top = (1 << fmt.exponent_bits) - 1
    if fmt.specials == "ieee" and field == top:
        if fraction:
            return NAN, 0, not fraction >> fmt.fraction_bits - 1
        return (NEGATIVE if sign else POSITIVE), sign, False
    if fmt.specials == "fn" and magnitude == (1 << fmt.width - 1) - 1:
        return NAN, 0, False
    significand = fraction + (field > 0) * (1 << fmt.fraction_bits)
    value = significand * Fraction(2) ** (max(field, 1) - fmt.bias - fmt.fraction_bits)
    return (-value if sign else value), sign, False


def rounded(value, zero_sign, fmt, mode):
    """Round a fraction; return code and flags (tininess after rounding)."""
    if value in (NAN, POSITIVE, NEGATIVE):
        infinity = (1 << fmt.exponent_bits) - 1 << fmt.fraction_bits
        sign_bit = 1 << fmt.width - 1
        return {NAN: infinity | 1 << fmt.fraction_bits - 1, POSITIVE: infinity, NEGATIVE: infinity | sign_bit}[value], 0
    if value == 0:
        return zero_sign << fmt.width - 1, 0
    sign, magnitude = int(value < 0), abs(value)

    def at(quantum):
        count, rest = divmod(magnitude / Fraction(2) ** quantum, 1)
        up = {
            "nearest_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and count % 2),
            "nearest_away": rest >= Fraction(1, 2),
            "toward_zero": False,
            "down": rest and sign,
            "up": rest and not sign,
            "to_odd": rest and count % 2 == 0,
        }[mode]
        return count + bool(up), rest == 0

    exponent = 0
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    while Fraction(2) ** exponent > magnitude:
        exponent -= 1
    smallest = 1 - fmt.bias
    quantum = max(exponent, smallest) - fmt.fraction_bits
    count, exact = at(quantum)
    unbounded = at(exponent - fmt.fraction_bits)[0] * Fraction(2) ** (exponent - fmt.fraction_bits)
    flags = 0 if exact else INEXACT
    if not exact and unbounded < Fraction(2) ** smallest:
        flags |= UNDERFLOW
    # The count is the code below the first binade, and each binade adds 2^F.
    code = count + (quantum + fmt.fraction_bits - smallest << fmt.fraction_bits)
    largest = ((1 << fmt.exponent_bits) - 1 << fmt.fraction_bits) - 1
    if code > largest:
        stays = mode in ("toward_zero", "to_odd") or (mode == "up" and sign) or (mode == "down" and not sign)
        code, flags = largest + (not stays), OVERFLOW | INEXACT
    return int(code) | sign << fmt.width - 1, flags


def added(x, y, down=False):
    """An exact sum of two decoded values, and whether it is invalid; a sum of zero is -0 in the mode down."""
    (a, sign_a, signals_a), (b, sign_b, signals_b) = x, y
    if NAN in (a, b):
        return (NAN, 0, False), INVALID * (signals_a or signals_b)
    if isinstance(a, str) or isinstance(b, str):
        if isinstance(a, str) and isinstance(b, str) and a != b:
            return (NAN, 0, False), INVALID
        return (a if isinstance(a, str) else b, 0, False), 0
    total = a + b
    zero_sign = sign_a if a == b == 0 and sign_a == sign_b else int(down)
    return (total, int(total < 0) if total else zero_sign, False), 0


def fp_gemm_element(a, b, acc, operand, total, group, rnd, mode):
    """One element of C by ``fp_gemm`` and ``fp_group_sum``: groups of products, psm = 0."""
    flags = 0
    for first in range(0, len(a), group):
        s = (Fraction(0), 0, False)
        for x, y in zip(a[first : first + group], b[first : first + group], strict=True):
            (u, sign_u, signals_u), (v, sign_v, signals_v) = decoded(x, operand), decoded(y, operand)
            if NAN in (u, v):
                term, raised = (NAN, 0, False), INVALID * (signals_u or signals_v)
            elif isinstance(u, str) or isinstance(v, str):
                bad = u == 0 or v == 0
                sign = sign_u ^ sign_v
                term, raised = (NAN if bad else (NEGATIVE if sign else POSITIVE), sign, False), INVALID * bad
            else:
                term, raised = (u * v, sign_u ^ sign_v, False), 0
            s, of_sum = added(s, term)
            flags |= raised | of_sum
        if rnd != "xct":
            bits, raised = rounded(s[0], s[1], total, mode if rnd == "frm" else "to_odd")
            s = decoded(bits, total)
            flags |= raised
        exact, of_sum = added(decoded(acc, total), s, mode == "down")
        acc, raised = rounded(exact[0], exact[1], total, mode)
        flags |= of_sum | raised
    return acc, flags


TYPES = [
    (FP16, FP16), (BF16, BF16), (FP16, BF16), (FP16, FP32), (BF16, FP32), (FP32, FP32), (FLOAT8_E4M3FN, FP16),
    (FLOAT8_E4M3FN, BF16), (FLOAT8_E5M2, FP16), (FLOAT8_E5M2, BF16), (FLOAT8_E5M2, FP32), (FLOAT4_E2M1FN, FP16),
    (FLOAT4_E2M1FN, FP32),
]  # fmt: skip


def operands(operand, total, rng, results, length):
    """Codes of products: anything, near 1, few values that cancel and tie, and the format's limits."""
    kinds = rng.integers(0, 5, (results, 1))
    anything = rng.integers(0, 1 << operand.width, (2, results, length))
    one = operand.bias << operand.fraction_bits
    spread = rng.integers(-(4 << operand.fraction_bits), 4 << operand.fraction_bits, (2, results, length))
    near = np.clip(one + spread, 0, (1 << operand.width - 1) - 1) | rng.integers(0, 2, (2, results, length)) << (
        operand.width - 1
    )
    few = rng.choice([one, one | operand.sign_mask, one + 1, 1, operand.sign_mask | 1, 0], (2, results, length))
    limits = rng.choice(boundary_codes(operand, near=(total,)).astype(np.int64), (2, results, length))
    zeros = rng.choice([0, operand.sign_mask, one], (2, results, length))
    codes = np.choose(kinds, [anything, near, few, limits, zeros])
    start = rng.integers(0, 1 << total.width, results)
    usual = np.choose(rng.integers(0, 3, results), [0 * start, total.sign_mask + 0 * start, start])
    dtype = {4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}
    return *codes.astype(dtype[operand.width]), usual.astype(dtype[total.width])


@pytest.mark.parametrize("rnd", ["frm", "rto", "xct"])
@pytest.mark.parametrize(("operand", "total"), TYPES, ids=lambda fmt: str(fmt))
def test_riscv_ime_is_the_text_in_every_mode_with_flags(operand, total, rnd):
    rng = np.random.default_rng(operand.width * 100 + total.width)
    widening = total.width // operand.width
    for groups, mode in product((1, 2, 4), MODES):
        rule = accumulators.riscv_ime(G=groups, psm=0, rnd=rnd, operand=operand, accumulator=total)
        a, b, start = operands(operand, total, rng, 24, 2 * groups * widening + 1)
        options = {"operand": operand, "reduction": rule, "rounding": mode}
        codes, flags = golden.dot(a, b, initial=start, return_flags=True, **options)
        for x, y, acc, code, raised in zip(*(each.tolist() for each in (a, b, start, codes, flags)), strict=True):
            wanted = fp_gemm_element(x, y, acc, operand, total, groups * widening, rnd, mode)
            assert (code, raised) == wanted, (x, y, hex(acc), mode, rule)
            exact = reference.dot(x, y, initial=acc, **options)
            assert (exact[0], int(exact[1])) == wanted


def test_riscv_ime_model_finds_another_rounding():
    # The model above is no tautology: another rounding of the group's sum, or another group, gives other codes.
    rng = np.random.default_rng(1)
    a, b, start = operands(FP16, FP16, rng, 400, 4)
    seen = [
        golden.dot(
            a, b, operand=FP16, initial=start,
            reduction=accumulators.riscv_ime(G=G, psm=0, rnd=rnd, operand=FP16, accumulator=FP16),
        ).tolist()
        for G, rnd in ((1, "xct"), (2, "xct"), (2, "frm"), (2, "rto"))
    ]  # fmt: skip
    assert len({tuple(each) for each in seen}) == 4


def test_riscv_ime_of_matrices_is_that_of_dots_on_every_back_end_that_serves_it():
    rng = np.random.default_rng(4)
    a, b = (
        rng.integers(0x3000, 0x4400, (5, 6)).astype(np.uint16),
        rng.integers(0x3000, 0x4400, (6, 7)).astype(np.uint16),
    )
    rule = accumulators.riscv_ime(G=2, psm=0, rnd="rto", operand="float16", accumulator="float16")
    whole = Reduction(accumulator=rule, operand=FP16, rounding="up", out=CBFLOAT16)
    wanted = [[reference.dot(row, column, reduction=whole)[0] for column in b.T.tolist()] for row in a.tolist()]
    for backend in (None, "numpy", "exact"):
        assert golden.matmul(a, b, reduction=whole, backend=backend).tolist() == wanted
    with pytest.raises(ValueError, match="not its kind; numpy and exact serve"):
        golden.matmul(a, b, reduction=whole, backend="kernels")
    values = golden.matmul_values(golden.decode(a, FP16), golden.decode(b, FP16), reduction=whole)
    assert np.array_equal(values, golden.decode(np.array(wanted, np.uint16), CBFLOAT16))


def test_riscv_ime_of_no_products_is_the_initial_value():
    rule = accumulators.riscv_ime(G=1, psm=0, rnd="xct", operand="bfloat16", accumulator="bfloat16")
    nothing = np.zeros((3, 0), np.uint16)
    codes, flags = golden.dot(nothing, nothing, operand=BF16, reduction=rule, initial=[1, 2, 3], return_flags=True)
    assert codes.tolist() == [1, 2, 3]
    assert flags.tolist() == [0, 0, 0]


@pytest.mark.parametrize("rnd", ["frm", "rto", "xct"])
@pytest.mark.parametrize("backend", ["numpy", "exact"])
def test_riscv_ime_sum_of_zero_is_negative_in_the_mode_down_but_that_of_plus_zeros(backend, rnd):
    rule = accumulators.riscv_ime(G=1, psm=0, rnd=rnd, operand=FP16, accumulator=FP16)
    one, minus = FP16.one, FP16.sign_mask
    factors, start = [minus | one, one, 0, 0, minus], [one, minus | one, 0, minus, minus]
    for mode, zeros in (("down", [minus, minus, 0, minus, minus]), ("nearest_even", [0] * 5)):
        options = {"operand": FP16, "reduction": rule, "rounding": mode, "backend": backend}
        a = np.array(factors, np.uint16)[:, np.newaxis]
        assert golden.dot(a, np.uint16([one]), initial=np.uint16(start), **options).tolist() == zeros
        for x, acc, zero in zip(factors, start, zeros, strict=True):
            assert fp_gemm_element([x], [one], acc, FP16, FP16, 1, rnd, mode) == (zero, 0)


@pytest.mark.parametrize("backend", ["numpy", "exact"])
def test_riscv_ime_flags_are_those_of_every_group(backend):
    rule = accumulators.riscv_ime(G=1, psm=0, rnd="xct", operand=FP16, accumulator=FP16)
    options = {"operand": FP16, "reduction": rule, "return_flags": True, "backend": backend}
    largest, one = FP16.max_finite, FP16.one
    for x, y, wanted in (
        (largest, largest, (FP16.inf, OVERFLOW | INEXACT)),
        (1, 1, (0, UNDERFLOW | INEXACT)),
        (FP16.inf, 0, (FP16.nan, INVALID)),
        (one, one, (one, 0)),
    ):
        # The group that raises them is the first of two, then the second.
        for a, b in (([x, 0], [y, one]), ([0, x], [one, y])):
            code, flags = golden.dot(np.uint16(a), np.uint16(b), **options)
            assert (int(code), int(flags)) == wanted == fp_gemm_element(a, b, 0, FP16, FP16, 1, "xct", "nearest_even")


def test_riscv_ime_reduction_has_a_text_and_its_own_total():
    rule = accumulators.riscv_ime(G=4, psm=0, rnd="frm", operand="float8_e4m3fn", accumulator="bfloat16")
    reduction = Reduction(accumulator=rule, operand=FLOAT8_E4M3FN, rounding="toward_zero")
    assert Reduction.parse(str(reduction)) == reduction
    assert reduction.outer == reduction.result == BF16
    assert rule.group == 8
    assert rule.provenance.instructions == "vfwmmacc.vv"
    again = Reduction.parse(str(reduction)).accumulator
    assert again.provenance == rule.provenance


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"G": 3}, ValueError, "G: got 3, must be a power of two from 1 to 64"),
        ({"G": "2"}, TypeError, "G: got '2'"),
        ({"psm": 1}, ValueError, "psm: got 1, must be 0.*publishes"),
        ({"psm": None}, TypeError, "psm: got None"),
        ({"rnd": "odd"}, ValueError, "rnd: got 'odd', must be one of frm, rto, xct"),
        ({"operand": "cbfloat16"}, ValueError, "operand: got cbfloat16, must be one of float4_e2m1fn"),
        ({"accumulator": "cb16"}, ValueError, "accumulator: got cb16, must be one of float16, bfloat16, float32"),
        ({"operand": "float32", "accumulator": "float16"}, ValueError, "operand: got float32 with the accumulator"),
    ],
)
def test_riscv_ime_with_a_wrong_argument_is_named(wrong, error, text):
    given = {"G": 1, "psm": 0, "rnd": "xct", "operand": "float16", "accumulator": "float32"}
    with pytest.raises(error, match=text):
        accumulators.riscv_ime(**given | wrong)


def test_riscv_ime_refuses_what_the_machine_does_not_have():
    rule = accumulators.riscv_ime(G=1, psm=0, rnd="xct", operand="float16", accumulator="float16")
    with pytest.raises(ValueError, match=r"rounding: got stochastic, must be one of nearest_even.*nearest_away"):
        golden.dot([0], [0], operand="float16", reduction=rule, rounding="stochastic")
    with pytest.raises(ValueError, match="operand: got bfloat16, must be float16"):
        golden.dot([0], [0], operand="bfloat16", reduction=rule)
    with pytest.raises(ValueError, match="counts: got True, must be False"):
        golden.dot([0], [0], operand="float16", reduction=rule, counts=True)


@pytest.mark.parametrize("name", ["x86_vdpbf16ps", "x86_tdpbf16ps"])
def test_preset_whose_machine_raises_no_flags_has_flags_of_zero(name):
    huge = np.full((2, 3), 0x7F7F, np.uint16)
    codes, flags = golden.dot(huge, huge, operand="bfloat16", reduction=accumulators[name], return_flags=True)
    assert codes.tolist() == [0x7F800000] * 2
    assert flags.tolist() == [0, 0]
    assert golden.dot([], [], operand="bfloat16", reduction=accumulators[name], return_flags=True)[1] == Flag(0)


def test_preset_whose_flags_nobody_knows_still_refuses_them():
    with pytest.raises(ValueError, match="return_flags: got True, must be False: the flags of NVIDIA"):
        golden.dot([0], [0], operand="float16", reduction=accumulators["nvidia_hopper"], return_flags=True)


def test_exact_sum_of_any_exponents_is_the_sum_of_fractions_to_odd():
    rng = np.random.default_rng(6)
    for spread in (4, 40, 270):
        terms = [
            np.ldexp(rng.integers(-(2**47), 2**47, 60).astype(np.float64), rng.integers(-spread, spread, 60))
            for _ in range(9)
        ]
        terms += [-terms[0], -terms[1]]
        terms[3][::4] = 0
        got = exact_sum(terms)
        for at, value in enumerate(got.tolist()):
            wanted = sum((Fraction(float(term[at])) for term in terms), Fraction(0))
            difference = Fraction(value) - wanted
            if difference:
                fraction, exponent = np.frexp(value)
                unit = Fraction(2) ** (int(exponent) - 53)
                assert int(np.ldexp(fraction, 53)) % 2 == 1
                assert abs(difference) < unit
            else:
                assert Fraction(value) == wanted


def test_codes_of_every_small_operand_pair_are_the_texts():
    codes = all_codes(FLOAT4_E2M1FN).astype(np.uint8)
    a, b = (each.reshape(-1, 1) for each in np.meshgrid(codes, codes))
    rule = accumulators.riscv_ime(G=1, psm=0, rnd="frm", operand=FLOAT4_E2M1FN, accumulator=FP16)
    got = golden.dot(a, b, operand=FLOAT4_E2M1FN, reduction=rule)
    for x, y, code in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert code == fp_gemm_element(x, y, 0, FLOAT4_E2M1FN, FP16, 4, "frm", "nearest_even")[0]
