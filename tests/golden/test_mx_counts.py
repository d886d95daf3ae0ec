"""Counts of dot products of blocks equal exact integers', step by step, and `golden.dot`'s where scales are 1."""

import inspect

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FP16, FP32, Flag, Reduction, exact_mx, mx
from golden.exact import Class
from golden.exact_rounding import decode, floor_log2
from golden.exact_steps import fused_step
from golden.mx import products

from .test_counts import NAMES, numbers

PLANS = (
    Reduction(FP32, None, FP32),
    Reduction(CBFLOAT16, 32, FP32),
    Reduction(CBFLOAT16, 8, CBFLOAT16),
    Reduction(FP16, 16, BF16),
)
ONE = 127  # the code of the scale 1


def blocks_of(element, shape, seed, scales):
    """Scales and codes of blocks of 32: values of every size, and now and then any code, NaNs included."""
    rng = np.random.default_rng(seed)
    codes = golden.encode(rng.normal(size=shape) * 2.0 ** rng.integers(-3, 4, shape), element)
    codes = np.where(rng.random(shape) < 0.01, rng.integers(0, 1 << element.width, shape), codes)
    return rng.choice(scales, (*shape[:-1], shape[-1] // 32)).astype(np.uint8), codes.astype(np.uint8)


class Judge:
    """Events of the steps of one result, on exact integers (NUMERICS section 11)."""

    def __init__(self):
        self.events = np.zeros((2, len(NAMES)), np.int64)
        self.largest = golden.counts.NO_EXPONENT

    def step(self, kind, x, y, z, fmt):
        code, flags = fused_step(x, y, decode(z, fmt), fmt)
        before, after = decode(z, fmt), decode(code, fmt)
        found = [Flag.INEXACT in flags, Flag.UNDERFLOW in flags, Flag.OVERFLOW in flags, Flag.INVALID in flags]
        is_addend = all(each.kind is Class.FINITE and not each.is_zero for each in (x, y))
        finite = before.kind is Class.FINITE and after.kind is Class.FINITE
        lost = is_addend and finite and before.as_fraction() == after.as_fraction()
        self.events[kind] += [1, *found, lost]
        if after.kind is Class.FINITE and not after.is_zero:
            self.largest = max(self.largest, floor_log2(abs(after.as_fraction())))
        return code

    def dot(self, a, b, element, plan, initial):
        total = initial
        for (scale, x), (other, y) in zip(a, b, strict=True):
            factor = exact_mx._scaled(exact_mx._ONE, scale, other)
            chunk = plan.chunk or len(x)
            for start in range(0, len(x), chunk):
                partial = 0
                for code, second in zip(x[start : start + chunk], y[start : start + chunk], strict=True):
                    left, right = decode(code, element), decode(second, element)
                    if plan.is_chain:
                        total = self.step(0, exact_mx._scaled(left, scale, other), right, total, plan.outer)
                    else:
                        partial = self.step(0, left, right, partial, plan.inner)
                if not plan.is_chain:
                    total = self.step(1, decode(partial, plan.inner), factor, total, plan.outer)
        return total


def wrong_counts(element, plan, seed):
    """The number of counts of `mx.dot` that differ from the judge's."""
    scales = [ONE, ONE, ONE - 3, ONE + 2, 60, 190, 255] if seed % 2 else [ONE, ONE - 1, ONE + 1]
    a, b = blocks_of(element, (3, 96), seed, scales), blocks_of(element, (3, 96), seed + 100, scales)
    initial = golden.encode(np.array([0.0, -3.5, 2.0**-20]), plan.outer)
    if seed == 1:  # signalling NaNs
        initial[2] = plan.outer.inf + 1
        if element == FLOAT8_E5M2:
            a[1][0, 70] = b[1][1, 3] = 0x7D
    codes, counts = mx.dot(a, b, element=element, reduction=plan, initial=initial, counts=True)
    assert (codes == mx.dot(a, b, element=element, reduction=plan, initial=initial)).all()
    wrong = 0
    for row in range(3):
        judge = Judge()
        pairs = (zip(each[0][row].tolist(), each[1][row].reshape(-1, 32).tolist(), strict=True) for each in (a, b))
        assert judge.dot(*map(list, pairs), element, plan, int(initial[row])) == int(codes[row])
        wrong += int((numbers(counts)[row] != [*judge.events.ravel(), judge.largest]).sum())
    return wrong


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("element", [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN], ids=str)
def test_dot_of_blocks_counts_what_exact_integers_count(element, plan):
    assert [wrong_counts(element, plan, seed) for seed in range(4)] == [0] * 4


@pytest.mark.parametrize("level", [0, 1, 2])
def test_dot_of_blocks_whose_scales_are_1_counts_what_dot_counts(level):
    a, b = (blocks_of(FLOAT8_E5M2, (5, 64), seed, [ONE]) for seed in (1, 2))
    options = {"level": level, "counts": True, "return_flags": True}
    codes, flags, counts = mx.dot(a, b, element=FLOAT8_E5M2, **options)
    wanted = golden.dot(a[1], b[1], operand=FLOAT8_E5M2, chunk=32, **options)
    assert (codes == wanted[0]).all()
    assert (flags == wanted[1]).all()
    assert (numbers(counts) == numbers(wanted[2])).all()
    assert mx.dot(a, b, element=FLOAT8_E5M2, level=level, counts="sum")[1] == counts.sum()


def test_dot_of_no_blocks_counts_nothing():
    empty = np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.uint8)
    codes, counts = mx.dot(empty, empty, element=FLOAT8_E5M2, counts=True)
    assert codes.tolist() == [0, 0]
    assert not numbers(counts)[:, :-1].any()
    assert (counts.largest_exponent == golden.counts.NO_EXPONENT).all()


@pytest.mark.parametrize(("counts", "error"), [("rows", ValueError), (1, TypeError), (None, TypeError)])
def test_bad_counts_of_blocks_are_named(counts, error):
    blocks = blocks_of(FLOAT8_E5M2, (2, 32), 1, [ONE])
    with pytest.raises(error, match=r"^counts: got "):
        mx.dot(blocks, blocks, element=FLOAT8_E5M2, counts=counts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"is_promotion": True', '"is_promotion": False'),
        ("inner, PLAIN, signalling=marks)", "inner, PLAIN)"),
        ("plan.outer, PLAIN, signalling=found)", "plan.outer, PLAIN)"),
        ('counts_in_form(inside.tally.counts(), "rows") + chain.tally.counts()', "chain.tally.counts()"),
        ("a.scales * b.scales\n", "np.ones_like(a.scales)\n"),
    ],
)
def test_miscount_of_blocks_is_seen(monkeypatch, old, new):
    module = inspect.getsource(products)
    assert module.count(old) == 1
    changed = {"__name__": products.__name__}
    exec(compile(module.replace(old, new), "products", "exec"), changed)
    for name in ("_partial_sums", "_reduce"):
        monkeypatch.setattr(products, name, changed[name])
    wrong = 0
    for plan in (PLANS[0], PLANS[2]):
        try:
            wrong += wrong_counts(FLOAT8_E5M2, plan, 1)
        except AssertionError:
            wrong += 1
    assert wrong
