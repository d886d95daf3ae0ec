"""golden.check tells a wrong ulp, a sum in another order, and a result of zeros apart."""

import numpy as np
import pytest

import golden
from golden import BF16, Reduction, accumulators, check
from golden.testing import assert_like

LEVEL_1 = Reduction.for_level(1, BF16)
WIDE = [golden.FP32, golden.FP16, BF16, golden.CBFLOAT16, golden.CB16]
DTYPES = {4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}


def model_of(name):
    """Return a preset, or a level of sums, and a format of its factors."""
    if isinstance(name, int):
        return Reduction.for_level(name, BF16), BF16
    model = accumulators[name]
    return model, BF16 if model.operand_bits == 16 else golden.FLOAT8_E4M3FN


def operands(seed=0, shape=(12, 100, 9)):
    random = np.random.default_rng(seed)
    rows, length, columns = shape
    a, b = random.standard_normal((rows, length)), random.standard_normal((length, columns))
    return golden.encode(a, BF16), golden.encode(b, BF16)


@pytest.mark.parametrize("like", [LEVEL_1, accumulators["nvidia_hopper"], "amd_cdna3", str(LEVEL_1)], ids=str)
def test_check_of_the_models_own_results_is_exact(like):
    a, b = operands()
    model = like if not isinstance(like, str) else accumulators.get(like) or Reduction.parse(like)
    result = golden.matmul(a, b, operand=BF16, reduction=model)
    checked = check(result, a, b, like=like, operand=BF16)
    assert (checked.exact, checked.within_bound, checked.first) == (True, True, None)
    assert_like(result, a, b, like=like, operand=BF16)


def test_check_of_lists_of_codes_is_that_of_arrays():
    a, b = operands(shape=(2, 3, 4))
    result = golden.matmul(a, b, operand=BF16, reduction=LEVEL_1)
    checked = check(result.tolist(), a.tolist(), b.tolist(), like=LEVEL_1, operand=BF16)
    assert (checked.exact, checked.count) == (True, result.size)
    with pytest.raises(TypeError, match=r"^b: got an array of float64, must be unsigned codes of bfloat16"):
        check(result, a, b.astype(float), like=LEVEL_1, operand=BF16)


def test_check_like_a_machine_of_one_format_needs_no_operand():
    model = accumulators.riscv_ime(G=2, psm=0, rnd="xct", operand="float16", accumulator="float32")
    a = golden.encode(np.ones((2, 3)), "float16")
    result = golden.matmul(a, a.T, operand="float16", reduction=model)
    for like in (model, Reduction(accumulator=model), str(Reduction(accumulator=model))):
        assert check(result, a, a.T, like=like).exact


def test_check_of_one_wrong_ulp_is_not_exact_and_names_the_element():
    a, b = operands()
    result = golden.matmul(a, b, operand=BF16, reduction=LEVEL_1)
    right = int(result[3, 4])
    result[3, 4] ^= 1
    checked = check(result, a, b, like=LEVEL_1, operand=BF16)
    assert (checked.wrong, checked.outside, checked.first) == (1, 0, ((3, 4), right ^ 1, right))
    with pytest.raises(AssertionError, match=r"^1 of 108 elements differ .*\n +\[3, 4\]: "):
        assert_like(result, a, b, like=LEVEL_1, operand=BF16)
    assert_like(result, a, b, like=LEVEL_1, operand=BF16, bound=True)


@pytest.mark.parametrize(
    "like", [LEVEL_1, accumulators["nvidia_hopper"], accumulators["amd_cdna3"]], ids=lambda each: ""
)
def test_check_of_zeros_is_beyond_the_bound(like):
    a, b = operands(shape=(12, 300, 9))
    a, b = a & 0x7FFF, b & 0x7FFF  # no cancellation, under which a sum of 0 would be near
    result = np.zeros((12, 9), np.uint32)
    checked = check(result, a, b, like=like, operand=BF16)
    assert checked.outside == 108
    with pytest.raises(AssertionError, match="108 of 108 elements differ"):
        assert_like(result, a, b, like=like, operand=BF16, bound=True)


@pytest.mark.parametrize("name", [None, *accumulators])
@pytest.mark.parametrize("seed", range(4))
def test_check_of_a_sum_in_any_other_order_keeps_the_bound(name, seed):
    like = LEVEL_1 if name is None else accumulators[name]
    fmt = BF16 if name is None or like.operand_bits == 16 else golden.FLOAT8_E4M3FN
    random = np.random.default_rng(seed)
    a, b = (golden.encode(random.standard_normal(shape) * 4, fmt) for shape in ((8, 120), (120, 5)))
    order = random.permutation(120)
    result = golden.matmul(a[:, order], b[order], operand=fmt, reduction=like)
    assert check(result, a, b, like=like, operand=fmt).within_bound


@pytest.mark.parametrize("length", [64, 512, 4096, 65536])
@pytest.mark.parametrize("name", [0, 1, 2, *accumulators])
def test_check_of_zeros_for_products_of_ones_is_beyond_the_bound(name, length):
    model, fmt = model_of(name)
    ones = golden.encode(np.ones((2, length)), fmt)
    checked = check(np.zeros((2, 2), DTYPES[model.outer.width]), ones, ones.T, like=model, operand=fmt)
    assert (checked.outside, checked.weak, checked.strong) == (4, 0, 4)


@pytest.mark.parametrize("name", ["nvidia_hopper_into_fp16", "nvidia_hopper_fp8", "deepseek_fp8", "amd_cdna3"])
def test_check_of_doubled_sums_is_beyond_the_bound(name):
    model, fmt = model_of(name)
    ones = golden.encode(np.ones((2, 512)), fmt)
    doubled = golden.encode(np.full((2, 2), 1024.0), model.outer)
    assert check(doubled, ones, ones.T, like=model, operand=fmt).outside == 4


def test_check_of_small_sums_of_both_signs_says_that_the_bound_holds_zero():
    like = accumulators["nvidia_hopper_fp8"]
    random = np.random.default_rng(0)
    fmt = golden.FLOAT8_E4M3FN
    a, b = (golden.encode(random.standard_normal(shape), fmt) for shape in ((8, 4096), (4096, 8)))
    zeros = np.zeros((8, 8), np.uint32)
    checked = check(zeros, a, b, like=like, operand=fmt)
    assert (checked.outside, checked.weak, checked.strong, checked.excludes_zeros) == (0, 64, 0, False)
    assert str(checked).endswith(
        "\nof 64 elements the bound holds 0, too, though their exact sum is not 0; "
        "no sum could fail the bound by being 0, so it cannot judge this product"
    )
    with pytest.raises(AssertionError, match="cannot judge this product"):
        assert_like(zeros, a, b, like=like, operand=fmt, bound=True)
    assert_like(golden.matmul(a, b, operand=fmt, reduction=like), a, b, like=like, operand=fmt, bound=True)


def test_check_of_exact_sums_of_zero_excludes_zeros():
    zeros = np.zeros((2, 8), np.uint16)
    checked = check(np.full((2, 2), 1 << 31, np.uint32), zeros, zeros.T, like=LEVEL_1, operand=BF16)
    assert (checked.wrong, checked.outside, checked.weak, checked.strong) == (4, 0, 0, 0)
    assert checked.excludes_zeros
    assert_like(np.full((2, 2), 1 << 31, np.uint32), zeros, zeros.T, like=LEVEL_1, operand=BF16, bound=True)


@pytest.mark.parametrize(
    ("name", "fmt"),
    [
        ("amd_cdna2", golden.FP16),
        ("amd_cdna2_bf16", BF16),
        ("x86_vdpbf16ps", BF16),
        ("x86_tdpbf16ps", BF16),
        ("arm_bfdot", BF16),
    ],
)
def test_check_of_operands_that_a_machine_flushes_keeps_the_bound(name, fmt):
    random = np.random.default_rng(0)
    order = random.permutation(64)
    small = random.standard_normal((64, 64)) * fmt.smallest_normal
    a, b = golden.encode(small, fmt), golden.encode(random.standard_normal((64, 64)) * 2.0**20 ** (fmt == BF16), fmt)
    result = golden.matmul(a[:, order], b[order], operand=fmt, reduction=accumulators[name])
    checked = check(result, a, b, like=name, operand=fmt)
    assert checked.outside == 0
    assert checked.wrong or name != "amd_cdna2"


def test_check_of_operands_that_a_reduction_flushes_keeps_the_bound():
    like = Reduction(BF16, 4, golden.FP32, operand=BF16, subnormals="flush")
    a = golden.encode([[2.0**-130, 1.0, 2.0**-127, 2.0**-129]], BF16)
    b = golden.encode([[2.0**20], [2.0**-120], [2.0**10], [1.0]], BF16)
    result = golden.matmul(a[:, ::-1], b[::-1], reduction=like)
    assert golden.decode(result, "float32") == 2.0**-120
    result[0, 0] += 1
    assert check(result, a, b, like=like).outside == 0
    # A sum that keeps the subnormals is another.
    assert check(golden.encode([[2.0**-110 + 2.0**-117]], golden.FP32), a, b, like=like).outside == 1


@pytest.mark.parametrize("name", ["nvidia_volta", "amd_cdna3"])
def test_check_of_terms_that_a_zero_beside_a_large_factor_cuts_keeps_the_bound(name):
    # The product of 0 and 2**127 is aligned at 2**1: terms of its block lose what is below 2**-22 or 2**-23.
    a = np.full(16, 2.0**-24)
    b = np.ones(16)
    a[0], b[0] = 0, 2.0**127
    a[4:] = 0
    a, b = golden.encode(a[None], BF16), golden.encode(b[:, None], BF16)
    order = [0, *range(8, 15), 1, 2, 3, *range(4, 8), 15]
    result = golden.matmul(a, b, operand=BF16, reduction=accumulators[name])
    checked = check(result, a[:, order], b[order], like=name, operand=BF16)
    assert (int(result[0, 0]), checked.wrong, checked.outside) == (0, 1, 0)


@pytest.mark.parametrize(
    ("line", "a", "b", "order", "code"),
    [
        # Two large terms first: infinite in one order, 0 in another.
        ("inner=float32 chunk=none outer=float32", [2.0**127, -(2.0**127)] * 2, 1.5, [0, 2, 1, 3], 0x7F800000),
        ("inner=float32 chunk=none outer=float32", [2.0**127, -(2.0**127)] * 2, 1.5, [1, 3, 0, 2], 0xFF800000),
        # Infinities of both signs, one from each chunk.
        ("inner=float32 chunk=2 outer=float32", [2.0**127, -(2.0**127)] * 2, 1.5, [0, 2, 1, 3], 0x7FC00000),
        # A mode that stops at the largest finite value loses the rest.
        (
            "inner=float32 chunk=none outer=float32 rounding=toward_zero",
            [2.0**127, -(2.0**127)] * 2,
            1.5,
            [0, 2, 1, 3],
            0xFF000001,
        ),
        # Partial sums beyond 65504.
        ("inner=float16 chunk=2 outer=float32", [2.0**15, -(2.0**15)] * 2, 1.0, [0, 2, 1, 3], 0x7FC00000),
        ("inner=float16 chunk=none outer=float32", [2.0**15, -(2.0**15)] * 2, 1.0, [0, 2, 1, 3], 0x7F800000),
        ("inner=float16 chunk=4 outer=float16 out=float8_e4m3fn", [2.0**15, -(2.0**15)] * 2, 1.0, [0, 2, 1, 3], 0x7F),
    ],
)
def test_check_of_sums_that_pass_the_range_on_the_way_keeps_the_bound(line, a, b, order, code):
    like = f"operand=bfloat16 {line}"
    a, b = golden.encode([a], BF16), golden.encode([[b]] * 4, BF16)
    result = golden.matmul(a[:, order], b[order], reduction=Reduction.parse(like))
    assert int(result[0, 0]) == code
    checked = check(result, a, b, like=like)
    assert (checked.wrong, checked.outside) == (1, 0)


def test_check_of_an_infinity_where_no_order_overflows_is_beyond_the_bound():
    random = np.random.default_rng(0)
    a, b = (golden.encode(random.uniform(1, 2, shape), "float16") for shape in ((2, 100_000), (100_000, 2)))
    # A chunk of 32 products has at most 128, all together more than float16 holds.
    like = "operand=float16 inner=float16 chunk=32 outer=float32"
    assert check(np.full((2, 2), 0x7F800000, np.uint32), a, b, like=like).outside == 4
    assert check(np.full((2, 2), 0x7FC00000, np.uint32), a, b, like=like).outside == 4


def test_check_of_an_infinite_operand_beside_an_overflow_of_the_other_sign_keeps_the_bound():
    like = "operand=bfloat16 inner=float32 chunk=2 outer=float32"
    a = golden.encode([[-(2.0**127), 1.0, -(2.0**127), np.inf]], BF16)
    b = golden.encode([[1.5]] * 4, BF16)
    order = [0, 2, 1, 3]
    result = golden.matmul(a[:, order], b[order], reduction=Reduction.parse(like))
    assert (int(result[0, 0]), check(result, a, b, like=like).outside) == (0x7FC00000, 0)
    assert check(np.full((1, 1), 0xFF800000, np.uint32), a, b, like=like).outside == 1


def test_check_of_underflow_in_many_chunks_keeps_the_bound():
    like = "operand=float16 inner=float16 chunk=32 outer=float32"
    a = np.full(3200, 2.0**-13)
    b = a.copy()
    a[:32] = 0
    a[0], b[0] = 2.0**-6, 2.0**-7
    a[1:3] = b[1:3] = 2.0**-12
    a, b = golden.encode(a[None], "float16"), golden.encode(b[:, None], "float16")
    order = np.r_[1, 2, 0, 3:3200]
    result = golden.matmul(a[:, order], b[order], reduction=Reduction.parse(like))
    checked = check(result, a, b, like=like)
    assert (checked.wrong, checked.outside) == (1, 0)


def test_check_of_a_long_sum_of_zeros_accepts_a_zero_of_the_other_sign():
    zeros = np.zeros((1, 200_000), np.uint16)
    like = "operand=bfloat16 inner=bfloat16 chunk=none outer=float32"
    checked = check(np.full((1, 1), 1 << 31, np.uint32), zeros, zeros.T, like=like)
    assert (checked.wrong, checked.outside) == (1, 0)


@pytest.mark.parametrize("name", [0, 1, 2, "nvidia_hopper", "amd_cdna2"])
def test_check_of_sums_of_nothing_accepts_zero_alone(name):
    model, fmt = model_of(name)
    a, b = np.zeros((3, 2, 0), np.uint16), np.zeros((0, 4), np.uint16)
    result = golden.matmul(a, b, operand=fmt, reduction=model)
    assert check(result, a, b, like=model, operand=fmt).exact
    assert check(result + result.dtype.type(1), a, b, like=model, operand=fmt).outside == 24


def drawn(random, fmt, kind, shape):
    """Return codes of hard operands, most of them finite."""
    if kind == "codes":
        return random.integers(0, 1 << fmt.width, shape).astype(DTYPES[fmt.width])
    values = random.standard_normal(shape)
    if kind == "of one sign":
        values = np.abs(values)
    elif kind == "of all sizes":
        values *= 2.0 ** random.integers(fmt.emin, fmt.emax, shape)
    elif kind == "subnormal":
        values *= 2.0 ** (fmt.emin - 1)
    elif kind == "subnormal and large":
        values *= np.where(random.random(shape) < 0.5, 2.0 ** (fmt.emin - 2), 2.0 ** (fmt.emax // 2))
    elif kind == "large":
        values = np.clip(values, -1, 1) * 2.0**fmt.emax
    elif kind == "sparse":
        values *= np.where(random.random(shape) < 0.7, 0, 2.0 ** random.integers(-9, 9, shape))
    return golden.encode(values, fmt, overflow="saturate")


KINDS = ("codes", "normal", "of one sign", "of all sizes", "subnormal", "subnormal and large", "large", "sparse")


@pytest.mark.parametrize("name", [0, 1, 2, *accumulators])
def test_check_of_hard_sums_in_any_order_keeps_the_bound_and_shows_one_wrong_ulp(name):
    model, first = model_of(name)
    formats = [first]
    if isinstance(name, int):
        formats += [golden.FP16, golden.CBFLOAT16, golden.CB16, golden.FLOAT8_E4M3FN]
    elif first.width == 8:
        formats += [golden.FLOAT8_E5M2]
    random = np.random.default_rng(0)
    for fmt in formats:
        like = Reduction.for_level(name, fmt) if isinstance(name, int) else model
        for kind in KINDS:
            length = int(random.integers(1, 200))
            a, b = drawn(random, fmt, kind, (6, length)), drawn(random, fmt, kind, (length, 5))
            by_size = np.argsort(np.abs(golden.decode(a, fmt))[0])
            for order in (random.permutation(length), by_size, by_size[::-1]):
                result = golden.matmul(a[:, order], b[order], operand=fmt, reduction=like)
                checked = check(result, a, b, like=like, operand=fmt)
                assert checked.outside == 0, (str(fmt), kind, length, str(checked))
            result = golden.matmul(a, b, operand=fmt, reduction=like)
            result[3, 2] ^= 1
            if not like.outer.is_nan(result[3, 2]):
                checked = check(result, a, b, like=like, operand=fmt)
                assert (checked.exact, checked.wrong, checked.first[0]) == (False, 1, (3, 2))


@pytest.mark.parametrize("mode", golden.Rounding, ids=str)
@pytest.mark.parametrize("subnormals", ["keep", "flush"])
def test_check_of_hard_sums_in_any_mode_and_order_keeps_the_bound(mode, subnormals):
    random = np.random.default_rng(0)
    outs = [None, golden.FP16, golden.FLOAT8_E4M3FN, golden.FLOAT4_E2M1FN, golden.DLFLOAT16, golden.FLOAT8_E4M3FNUZ]
    for out in outs:
        for kind in KINDS:
            fmt, inner, outer = (WIDE[at] for at in random.integers(0, len(WIDE), 3))
            chunk = [None, 1, 4, 32][random.integers(4)]
            options = {"rounding": mode, "out_rounding": mode, "subnormals": subnormals}
            like = Reduction(inner, chunk, outer, operand=fmt if fmt.width == 16 else BF16, out=out, **options)
            length = int(random.integers(1, 100))
            a, b = drawn(random, like.factors, kind, (4, length)), drawn(random, like.factors, kind, (length, 3))
            start = drawn(random, outer, kind, (4, 3))
            order = random.permutation(length)
            result = golden.matmul(a[:, order], b[order], reduction=like, initial=start)
            checked = check(result, a, b, like=like, initial=start)
            assert checked.outside == 0, (str(like), kind, length, str(checked))


@pytest.mark.parametrize("rnd", ["frm", "rto", "xct"])
@pytest.mark.parametrize("mode", ["nearest_even", "up", "toward_zero"])
def test_check_of_grouped_sums_in_any_order_keeps_the_bound(rnd, mode):
    random = np.random.default_rng(0)
    rule = accumulators.riscv_ime(G=4, psm=0, rnd=rnd, operand=golden.FP16, accumulator=golden.FP16)
    like = Reduction(operand=golden.FP16, accumulator=rule, rounding=mode)
    for kind in KINDS:
        a, b = drawn(random, golden.FP16, kind, (6, 90)), drawn(random, golden.FP16, kind, (90, 5))
        order = random.permutation(90)
        result = golden.matmul(a[:, order], b[order], reduction=like)
        assert check(result, a, b, like=like).outside == 0, kind


def test_check_with_infinities_compares_the_class_of_the_result():
    a, b = operands()
    a[2, 5] = BF16.inf
    result = golden.matmul(a, b, operand=BF16, reduction=LEVEL_1)
    assert check(result, a, b, like=LEVEL_1, operand=BF16).exact
    result[2, 0] = 0x3F800000
    assert check(result, a, b, like=LEVEL_1, operand=BF16).outside == 1


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"like": 3}, TypeError, "like: got 3, must be a Reduction"),
        ({"like": "nvidia_hoper", "operand": BF16}, ValueError, "like: got 'nvidia_hoper', must be .*nvidia_hopper"),
        ({"like": accumulators["nvidia_hopper"]}, ValueError, "operand: got None, must be given"),
        ({"results": np.zeros((2, 2), np.uint32)}, ValueError, r"results: got shape \(2, 2\), must be \(12, 9\)"),
        (
            {"results": np.zeros((12, 9))},
            TypeError,
            "results: got an array of float64, must be unsigned codes of float32",
        ),
    ],
)
def test_check_with_a_wrong_argument_is_refused_by_name(options, error, match):
    a, b = operands()
    given = {"results": np.zeros((12, 9), np.uint32), "like": str(Reduction.for_level(1, BF16)), "operand": BF16}
    if "like" in options and "operand" not in options:
        given.pop("operand")
    given |= options
    with pytest.raises(error, match=match):
        check(given.pop("results"), a, b, **given)
