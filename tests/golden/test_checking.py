"""golden.check tells a wrong ulp, a sum in another order, and a result of zeros apart."""

import numpy as np
import pytest

import golden
from golden import BF16, Reduction, accumulators, check
from golden.testing import assert_like

LEVEL_1 = Reduction.for_level(1, BF16)


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
