"""Conversion between every two formats, in every mode and both overflow rules, against the reference."""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import golden
from golden import (
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FORMATS,
    FP16,
    FP32,
    FloatFormat,
    Rounding,
    reference,
)
from golden.formats import NARROW_FORMATS, WIDE_FORMATS
from golden.rounding import OVERFLOWS
from hdl.cores.conversion import Convert
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.result import result_layout
from tools.compiled import Compiled, fields

from ..golden.judges import all_codes, assert_same_bits, boundary_codes, random_codes

NEAREST, STOCHASTIC = Rounding.NEAREST_EVEN, Rounding.STOCHASTIC
MODES = tuple(Rounding)
#: Few enough for every random number.
RANDOM_BITS = 3
ODD = (
    FloatFormat("e3m4_fn", 3, 4, specials="fn"),
    FloatFormat("e5m6_fnuz_high_bias", 5, 6, bias=60, specials="fnuz"),
    FloatFormat("e2m12_finite", 2, 12, specials="finite"),
    FloatFormat("e4m3_high_bias", 4, 3, bias=60),
    FloatFormat("e4m3_fn_low_bias", 4, 3, bias=-20, specials="fn"),
)


class Together(wiring.Component):
    """Several converters in one component: one compilation. Each has inputs of the name of its source and controls."""

    def __init__(self, units):
        self.units = units
        ports = {}
        for name, unit in units.items():
            ports[f"code_{unit.plan.source}"] = In(unit.plan.source.width)
            if unit.plan.controls.size:
                ports[f"controls_{unit.plan.controls.size}"] = In(unit.plan.controls.size)
            ports[name] = Out(result_layout(unit.plan.destination.width))
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        for name, unit in self.units.items():
            m.submodules[name] = unit
            m.d.comb += [unit.code.eq(getattr(self, f"code_{unit.plan.source}")), getattr(self, name).eq(unit.o)]
            if size := unit.plan.controls.size:
                m.d.comb += unit.controls.eq(getattr(self, f"controls_{size}"))
        return m


def wanted(code, source, destination, mode=NEAREST, random=None, overflow="special", random_bits=RANDOM_BITS):
    """Code and flags that the reference gives."""
    options = {"random": random, "random_bits": random_bits} if mode is STOCHASTIC else {}
    bits, flags = reference.convert(code, source, destination, rounding=mode, overflow=overflow, **options)
    return bits, int(flags)


def differences(words, codes, source, destination, **options):
    """The conversions that differ from the reference: operands, expected and actual results."""
    got = fields(result_layout(destination.width), words)
    found = []
    for code, bits, flags in zip(codes.tolist(), got["bits"].tolist(), got["flags"].tolist(), strict=True):
        if (bits, flags) != (want := wanted(code, source, destination, **options)):
            found.append(
                (f"{source} {code:#x} to {destination}", options, [hex(part) for part in want], hex(bits), flags)
            )
    return found


def compare(source, destinations, codes, modes, overflow, randoms=range(1 << RANDOM_BITS)):
    """Compare one source with the reference in all modes; the stochastic one with each of these random numbers."""
    plan = {"roundings": modes, "overflow": overflow, "random_bits": RANDOM_BITS}
    unit = Compiled(Together({str(fmt): Convert(source, fmt, **plan) for fmt in destinations}))
    size = ConversionPlan(source, source, **plan).controls.size
    for mode in modes:
        for random in randoms if mode is STOCHASTIC else [0]:
            controls = {f"controls_{size}": mode.value | random << 3} if size else {}
            results = unit(**{f"code_{source}": codes}, **controls)
            for destination in destinations:
                options = {"mode": mode, "overflow": overflow, "random": random if mode is STOCHASTIC else None}
                assert differences(results[str(destination)], codes, source, destination, **options)[:5] == []


def others(source):
    """Every other format."""
    return [fmt for fmt in FORMATS if fmt != source]


@pytest.mark.parametrize("source", NARROW_FORMATS, ids=str)
def test_convert_of_every_narrow_code_to_nearest_is_the_references(source):
    compare(source, others(source), all_codes(source), (NEAREST,), "special")


#: Saturation shows with sources that have infinities, and with others.
EVERY = [*((fmt, "special") for fmt in NARROW_FORMATS), (FLOAT8_E5M2, "saturate"), (FLOAT8_E4M3FN, "saturate")]
WIDE = [*((fmt, "special") for fmt in WIDE_FORMATS), (CBFLOAT16, "saturate")]


@pytest.mark.turns
@pytest.mark.parametrize(("source", "overflow"), EVERY, ids=str)
def test_convert_of_every_narrow_code_in_every_mode_with_every_random_number_is_the_references(source, overflow):
    compare(source, others(source), all_codes(source), MODES, overflow)


def wide_codes(source, destinations, count):
    """Codes around the limits of the destinations and their midpoints, and random ones near their range."""
    near = boundary_codes(source, near=destinations)
    rng = np.random.default_rng(3)
    exponents = rng.integers(-20, 20, count) + source.bias
    usual = np.clip(exponents, 0, source.exponent_field_max) << source.fraction_bits
    usual |= rng.integers(0, 1 << source.fraction_bits, count) | rng.integers(0, 2, count) << source.width - 1
    parts = [rng.choice(near, min(count, len(near)), replace=False), random_codes(source, count // 4, 4), usual]
    return np.concatenate([part.astype(np.int64) for part in parts])


def compare_arrays(source, destinations, codes, modes, overflow):
    """Compare with the array functions, which take many codes at once, each with its own random number."""
    codes = codes.astype(np.uint32 if source.width > 16 else np.uint16)
    plan = {"roundings": modes, "overflow": overflow, "random_bits": 16}
    unit = Compiled(Together({str(fmt): Convert(source, fmt, **plan) for fmt in destinations}))
    random = np.random.default_rng(5).integers(0, 1 << 16, len(codes), np.uint32)
    for mode in modes:
        options = {"random": random} if mode is STOCHASTIC else {}
        results = unit(**{f"code_{source}": codes}, controls_19=mode.value | random.astype(np.int64) << 3)
        for destination in destinations:
            wanted, flags = golden.convert(
                codes, source, destination, rounding=mode, overflow=overflow, return_flags=True, **options
            )
            got = fields(result_layout(destination.width), results[str(destination)])
            assert_same_bits(got["bits"], wanted, codes, random)
            assert_same_bits(got["flags"], flags, codes, random)


@pytest.mark.parametrize(("source", "overflow"), WIDE, ids=str)
def test_convert_of_wide_codes_in_every_mode_is_goldens(source, overflow):
    # Every code of one format of 16 bits; the proofs leave no code of the others out.
    codes = all_codes(source) if source == FP16 else wide_codes(source, FORMATS, 8_000)
    compare_arrays(source, others(source), codes, MODES, overflow)


def test_convert_of_float32_in_every_mode_is_the_references():
    compare(FP32, others(FP32), wide_codes(FP32, NARROW_FORMATS, 100), MODES, "special", randoms=(0, 3, 7))


@pytest.mark.parametrize("source", [FP32, CBFLOAT16], ids=str)
def test_convert_of_wide_codes_to_nearest_into_narrow_formats_is_the_references(source):
    compare(source, list(NARROW_FORMATS), wide_codes(source, NARROW_FORMATS, 600), (NEAREST,), "special")


@pytest.mark.parametrize("source", ODD, ids=str)
def test_convert_of_formats_that_no_file_knows_is_the_references(source):
    destinations = [fmt for fmt in (*ODD, CBFLOAT16, FLOAT8_E4M3FN, FP32) if fmt != source]
    codes = all_codes(source) if source.width < 10 else wide_codes(source, destinations, 100)
    compare(source, destinations, codes, MODES, "special", randoms=(0, 5))


def test_convert_with_a_single_mode_has_no_choice_and_gives_what_the_reference_gives():
    source, destination = FLOAT8_E5M2, FLOAT6_E2M3FN
    codes, random = all_codes(source), 0x9ABC
    unit = Compiled(Together({str(mode): Convert(source, destination, roundings=(mode,)) for mode in MODES}))
    assert unit.inputs == {"code_float8_e5m2": 8, "controls_16": 16}  # the random number
    results = unit(code_float8_e5m2=codes, controls_16=random)
    for mode in MODES:
        options = {"mode": mode, "random": random, "random_bits": 16}
        assert differences(results[str(mode)], codes, source, destination, **options) == []


def test_convert_in_a_mode_that_was_not_built_gives_nothing():
    modes = (Rounding.NEAREST_EVEN, Rounding.UP)
    unit = Compiled(Together({"some": Convert(FP16, FLOAT8_E4M3FN, roundings=modes)}))
    codes = np.array([0x3C01, 0x7C00, 0x7E00, 0xFBFF])
    for code in range(8):
        got = unit(code_float16=codes, controls_3=code)["some"]
        assert (got != 0).all() if code in {mode.value for mode in modes} else not got.any()


def test_convert_without_flags_gives_the_same_codes():
    codes = all_codes(FLOAT8_E5M2)
    units = {f"flags_{flags}": Convert(FLOAT8_E5M2, FLOAT4_E2M1FN, with_flags=flags) for flags in (True, False)}
    results = Compiled(Together(units))(code_float8_e5m2=codes)
    with_flags, without = (fields(result_layout(4), results[name]) for name in units)
    assert with_flags["flags"].any()
    assert not without["flags"].any()
    assert (with_flags["bits"] == without["bits"]).all()


# code, source, destination, result, its flags; then result and flags with saturation
KNOWN = [
    (0x7C00, FP16, FLOAT8_E4M3FN, (0x7F, 0), (0x7E, 5)),  # +inf: NaN without a flag
    (0xFC00, FP16, FLOAT8_E4M3FNUZ, (0x80, 0), (0xFF, 5)),
    (0x7C00, FP16, FLOAT4_E2M1FN, (0x7, 5), (0x7, 5)),
    (0xFC00, FP16, FP32, (0xFF800000, 0), (0xFF7FFFFF, 5)),
    (0xDF80, FP16, FLOAT8_E4M3FN, (0x7F, 5), (0xFE, 5)),  # -480: the canonical NaN has sign 0
    (0x5F40, FP16, FLOAT8_E4M3FN, (0x7E, 1), (0x7E, 1)),  # 464 is half way to 480, whose code is odd
    (0x8001, FP16, FLOAT8_E5M2FNUZ, (0x00, 3), (0x00, 3)),  # a negative result that rounds to zero has no sign
    (0x8000, FP16, FLOAT8_E4M3FNUZ, (0x00, 0), (0x00, 0)),
    (0x7E00, FP16, FLOAT6_E2M3FN, (0x00, 16), (0x00, 16)),  # a NaN, into a format without NaNs
    (0x7C01, FP16, FLOAT8_E4M3FN, (0x7F, 16), (0x7F, 16)),
    (0x80, FLOAT8_E4M3FNUZ, FP32, (0x7FC00000, 0), (0x7FC00000, 0)),
    (0xFF, FLOAT8_E4M3FN, CBFLOAT16, (0x7F00, 0), (0x7F00, 0)),
    (0x7C, FLOAT8_E5M2, FLOAT8_E5M2FNUZ, (0x80, 0), (0x7F, 5)),
    (0x7F, FLOAT8_E5M2FNUZ, FLOAT8_E5M2, (0x7B, 0), (0x7B, 0)),
]


def test_convert_of_special_codes_is_what_the_contract_says():
    units = {
        f"{number}_{overflow}": Convert(source, destination, overflow=overflow)
        for number, (_, source, destination, *_) in enumerate(KNOWN)
        for overflow in OVERFLOWS
    }
    m, found = Module(), []
    for name, unit in units.items():
        m.submodules[name] = unit

    async def bench(ctx):
        for number, (code, _, destination, *results) in enumerate(KNOWN):
            for overflow, result in zip(OVERFLOWS, results, strict=True):
                unit = units[f"{number}_{overflow}"]
                ctx.set(unit.code, code)
                got = int(ctx.get(unit.o.bits)), int(ctx.get(unit.o.flags.as_value()))
                if got != result:
                    found.append((hex(code), str(destination), overflow, got))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == []
