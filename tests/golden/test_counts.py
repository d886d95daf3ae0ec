"""Counts of the array functions equal the reference's, which judges step by step on exact integers."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Reduction, Rounding, accumulators, kernels, reference
from golden.arrays import by_numpy, counting
from golden.counts import NO_EXPONENT, Counts, Events
from golden.formats import FORMATS, SIXTEEN_BIT_FORMATS

from .answers import once
from .judges import boundary_codes, code_dtype, random_codes

#: The rules of the reductions that are judged: levels, and what no level has.
PLANS = {
    "0": {"level": 0},
    "1": {"level": 1, "chunk": 4},
    "2": {"level": 2, "chunk": 4},
    "one chunk": {"level": 2, "chunk": None},
    "mixed": {"reduction": Reduction(CBFLOAT16, 3, BF16)},
    "float32 in chunks": {"reduction": Reduction(FP32, 3, FP32)},
}
NAMES = ("steps", "inexact", "underflow", "overflow", "invalid", "swamped")


def mixed_codes(fmt, shape, seed):
    """Codes near one, codes at the edges of the format, and any codes at all, in equal shares."""
    random = np.random.default_rng(seed)
    edges = boundary_codes(fmt)
    near = golden.encode(random.normal(size=shape), fmt)
    any_code = random.integers(0, 2**fmt.width, shape)
    choices = [near, near, edges[random.integers(0, len(edges), shape)], any_code]
    return np.choose(random.integers(0, 4, shape), choices).astype(near.dtype)


def plain_codes(fmt, shape, seed):
    """Codes of normal values, of a scale that leaves subnormals and now and then an overflow in narrow formats."""
    random = np.random.default_rng(seed)
    scale = 2.0 ** random.integers(-fmt.bias // 2, fmt.bias // 2)
    return golden.encode(random.normal(size=shape) * scale, fmt)


def referred(a, b, initial, index=0, **options):
    """Counts of one result by the reference, as an array of the shape () has them."""
    if index or options.get("rounding") == "stochastic":
        return golden.explain(a, b, initial=initial, index=index, **options).counts
    *_, counts = reference.dot(a.tolist(), b.tolist(), initial=int(initial), counts=True, **options)
    return counts


def numbers(counts):
    """All numbers of counts along a new last axis."""
    events = [getattr(kind, name) for kind in (counts.products, counts.promotions) for name in NAMES]
    return np.stack([np.asarray(each) for each in (*events, counts.largest_exponent)], axis=-1)


def assert_counted_as_the_reference(a, b, initial=None, **options):
    """Compare counts of a matrix product of codes, and the codes themselves."""
    plain = golden.matmul(a, b, initial=initial, **options)
    codes, counts = golden.matmul(a, b, initial=initial, counts=True, **options)
    assert (codes == plain).all()
    starts = np.broadcast_to(0 if initial is None else initial, plain.shape)
    for index, (i, j) in enumerate(np.ndindex(plain.shape)):
        wanted = once(referred, a[i], b[:, j], starts[i, j], index, **options)
        got = numbers(counts)[i, j]
        assert (got == numbers(wanted)).all(), (a[i].tolist(), b[:, j].tolist(), int(starts[i, j]), got, wanted)


@pytest.mark.parametrize("path", kernels.paths())
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
def test_matmul_of_mixed_codes_counts_what_the_reference_counts(fmt, plan, path):
    outer = PLANS[plan].get("reduction", Reduction.for_level(PLANS[plan].get("level", 1), fmt)).outer
    with kernels.use(path):
        for seed in range(3):
            a, b = mixed_codes(fmt, (5, 9), seed), mixed_codes(fmt, (9, 4), seed + 100)
            initial = None if seed == 0 else mixed_codes(outer, (5, 4), seed + 200)
            assert_counted_as_the_reference(a, b, initial, operand=fmt, **PLANS[plan])
            a, b = plain_codes(fmt, (5, 9), seed), plain_codes(fmt, (9, 4), seed + 100)
            assert_counted_as_the_reference(a, b, operand=fmt, **PLANS[plan])


@pytest.mark.parametrize("mode", list(Rounding), ids=str)
@pytest.mark.parametrize("plan", ["0", "2", "mixed"])
def test_matmul_in_every_mode_counts_what_the_reference_counts(plan, mode):
    for seed in range(2):
        a, b = mixed_codes(CBFLOAT16, (4, 7), seed), mixed_codes(CBFLOAT16, (7, 4), seed + 100)
        options = {"operand": CBFLOAT16, "rounding": mode, **PLANS[plan]}
        if mode is Rounding.STOCHASTIC:
            options |= {"seed": 2**40 + 3, "call": 5, "random_bits": 7}
        assert_counted_as_the_reference(a, b, **options)
        a, b = plain_codes(CBFLOAT16, (4, 7), seed), plain_codes(CBFLOAT16, (7, 4), seed + 100)
        assert_counted_as_the_reference(a, b, **options)


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt.width < 16 or fmt == FP32], ids=str)
def test_matmul_of_other_widths_counts_what_the_reference_counts(fmt):
    plans = [{"level": level, "chunk": 4} for level in (0, 1, 2)]
    if fmt == FP32:
        plans = [{"reduction": Reduction(inner, 4, FP32)} for inner in (FP32, BF16)]
    for seed, plan in enumerate(plans):
        a, b = mixed_codes(fmt, (4, 9), seed), mixed_codes(fmt, (9, 4), seed + 100)
        assert_counted_as_the_reference(a, b, operand=fmt, **plan)


@pytest.mark.long
@pytest.mark.parametrize("mode", [Rounding.NEAREST_EVEN, Rounding.UP, Rounding.TO_ODD], ids=str)
def test_every_step_of_a_tiny_format_is_counted_as_the_reference_counts_it(mode):
    tiny = FloatFormat("tiny", 3, 2)
    codes = np.arange(2**tiny.width, dtype=np.uint16).astype(code_dtype(tiny))
    one = Reduction(tiny, None, tiny)
    for initial in codes[:: 1 if mode is Rounding.NEAREST_EVEN else 5]:
        options = {"operand": tiny, "reduction": one, "rounding": mode}
        a, b = codes[::3, np.newaxis], codes[np.newaxis, 1::5]
        assert_counted_as_the_reference(a, b, np.full((1, 1), initial), **options)


@given(
    data=st.data(),
    level=st.sampled_from([0, 1, 2]),
    fmt=st.sampled_from(SIXTEEN_BIT_FORMATS),
    length=st.integers(0, 6),
    chunk=st.sampled_from([1, 2, 5, None]),
)
@settings(max_examples=60, deadline=None)
def test_dot_of_any_codes_counts_what_the_reference_counts(data, level, fmt, length, chunk):
    codes = st.lists(st.integers(0, 2**fmt.width - 1), min_size=length, max_size=length)
    a, b = (np.array(data.draw(codes), np.uint16) for _ in "ab")
    outer = Reduction.for_level(level, fmt).outer
    initial = data.draw(st.integers(0, 2**outer.width - 1))
    options = {"operand": fmt, "level": level, "chunk": chunk, "initial": initial}
    code, flags, counts = golden.dot(a, b, counts=True, return_flags=True, **options)
    wanted = reference.dot(a.tolist(), b.tolist(), counts=True, **options)
    assert (int(code), int(flags)) == wanted[:2]
    assert (numbers(counts) == numbers(wanted[2])).all()
    events = counts.products + counts.promotions
    raised = sum(flag.value for flag in golden.Flag if getattr(events, flag.name.lower()))
    assert raised == int(flags)


def test_counts_agree_with_the_flags_of_the_same_call():
    a, b = mixed_codes(BF16, (200, 6), 1), mixed_codes(BF16, (200, 6), 2)
    for level in (0, 1, 2):
        _, flags, counts = golden.dot(a, b, operand=BF16, level=level, counts=True, return_flags=True)
        for flag in golden.Flag:
            name = flag.name.lower()
            counted = getattr(counts.products, name) + getattr(counts.promotions, name)
            assert ((counted > 0) == (flags & flag != 0)).all()
        assert set(np.unique(flags)) > {0, 1, 16}


def test_forms_add_up_to_the_counts_of_each_result():
    a, b = mixed_codes(FP16, (2, 5, 9), 1), mixed_codes(FP16, (3, 1, 9, 4), 2)
    options = {"operand": FP16, "level": 2, "chunk": 4}
    codes, each = golden.matmul(a, b, counts=True, **options)
    same, rows = golden.matmul(a, b, counts="rows", **options)
    again, total = golden.matmul(a, b, counts="sum", **options)
    assert (codes == same).all()
    assert (codes == again).all()
    assert (codes == golden.matmul(a, b, **options)).all()
    assert each.products.steps.shape == each.largest_exponent.shape == (3, 2, 5, 4)
    assert rows.products.steps.shape == rows.largest_exponent.shape == (3, 2, 5)
    assert each.products.steps.dtype == rows.promotions.swamped.dtype == rows.largest_exponent.dtype == np.int64
    assert (numbers(each)[..., :-1].sum(axis=-2) == numbers(rows)[..., :-1]).all()
    assert (each.largest_exponent.max(axis=-1) == rows.largest_exponent).all()
    assert each.sum() == rows.sum() == total
    assert type(total.products.inexact) is type(total.largest_exponent) is int
    assert total.products.steps == 3 * 2 * 5 * 4 * 9
    assert total.promotions.steps == 3 * 2 * 5 * 4 * 3


@pytest.mark.parametrize(
    ("given_rows", "rows"),
    [
        (1, [0]), (3, [0, 2, 4]), (7, list(range(7))), (100, list(range(7))), (np.int64(2), [0, 3]),
        (slice(1, None, 3), [1, 4]), (slice(0), []), ([6, 0], [6, 0]), (np.array([5], np.uint8), [5]), ([], []),
    ],
)  # fmt: skip
def test_counted_rows_are_those_asked_for_and_the_codes_stay(given_rows, rows):
    a, b = mixed_codes(BF16, (2, 7, 9), 1), mixed_codes(BF16, (9, 4), 2)
    initial = mixed_codes(FP32, (7, 4), 3)
    for mode in ("nearest_even", "stochastic"):
        options = {"operand": BF16, "rounding": mode, "initial": initial, "seed": 1}
        codes, each = golden.matmul(a, b, counts=True, **options)
        same, some = golden.matmul(a, b, counts=True, counted_rows=given_rows, **options)
        assert (codes == same).all()
        assert (numbers(some) == numbers(each)[:, rows]).all()
        _, total = golden.matmul(a, b, counts="sum", counted_rows=given_rows, **options)
        assert total == some.sum()
        assert total.products.steps == 2 * len(rows) * 4 * 9


@pytest.mark.parametrize("path", kernels.paths())
@pytest.mark.parametrize("out", [None, "cbfloat16", "float8_e4m3fn"])
def test_matmul_values_counts_the_steps_of_the_rounded_values(out, path):
    random = np.random.default_rng(1)
    a, b, initial = (random.normal(size=shape).astype(np.float32) for shape in ((5, 40), (40, 6), (6,)))
    a[0, 0], b[0, 0], initial[0] = np.inf, 1e30, np.nan
    options = {"operand": FP16, "level": 1, "out": out}
    with kernels.use(path):
        for rows in (None, 2):
            values, counts = golden.matmul_values(a, b, initial=initial, counts=True, counted_rows=rows, **options)
            plain = golden.matmul_values(a, b, initial=initial, **options)
            assert (values.view(np.uint32) == plain.view(np.uint32)).all()
            codes = golden.encode(a, FP16), golden.encode(b, FP16)
            start = golden.encode(initial, FP32)
            _, wanted = golden.matmul(*codes, initial=start, counts=True, counted_rows=rows, **options)
            assert (numbers(counts) == numbers(wanted)).all()


def test_counts_of_nothing_are_zeros():
    nothing = Events(0, 0, 0, 0, 0, 0)
    empty = golden.matmul(np.zeros((2, 0), np.uint16), np.zeros((0, 3), np.uint16), operand=BF16, counts=True)[1]
    assert empty.sum() == Counts(nothing, nothing, NO_EXPONENT)
    assert empty.products.steps.shape == (2, 3)
    no_rows = golden.matmul(np.zeros((0, 2), np.uint16), np.zeros((2, 3), np.uint16), operand=BF16, counts="sum")[1]
    assert no_rows == Counts(nothing, nothing, NO_EXPONENT)
    no_columns = golden.matmul(np.zeros((2, 2), np.uint16), np.zeros((2, 0), np.uint16), operand=BF16, counts="rows")
    assert no_columns[1].largest_exponent.tolist() == [NO_EXPONENT] * 2


@pytest.mark.parametrize("call", [golden.matmul, golden.matmul_values], ids=lambda call: call.__name__)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"counts": 1}, TypeError, "counts: got 1, must be False, True, 'rows' or 'sum'"),
        ({"counts": None}, TypeError, "counts: got None"),
        ({"counts": "row"}, ValueError, "counts: got 'row', must be False, True, 'rows' or 'sum'"),
        ({"counted_rows": 1}, ValueError, "counted_rows: got 1, must be None unless counts asks"),
        ({"counts": True, "counted_rows": 0}, ValueError, "counted_rows: got 0, must be at least 1"),
        ({"counts": True, "counted_rows": -1}, ValueError, "counted_rows: got -1"),
        ({"counts": True, "counted_rows": True}, TypeError, "counted_rows: got True, must be how many"),
        ({"counts": True, "counted_rows": 0.5}, TypeError, "counted_rows: got 0.5"),
        ({"counts": True, "counted_rows": "all"}, TypeError, "counted_rows: got 'all'"),
        ({"counts": True, "counted_rows": [0, 0]}, ValueError, "counted_rows: got .0, 0., must be .* from 0 to 1"),
        ({"counts": True, "counted_rows": [2]}, ValueError, "counted_rows: got .2."),
        ({"counts": True, "counted_rows": [-1]}, ValueError, "counted_rows: got .-1."),
        ({"counts": True, "counted_rows": [[0]]}, TypeError, "counted_rows: got"),
        ({"counts": True, "counted_rows": [[0], [1, 2]]}, TypeError, "counted_rows: got"),
        ({"counts": True, "counted_rows": slice("a")}, TypeError, "counted_rows: got slice"),
        ({"counts": True, "reduction": accumulators["nvidia_hopper"]}, ValueError, "counts: got True, must be False"),
    ],
)
def test_bad_counts_are_named(call, options, error, message):
    operand = np.ones((2, 2), np.float32 if call is golden.matmul_values else np.uint16)
    with pytest.raises(error, match=message):
        call(operand, operand, operand=BF16, **options)


@pytest.mark.parametrize("counts", ["rows", "each"])
def test_dot_refuses_counts_per_row(counts):
    with pytest.raises(ValueError, match=r"counts: got .*, must be False, True or 'sum'"):
        golden.dot(random_codes(BF16, 3, seed=1), random_codes(BF16, 3, seed=2), operand=BF16, counts=counts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"inexact": Flag.INEXACT', '"inexact": Flag.UNDERFLOW'),
        ('"underflow": Flag.UNDERFLOW', '"underflow": Flag.INEXACT'),
        ('"overflow": Flag.OVERFLOW', '"overflow": Flag(0)'),
        ('"invalid": Flag.INVALID', '"invalid": Flag(0)'),
        ("(product != 0) & ", ""),
        ("np.isfinite(before) & ", ""),
        ("np.isfinite(product) & (product != 0) & np.isfinite(before)", "np.isfinite(product)"),
        ("(after == before)", "(after == product)"),
        ("self._counts[is_promotion]", "self._counts[False]"),
        ("np.where(np.isfinite(after), np.abs(after), 0)", "np.abs(after)"),
        ("np.frexp(self._largest)[1].astype(np.int64) - 1", "np.frexp(self._largest)[1].astype(np.int64)"),
        ('counts["steps"] += 1', 'counts["steps"] += flags != 0'),
    ],
)
def test_event_that_numpy_miscounts_is_seen(monkeypatch, old, new):
    module = inspect.getsource(counting)
    assert module.count(old) == 1
    changed = {"__name__": counting.__name__}
    exec(compile(module.replace(old, new), "counting", "exec"), changed)
    monkeypatch.setattr(by_numpy, "Tally", changed["Tally"])
    outcomes = []
    with kernels.use("numpy"):
        for seed in range(4):
            a, b = mixed_codes(BF16, (5, 9), seed), mixed_codes(BF16, (9, 4), seed + 100)
            initial = mixed_codes(FP32, (5, 4), seed + 200)
            try:
                assert_counted_as_the_reference(a, b, initial, operand=BF16, level=1, chunk=4)
            except AssertionError:
                outcomes.append(seed)
    assert outcomes


@pytest.mark.parametrize("path", kernels.paths())
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_counts_of_dot_products_of_any_shape_together_are_the_sum_of_each(shape, path):
    a, b = (np.random.default_rng(place).integers(0, 1 << 15, (*shape, 20), np.uint16) for place in (1, 2))
    with kernels.use(path):
        for level in (0, 1, 2):
            each = golden.dot(a, b, operand=CBFLOAT16, level=level, counts=True)[1]
            assert golden.dot(a, b, operand=CBFLOAT16, level=level, counts="sum")[1] == each.sum()


@pytest.mark.parametrize("path", kernels.paths())
def test_counts_of_values_that_start_from_nothing_are_those_of_their_codes(path):
    a, b = (np.random.default_rng(place).normal(size=(5, 5)).astype(np.float32) for place in (1, 2))
    codes = golden.encode(a, BF16), golden.encode(b, BF16)
    with kernels.use(path):
        values, found = golden.matmul_values(a, b, operand=BF16, out=BF16, counts=True)
        results, wanted = golden.matmul(*codes, operand=BF16, out=BF16, counts=True)
    assert (golden.encode(values, BF16) == results).all()
    assert found.sum() == wanted.sum()
    assert (found.products.inexact == wanted.products.inexact).all()
