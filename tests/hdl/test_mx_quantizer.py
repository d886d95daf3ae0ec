"""The block quantiser against golden.mx.quantize: its datapath for many values, and blocks through the whole unit."""

from pathlib import Path

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FP16,
    FP32,
    FloatFormat,
    Rounding,
    decode,
    mx,
)
from golden.arrays.checks import code_dtype
from golden.formats import NARROW_FORMATS
from golden.mx.recipes import BlockFormat
from hdl import MxQuantizer
from hdl.catalogue import UNITS
from hdl.mx.block import QuantizeBlock
from hdl.mx.plan import BlockPlan
from hdl.verilog import to_verilog
from sim.bench.shell import shell
from sim.cycles.model import Model
from sim.stimulus.maker import generator_for
from sim.stimulus.mx import block_scenarios
from sim.units import port_of
from tools.compiled import Compiled

from ..golden.judges import all_codes, assert_same_bits, boundary_codes, random_codes
from .simulators import simulate, unit_of

BUILD = Path(__file__).resolve().parents[2] / "build" / "tests"
#: Each source and each kind of element once; the proofs have the other pairs, and the other modes.
PLANS = (
    (FP32, FLOAT8_E4M3FN),
    (FP16, FLOAT8_E5M2),
    (BF16, FLOAT4_E2M1FN),
    (CBFLOAT16, FLOAT6_E2M3FN),
    (CB16, FLOAT8_E4M3FNUZ),
)
OTHER_MODES = (Rounding.DOWN, Rounding.TO_ODD, Rounding.STOCHASTIC)
RANDOM_BITS = 5
#: No float32 between the largest power of two and the least; a scale that is too large; sources without infinities.
ODD = (
    (FloatFormat("e5m6_low_bias", 5, 6, bias=-90), FloatFormat("e2m3_high_bias", 2, 3, bias=20, specials="finite")),
    (FloatFormat("e4m3_high_bias", 4, 3, bias=130), FLOAT4_E2M1FN),
    (FLOAT8_E4M3FN, FLOAT4_E2M1FN),
    (FloatFormat("e2m5_finite", 2, 5, specials="finite"), FloatFormat("e3m1", 3, 1)),
)


class Pairs(wiring.Component):
    """Blocks of two values, once for each plan: one compilation."""

    def __init__(self, plans):
        self.plans = plans
        ports = {f"{name}_{plan.source}": In(plan.source.width) for plan in plans.values() for name in "ab"}
        ports |= {"random": In(RANDOM_BITS)}
        for name, plan in plans.items():
            ports |= {f"{name}_scale": Out(8), f"{name}_code": Out(plan.element.width)}
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        for name, plan in self.plans.items():
            m.submodules[name] = block = QuantizeBlock(plan, 2)
            m.d.comb += [block.values[at].eq(getattr(self, f"{each}_{plan.source}")) for at, each in enumerate("ab")]
            m.d.comb += getattr(self, f"{name}_scale").eq(block.scale)
            m.d.comb += getattr(self, f"{name}_code").eq(block.codes[0])
            if plan.is_stochastic:
                m.d.comb += block.random[0].eq(self.random)
        return m


def partners(source, codes, rng):
    """For each code another one, half of them a few binades above it: where a code of the element is not 0."""
    above = (codes >> source.fraction_bits) + rng.integers(0, 20, len(codes))
    fields = np.minimum(above & source.exponent_field_max, source.max_finite_field)
    near = fields << source.fraction_bits | rng.integers(0, 1 << source.fraction_bits, len(codes))
    return np.where(rng.random(len(codes)) < 0.5, near, rng.integers(0, 1 << source.width, len(codes)))


def compare(plans, codes):
    """Compare each plan's datapath with golden on pairs of codes."""
    rng = np.random.default_rng(7)
    given, inputs = {}, {}
    length = max(map(len, codes.values()))
    for source, some in codes.items():
        a = np.resize(some.astype(np.int64), length)
        given[source] = a, partners(source, a, rng)
        inputs |= {f"{name}_{source}": each for name, each in zip("ab", given[source], strict=True)}
    random = rng.integers(0, 1 << RANDOM_BITS, length, np.uint32)
    got = Compiled(Pairs(plans))(**inputs, random=random)
    for name, plan in plans.items():
        pair = np.stack(given[plan.source], -1).astype(code_dtype(plan.source))
        options = {"random": np.stack([random] * 2, -1), "random_bits": RANDOM_BITS} if plan.is_stochastic else {}
        values = decode(pair, plan.source)
        scales, elements = mx.quantize(values, plan.element, block=2, rounding=plan.rounding, **options)
        assert_same_bits(got[f"{name}_scale"], scales[:, 0], *pair.T)
        assert_same_bits(got[f"{name}_code"], elements[:, 0], *pair.T)


def test_mx_datapath_of_any_value_and_largest_is_goldens():
    near = boundary_codes(FP32, near=NARROW_FORMATS)
    parts = [near, random_codes(FP32, 1 << 16, 4), 1 << np.arange(31), (1 << np.arange(1, 31)) - 1]
    codes = {source: all_codes(source) for source, _ in PLANS if source.width <= 16}
    codes[FP32] = np.concatenate([part.astype(np.int64) for part in parts])
    compare({f"{source}_{element}": BlockPlan(source, element) for source, element in PLANS}, codes)


def test_mx_datapath_in_other_modes_is_goldens():
    plans = {str(mode): BlockPlan(CBFLOAT16, FLOAT8_E4M3FN, mode, RANDOM_BITS) for mode in OTHER_MODES}
    compare(plans, {CBFLOAT16: all_codes(CBFLOAT16)})


def test_mx_datapath_of_formats_that_no_file_knows_is_goldens():
    compare(
        {f"pair_{number}": BlockPlan(source, element) for number, (source, element) in enumerate(ODD)},
        {source: all_codes(source) for source, _ in ODD},
    )


def run_blocks(unit, name, blocks):
    """Run blocks through a unit as machine code; return what came and what golden gives, as scenario and record."""
    port = port_of(UNITS[name], unit)
    scenario = next(each for each in block_scenarios(unit, port, generator_for(1, name), blocks) if each.is_bulk)
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    sources = [folder / "unit.v", folder / "shell.v"]
    sources[0].write_text(to_verilog(unit, name))
    sources[1].write_text(shell(name, port))
    return scenario, Model(sources, port, folder).run(scenario)[0]


@pytest.mark.long
def test_mx_quantizer_of_a_million_values_is_goldens():
    name = "mx_quantize_float8_e4m3fn"
    unit = UNITS[name].build()
    scenario, ran = run_blocks(unit, name, 22)
    assert len(scenario.payloads) * unit.lanes > 1_000_000
    assert ran.answers == scenario.answers.tolist()
    assert ran.cycles == len(scenario.payloads)


def run(unit, beats, offers=lambda cycle: True, takes=lambda cycle: True):
    """Drive beats of values; return what came, and the cycles in which beats entered and left."""
    came, entered, left, waiting = [], [], [], list(beats)

    async def bench(ctx):
        cycle, last, offering = 0, 0, False
        while waiting or cycle - last < 3 * unit.values.depth + unit.latency:
            offering = bool(waiting) and (offering or offers(cycle))
            ctx.set(unit.i.valid, offering)
            if offering:
                ctx.set(unit.i.payload.values, waiting[0])
            ctx.set(unit.o.ready, takes(cycle))
            goes_in, goes_out = (ctx.get(port.valid) and ctx.get(port.ready) for port in (unit.i, unit.o))
            if goes_in:
                waiting.pop(0)
                entered.append(cycle)
                offering = False
            if goes_out:
                payload = ctx.get(unit.o.payload)
                came.append((list(payload.codes), payload.scale, payload.last))
                left.append(cycle)
            last = cycle if goes_in or goes_out else last
            cycle += 1
            await ctx.tick()

    simulate(unit, bench)
    return came, entered, left


def expected(unit, beats):
    """Golden's results for the whole blocks among some beats."""
    count = len(beats) // unit.beats
    codes = np.array(beats[: count * unit.beats]).reshape(count, unit.block).astype(code_dtype(unit.source))
    scales, elements = mx.quantize(decode(codes, unit.source), unit.element, block=unit.block)
    rows = elements.reshape(-1, unit.lanes).tolist()
    return [
        (row, int(scales[at // unit.beats, 0]), int(at % unit.beats == unit.beats - 1)) for at, row in enumerate(rows)
    ]


def drawn(unit, beats, seed=3):
    codes = random_codes(unit.source, beats * unit.lanes, seed)
    finite = np.where(unit.source.is_finite(codes), codes, 0)
    return finite.reshape(beats, unit.lanes).tolist()


EACH = pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])


@pytest.mark.turns
@EACH
def test_mx_quantizer_without_pauses_takes_and_gives_a_beat_in_every_cycle(lanes):
    unit = unit_of(MxQuantizer, source=FP16, element=FLOAT4_E2M1FN, lanes=lanes)
    beats = drawn(unit, 3 * unit.beats)
    came, entered, left = run(unit, beats)
    assert came == expected(unit, beats)
    assert np.diff(entered).tolist() == [1] * (len(beats) - 1)
    assert left == list(range(entered[unit.beats - 1] + unit.latency, left[-1] + 1))
    assert len(left) == len(beats)


@pytest.mark.turns
@EACH
def test_mx_quantizer_with_pauses_on_both_sides_loses_nothing(lanes):
    unit = unit_of(MxQuantizer, source=FP16, element=FLOAT4_E2M1FN, lanes=lanes)
    beats = drawn(unit, 8 * unit.beats + unit.beats // 2, seed=lanes)
    rng = np.random.default_rng(lanes)
    chance = rng.random((2, 4000)).tolist()
    came, _, left = run(unit, beats, lambda at: chance[0][at] < 0.7, lambda at: chance[1][at] < 0.5)
    # A part of a block does not leave.
    assert came == expected(unit, beats)
    assert left != list(range(left[0], left[0] + len(left)))


def test_mx_quantizer_that_cannot_give_takes_until_its_queue_is_full():
    unit = unit_of(MxQuantizer, source=FP16, element=FLOAT4_E2M1FN, lanes=8)
    beats = drawn(unit, 30)
    came, entered, left = run(unit, beats, takes=lambda cycle: cycle > 100)
    # The queue, the ranks in front of it, and the ranks behind it.
    assert len([cycle for cycle in entered if cycle <= 100]) == unit.values.depth + 4 + 5
    assert (left[0], came) == (101, expected(unit, beats[:28]))


@pytest.mark.turns
def test_mx_quantizer_with_a_block_of_special_values_is_goldens():
    unit = unit_of(MxQuantizer, element=FLOAT8_E4M3FN, lanes=32)
    zero, least, largest, nan, infinity = 0, 1, FP32.max_finite, FP32.inf | 1, FP32.inf | FP32.sign_mask
    blocks = [
        [zero] * 31 + [FP32.sign_mask],
        [least, least | FP32.sign_mask] * 16,
        [largest] * 16 + [least] * 16,
        [largest] * 31 + [nan],
        [infinity] + [largest] * 31,
        [0x3F800000] * 30 + [0x43FFFFFF, 0xC3F00000],  # 1, 512 less an ulp, -480: both saturate
    ]
    came, _, _ = run(unit, blocks)
    assert came == expected(unit, blocks)
    assert [scale for _, scale, _ in came] == [0, 0, 246, 255, 255, 127]
    assert came[0][0][-1] == 0x80
    assert came[3][0] == came[4][0] == [0] * 32
    assert came[5][0] == [0x38] * 30 + [0x7E, 0xFE]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"element": FP16}, "element: got float16 of 16 bits, must be a format of at most 8 bits"),
        ({"element": "float8_e4m3fn"}, "element: got 'float8_e4m3fn', must be a golden.FloatFormat or golden.mx.NVFP4"),
        (
            {"element": BlockFormat("odd4", FP16, 16, FP16, "triton_nvfp4"), "block": 16},
            "element: got odd4, must be a format of at most 8 bits with subnormals, such as float8_e4m3fn, or nvfp4",
        ),
        (
            {"element": FloatFormat("a\nb", 4, 3)},
            r"element: got a format named 'a\\nb', must be a name of printable characters",
        ),
        ({"element": FLOAT8_E4M3FN, "lanes": 64}, "lanes: got 64, must be at most the 32 values of a block"),
        ({"element": FLOAT8_E4M3FN, "lanes": 0}, "lanes: got 0, must be a power of two from 1 to 64"),
        ({"element": FLOAT8_E4M3FN, "block": 20}, "block: got 20, must be a power of two from 1 to 4096"),
        ({"element": FLOAT8_E4M3FN, "rounding": "nearest"}, "rounding: got 'nearest', must be a Rounding"),
        ({"element": FLOAT8_E4M3FN, "random_bits": 40}, "random_bits: got 40, must be from 1 to 32"),
    ],
)
def test_mx_quantizer_with_bad_parameters_says_what_is_allowed(given, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        MxQuantizer(**given)
