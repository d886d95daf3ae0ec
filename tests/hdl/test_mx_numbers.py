"""Block quantisers whose scales are numbers, as in NVFP4: their datapath and constants, and blocks through the unit."""

from fractions import Fraction

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden import BF16, CB16, CBFLOAT16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FP16, FP32, FloatFormat, Rounding, mx
from golden.arrays.checks import code_dtype
from hdl import MxQuantizer
from hdl.mx.block import QuantizeBlock
from hdl.mx.number_plan import NumberPlan
from sim.stimulus.mx_numbers import RECIPE, values_of
from tools.compiled import Compiled

from ..golden.judges import assert_same_bits, random_codes
from .simulators import simulate, unit_of

NVFP4 = mx.NVFP4
SOURCES = (FP32, BF16, FP16, CBFLOAT16, CB16)
EXPONENTS = (0, 1, -1, 5, -14, 40, -128, 127)


class Pairs(wiring.Component):
    """A block of two values."""

    def __init__(self, plan):
        self.plan = plan
        super().__init__(
            {"a": In(plan.source.width), "b": In(plan.source.width), "exponent": In(8), "scale": Out(8), "code": Out(4)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.block = block = QuantizeBlock(self.plan, 2)
        m.d.comb += [block.values[0].eq(self.a), block.values[1].eq(self.b), self.scale.eq(block.scale)]
        m.d.comb += [block.tensor_exponent.eq(self.exponent), self.code.eq(block.codes[0])]
        return m


def goldens(pairs, source, exponent):
    """Scale and element of the first of two values in a block, whose others are zeros."""
    values = np.zeros((len(pairs), NVFP4.block), np.float32)
    values[:, :2] = values_of(pairs, source)
    found = mx.quantize(values, NVFP4, scale=RECIPE, tensor_scale=float(2.0**exponent))
    return found.scales[:, 0], found.codes[:, 0]


@pytest.mark.turns
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_mx_datapath_of_number_scales_is_goldens_at_every_tensor_scale(source):
    unit, rng, count = Compiled(Pairs(NumberPlan(source, NVFP4))), np.random.default_rng(5), 1 << 14
    for exponent in EXPONENTS:
        b = random_codes(source, count, exponent & 0xFF).astype(np.int64)
        near = b - (rng.integers(0, 6, count) << source.fraction_bits) + rng.integers(-3, 4, count)
        a = np.where(rng.random(count) < 0.7, near & (1 << source.width) - 1, random_codes(source, count, 9))
        pairs = np.stack([a, b], -1).astype(code_dtype(source))
        got = unit(a=a, b=b, exponent=np.full(count, exponent & 0xFF))
        scales, codes = goldens(pairs, source, exponent)
        assert_same_bits(got["scale"], scales, *pairs.T)
        assert_same_bits(got["code"], codes, *pairs.T)


def test_mx_constants_of_number_scales_are_the_recipes_and_not_those_of_exact_quotients():
    # The least value of an element follows from the exact quotient: it is a tie to even, or the value after it. There
    # are eight exceptions. There, the reciprocal of the scale, rounded in float32, moves a neighbour onto the tie, or
    # the tie beyond itself.
    plan, others = NumberPlan(FP32, NVFP4), {}
    numbers = [Fraction(number) for number in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
    for code in range(1, 8):
        for fraction in range(8):
            tie = (numbers[code - 1] + numbers[code]) / 2 * (1 + Fraction(fraction, 8))
            exact = (int(np.float32(float(tie)).view(np.uint32)) - (127 << 23)) + code % 2
            if plan._of_element[code, fraction] != exact:
                others[code, fraction] = plan._of_element[code, fraction] - exact
    assert others == dict.fromkeys([(2, 7), (3, 7), (4, 6), (4, 7), (5, 7), (6, 6), (6, 7), (7, 7)], -1)


@pytest.mark.parametrize("source", [FP32, FloatFormat("e5m1", 5, 1), BF16], ids=str)
def test_mx_values_with_number_scales_are_kept_with_few_bits(source):
    plan = NumberPlan(source, NVFP4)
    assert plan.wide.fraction_bits == min(source.fraction_bits, 8)
    assert plan.wide.exponent_bits == plan.exact.exponent_bits


def run(unit, beats):
    """Drive beats of values and exponents; return what came."""
    came, waiting = [], list(beats)

    async def bench(ctx):
        ctx.set(unit.o.ready, 1)
        for _ in range(len(beats) + unit.latency + 2 * unit.beats):
            ctx.set(unit.i.valid, bool(waiting))
            if waiting:
                ctx.set(unit.i.payload.values, waiting[0][0])
                ctx.set(unit.i.payload.as_value()[-8:], waiting[0][1] & 0xFF)
            if ctx.get(unit.i.valid) and ctx.get(unit.i.ready):
                waiting.pop(0)
            if ctx.get(unit.o.valid):
                payload = ctx.get(unit.o.payload)
                came.append((list(payload.codes), payload.scale, payload.last))
            await ctx.tick()

    simulate(unit, bench)
    return came


def test_mx_quantizer_of_nvfp4_with_special_values_is_goldens():
    unit = unit_of(MxQuantizer, element=NVFP4, block=16, lanes=16)
    nan, infinity, minus = FP32.inf | 1, FP32.inf, FP32.sign_mask
    one = 0x3F800000
    blocks = [
        ([0] * 15 + [minus], 0),
        ([one] * 14 + [nan, nan | minus], 0),
        ([one, one | minus] * 7 + [infinity, infinity | minus], 0),
        ([1] * 16, 0),
        ([FP32.max_finite] * 16, 0),
        ([FP32.max_finite] * 16, 127),
        ([0x3FB3FFFF] * 15 + [0x41340000], 0),  # an ulp below 0.75 * 1.875, beside 6 * 1.875
    ]
    came = run(unit, blocks)
    assert len(came) == len(blocks)
    for (codes, scale, last), (values, exponent) in zip(came, blocks, strict=True):
        given = values_of(np.array([values], np.uint32), FP32)
        found = mx.quantize(given, NVFP4, scale=RECIPE, tensor_scale=float(2.0**exponent))
        assert (codes, scale, last) == (found.codes[0].tolist(), int(found.scales[0, 0]), 1)
    assert [scale for _, scale, _ in came] == [0, 0x7F, 0x7E, 0, 0x7E, 0x2B, 0x3F]
    assert came[1][0] == [7] * 15 + [15]
    assert came[2][0][:2] == [0, 8]
    assert came[6][0][0] == 2  # 1.0, and not 0.5


def test_mx_quantizer_of_nvfp4_takes_the_tensor_exponent_of_the_last_beat():
    unit = unit_of(MxQuantizer, element=NVFP4, block=16, lanes=4)
    values = np.array([0x40C00000] + [0x3F800000] * 15, np.uint32)
    beats = [(values[4 * at :][:4].tolist(), 7 if at < 3 else exponent) for exponent in (3, -2) for at in range(4)]
    came = run(unit, beats)
    assert [scale for _, scale, _ in came] == [0x20] * 4 + [0x48] * 4  # 2^-3 and 2^2 in E4M3
    assert [codes for codes, _, _ in came[::4]] == [[7, 2, 2, 2]] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "block: got 32, must be 16 for nvfp4"),
        ({"block": 16, "rounding": Rounding.DOWN}, "rounding: got down, must be nearest_even for nvfp4"),
        ({"block": 16, "lanes": 32}, "lanes: got 32, must be at most the 16 values of a block"),
    ],
)
def test_mx_quantizer_of_nvfp4_with_bad_parameters_says_what_is_allowed(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        MxQuantizer(element=NVFP4, **given)


def test_nvfp4_is_the_format_of_its_parts():
    assert (NVFP4.element, NVFP4.scale, NVFP4.block) == (FLOAT4_E2M1FN, FLOAT8_E4M3FN, 16)
