"""Operands of 8 bits and fewer: units widen them exactly, and reduce in a 16-bit format or in float32."""

import numpy as np
import pytest

import golden
from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    FloatFormat,
    Reduction,
)
from golden.formats import NARROW_FORMATS
from hdl import MultiplyAccumulate, VectorMac
from hdl.cores.widen import Widen
from hdl.verilog import to_verilog
from tools.compiled import Compiled

from . import vector_bench
from .mac_bench import Product, reduction, run
from .simulators import simulate, sometimes, unit_of


def stored(codes, fmt):
    return np.asarray(codes).astype(np.uint8 if fmt.width <= 8 else np.uint16)


@pytest.mark.turns
@pytest.mark.parametrize("inner", [CBFLOAT16, FP16, BF16, CB16], ids=str)
def test_widen_of_every_narrow_code_is_the_same_number_or_no_number(inner):
    widen = Compiled(Widen(NARROW_FORMATS, inner))
    for index, fmt in enumerate(NARROW_FORMATS):
        codes = stored(np.arange(1 << fmt.width), fmt)
        got = widen(code=codes, format=index)["o"]
        wanted, flags = golden.convert(codes, fmt, inner, return_flags=True)
        signals = fmt.is_signalling(codes.astype(int))
        assert ((flags != 0) == signals).all()
        assert inner.is_signalling(got[signals].astype(int)).all()
        assert (got[~signals] == wanted[~signals]).all()


def drawn(fmt, count, rng, *, numbers):
    """Codes of every kind; infinities and NaNs, which end a reduction's interest, become 1.0 in a share of cases."""
    codes = rng.integers(0, 1 << fmt.width, count)
    special = np.array([not fmt.is_finite(int(code)) for code in codes])
    return stored(np.where(special & (rng.random(count) < numbers), fmt.one, codes), fmt)


@pytest.mark.turns
@pytest.mark.parametrize("inner", [None, FP16, BF16], ids=str)
def test_reduction_of_narrow_operands_at_every_level_is_goldens(inner):
    unit = MultiplyAccumulate(operands=NARROW_FORMATS, inner=inner, stages=5)
    rng = np.random.default_rng(3)
    products, wanted = [], []
    for index, fmt in enumerate(NARROW_FORMATS):
        for level in (0, 1, 2):
            for numbers in (0.95, 0.2):
                register = int(rng.integers(8)) * 2
                a, b = (drawn(fmt, 13, rng, numbers=numbers) for _ in "ab")
                products += reduction(a, b, register=register, level=level, format=index)
                plan = golden.Reduction.for_level(level, fmt, chunk=4, inner=inner)
                code, flags = golden.dot(a, b, operand=fmt, reduction=plan, return_flags=True)
                wanted.append((int(code), int(flags), 0, register))
    infinity, zero = stored([FLOAT8_E5M2.inf], FLOAT8_E5M2), stored([0], FLOAT8_E5M2)
    products += reduction(infinity, zero, register=0, level=1, format=NARROW_FORMATS.index(FLOAT8_E5M2))
    wanted.append((FP32.nan, 16, 0, 0))
    done = run(unit, products, chunk=4, offer=sometimes(0.8, 1), take=sometimes(0.5, 2))
    assert sorted(done.results) == sorted(wanted)
    assert {0, 1} <= {flags & 1 for _, flags, *_ in wanted}


def test_signalling_nan_of_a_narrow_operand_is_invalid_and_a_quiet_one_is_not():
    unit = MultiplyAccumulate(operands=(FLOAT8_E5M2, FLOAT8_E4M3FN))
    for code, index, flags in ((0x7D, 0, 16), (0x7E, 0, 0), (0x7F, 1, 0)):
        done = run(unit, [Product(code, 0x38, level=2, format=index, first=True, last=True)], chunk=4)
        assert done.results == [(CBFLOAT16.nan, flags, 0, 0)]


def test_beat_of_a_narrow_format_that_was_not_built_is_refused():
    unit = MultiplyAccumulate(operands=(FLOAT8_E5M2, FLOAT8_E4M3FN, FLOAT4_E2M1FN), stages=3)
    beats = [Product(0x22, 0x22, register=2, level=0, format=index, first=True, last=True) for index in (2, 3)]
    assert [result.error for result in run(unit, beats).results] == [0, 2]


def test_narrow_operand_beside_the_inner_format_itself():
    unit = MultiplyAccumulate(operands=(CBFLOAT16, FLOAT8_E4M3FN), stages=3)
    assert unit.parameters.inner == CBFLOAT16
    beats = [Product(0x3F00, 0x3E00, level=2, format=0, first=True), Product(0x38, 0x30, level=2, format=1, last=True)]
    assert [hex(result.result) for result in run(unit, beats, chunk=0).results] == ["0x4000"]  # 1.5 + 0.5


def test_latency_of_widening_is_one_cycle_and_one_product_enters_in_every_cycle():
    narrow, wide = (MultiplyAccumulate(operands=fmt) for fmt in (FLOAT8_E4M3FN, CBFLOAT16))
    assert narrow.latency == wide.latency + 1
    beats = [Product(0x38, 0x38, register=2 * (k % 8), level=0, first=True, last=k >= 16) for k in range(24)]
    done = run(narrow, beats)
    assert done.accepted_at == list(range(24))
    assert done.left_at[0] - done.accepted_at[16] == narrow.latency


def test_vector_unit_with_narrow_operands_is_goldens_in_every_lane():
    fmt, lanes = FLOAT6_E2M3FN, 2
    unit = VectorMac(operands=(FLOAT8_E4M3FN, fmt), lanes=lanes, stages=3)
    rng = np.random.default_rng(4)
    a, b = (stored(rng.integers(0, 1 << fmt.width, (lanes, 9)), fmt) for _ in "ab")
    wanted = golden.dot(a, b, operand=fmt, level=2, chunk=4)
    beats = [
        vector_bench.Beat(
            tuple(a[:, k].tolist()), tuple(b[:, k].tolist()), register=2, level=2, format=1, first=k == 0, last=k == 8
        )
        for k in range(9)
    ]
    (result,) = vector_bench.run(unit, beats, chunk=4).results
    assert [result.result[0] & 0xFFFF, result.result[0] >> 16] == wanted.tolist()


def test_inner_of_a_command_line_is_a_format_or_operand():
    inner = MultiplyAccumulate(operands=(FLOAT8_E5M2,)).parameters.definitions()["inner"]
    assert (inner.parse("inner", "bf16"), inner.parse("inner", " operand")) == (BF16, "operand")
    with pytest.raises(ValueError, match=r"^inner: got 'half', must be one of float32, .*, or operand$"):
        inner.parse("inner", "half")


#: Formats of 8 and of 6 bits that have no name here.
HAND_MADE = (FloatFormat("e4m3", 4, 3), FloatFormat("e3m2", 3, 2))


@pytest.mark.long
@pytest.mark.parametrize("inner", [None, "operand"])
@pytest.mark.parametrize("fmt", HAND_MADE, ids=str)
def test_reduction_of_a_hand_made_narrow_format_is_goldens_by_default_and_in_itself_on_request(fmt, inner):
    unit, vector = (kind(operands=(fmt,), inner=inner, stages=3) for kind in (MultiplyAccumulate, VectorMac))
    assert unit.parameters.inner == vector.parameters.inner == (inner or CBFLOAT16)
    rng = np.random.default_rng(5)
    for level in (1, 2):
        a, b = (drawn(fmt, 4 * 13, rng, numbers=1).reshape(4, 13) for _ in "ab")
        default, own = (golden.Reduction.for_level(level, fmt, chunk=4, inner=each) for each in (None, fmt))
        assert golden.dot(a, b, operand=fmt, level=level, chunk=4).tolist() != (
            golden.dot(a, b, operand=fmt, reduction=own).tolist()
        )
        reduced = golden.dot(a, b, operand=fmt, reduction=own if inner else default, return_flags=True)
        codes, flags = (each.tolist() for each in reduced)
        beats = [beat for n in range(4) for beat in reduction(a[n], b[n], register=2 * n, level=level)]
        done = run(unit, beats, chunk=4)
        wanted = [(code, raised, 0, 2 * n) for n, (code, raised) in enumerate(zip(codes, flags, strict=True))]
        assert sorted(done.results, key=lambda result: result.register) == wanted
        done = vector_bench.run(vector, vector_bench.reduction(a, b, register=2, level=level), chunk=4)
        assert done.results == vector_bench.beats_of(vector, codes, flags, level=level, register=2)


def test_inner_operand_of_wide_formats_is_the_default_and_of_narrow_ones_shows_in_the_header():
    assert MultiplyAccumulate(inner="operand").parameters == MultiplyAccumulate().parameters
    unit = MultiplyAccumulate(operands=(FLOAT8_E5M2, HAND_MADE[0]), inner="operand", stages=3)
    assert (unit.parameters.widened, unit.parameters.core, unit.latency) == (None, unit.parameters, 4)
    assert "//   inner = operand\n" in to_verilog(unit, "unit")
    core = MultiplyAccumulate(operands=(FLOAT4_E2M1FN,), inner=FLOAT8_E5M2).parameters.core
    assert (core.operands, core.widened) == ((FLOAT8_E5M2,), None)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"inner": FP32},
            ValueError,
            "inner: got float32, must be a format of 16 bits at most that holds every operand",
        ),
        ({"inner": FLOAT8_E4M3FN}, ValueError, "inner: got float8_e4m3fn .specials 'fn'., must have specials 'ieee'"),
        ({"inner": "cbfloat16"}, TypeError, "inner: got 'cbfloat16', must be a golden.FloatFormat or 'operand'"),
        (
            {"operands": (FP16, FLOAT8_E5M2)},
            ValueError,
            "inner: got cbfloat16, the default for operands of 8 bits and fewer, must hold every value of the operand "
            "format float16",
        ),
        ({"operands": (FP16,), "inner": CB16}, ValueError, "inner: got cb16, must hold every value of the operand"),
        (
            {"operands": (FloatFormat("e3m4_fn", 3, 4, specials="fn"),), "inner": "operand"},
            ValueError,
            "operands: got e3m4_fn .specials 'fn'., must have specials 'ieee'; operands of other formats are widened",
        ),
    ],
    ids=lambda given: str(given)[:40],
)
def test_inner_format_that_cannot_be_says_why(given, error, message):
    with pytest.raises(error, match=f"^{message}"):
        MultiplyAccumulate(**{"operands": (FLOAT8_E5M2,), **given})


ONE, LARGE = 0x38, 0x60  # 1.0 and 32.0 in float8_e4m3fn
#: 32.0 * 32.0 and 1.0 * 1.0: a partial sum in cbfloat16 that has reached 1024 loses a 1.
FACTORS = (ONE, ONE, ONE, LARGE, ONE)


def total(unit, *, chunk, behind):
    """Sum squares at level 1; the port shows another length as soon as the last one is accepted."""
    lanes = getattr(unit, "lanes", 0)
    seen = []

    async def bench(ctx):
        left = list(enumerate(FACTORS))
        ctx.set(unit.o.ready, 1)
        for _ in range(12 * len(FACTORS) + 60):
            ctx.set(unit.chunk, chunk if left else behind)
            ctx.set(unit.i.valid, bool(left))
            if left:
                k, code = left[0]
                codes = [code] * lanes if lanes else code
                beat = {"a": codes, "b": codes, "level": 1, "first": k == 0, "last": k == len(FACTORS) - 1}
                ctx.set(unit.i.payload, beat)
            if ctx.get(unit.o.valid):
                result = ctx.get(unit.o.payload.result)
                seen.extend(result if lanes else [result])
            if left and ctx.get(unit.i.ready):
                left.pop(0)
            await ctx.tick()

    simulate(unit, bench)
    assert len(seen) == max(lanes, 1)
    (code,) = set(seen)
    return code


@pytest.mark.turns
@pytest.mark.parametrize("kind", [MultiplyAccumulate, pytest.param(VectorMac, marks=pytest.mark.long)])
@pytest.mark.parametrize("stages", [3, 9, 11])
@pytest.mark.parametrize(("chunk", "behind", "code"), [(1, 0, 0x44808000), (2, 0, 0x44806000), (0, 1, 0x44808000)])
def test_widening_chunk_changed_behind_the_last_product_changes_no_reduction(kind, stages, chunk, behind, code):
    unit = unit_of(kind, operands=(FLOAT8_E4M3FN,), stages=stages)
    codes = np.array(FACTORS, np.uint8)
    plan = Reduction.for_level(1, FLOAT8_E4M3FN, chunk=chunk or None)
    assert int(golden.dot(codes, codes, operand=FLOAT8_E4M3FN, reduction=plan)) == code
    assert total(unit, chunk=chunk, behind=behind) == code
