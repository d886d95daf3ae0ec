"""Conversion to and from formats without subnormals (NUMERICS section 13), against the reference."""

import numpy as np
import pytest
from amaranth.hdl import Const
from amaranth.sim import Simulator

import golden
from golden import CB16, CBFLOAT16, DLFLOAT16, FLOAT8_E4M3FN, FP16, FP32, FloatFormat, Rounding
from hdl import FloatConverter, MultiplyAccumulate, MxQuantizer
from hdl.cores.conversion import Convert
from hdl.cores.result import result_layout
from hdl.float_shape import FloatShape
from tools.compiled import Compiled, fields

from ..golden.judges import all_codes, assert_same_bits, boundary_codes
from .test_any_conversion import MODES, compare, wide_codes

AWAY = Rounding.NEAREST_AWAY
ZEROS = FloatFormat("e5m4_zeros", 5, 4, subnormals=False)
#: Its smallest normal number is among the subnormals of `FINE`: these move left, and round below it.
LOW = FloatFormat("e4m2_low", 4, 2, bias=24, specials="merged", subnormals=False, normal_zero_field=True)
FINE = FloatFormat("e3m6_fine", 3, 6, bias=21)
FINITE = FloatFormat("e3m2_finite", 3, 2, specials="finite", subnormals=False)
SMALL = (ZEROS, LOW, FINE, FINITE)


@pytest.mark.parametrize("overflow", ["special", "saturate"])
@pytest.mark.parametrize("source", SMALL, ids=str)
def test_convert_of_every_code_of_small_formats_in_every_mode_is_the_references(source, overflow):
    destinations = [fmt for fmt in (*SMALL, FLOAT8_E4M3FN, DLFLOAT16) if fmt != source]
    compare(source, destinations, all_codes(source), MODES, overflow, randoms=(0, 5))


def flags_and_codes(source, destination, codes, **options):
    results = Compiled(Convert(source, destination, **options))(code=codes)
    return fields(result_layout(destination.width), results["o"])


@pytest.mark.parametrize("destination", [FP32, FP16, CBFLOAT16, CB16], ids=str)
def test_convert_of_every_dlfloat16_code_is_goldens(destination):
    codes = all_codes(DLFLOAT16)
    got = flags_and_codes(DLFLOAT16, destination, codes)
    wanted, flags = golden.convert(codes.astype(np.uint16), DLFLOAT16, destination, return_flags=True)
    assert_same_bits(got["bits"], wanted, codes)
    assert_same_bits(got["flags"], flags, codes)


@pytest.mark.parametrize("flushes", [False, True], ids=["keep", "flush"])
@pytest.mark.parametrize("source", [FP32, FP16, CBFLOAT16], ids=str)
def test_convert_into_dlfloat16_at_boundaries_and_at_random_is_goldens(source, flushes):
    if source == FP32:
        rng = np.random.default_rng(7)
        codes = np.concatenate([boundary_codes(FP32, near=[DLFLOAT16]), rng.integers(0, 1 << 32, 200_000)])
    else:
        codes = all_codes(source)
    codes = codes.astype(np.uint32 if source == FP32 else np.uint16)
    got = flags_and_codes(source, DLFLOAT16, codes, roundings=(AWAY,), flushes=flushes)
    subnormals = "flush" if flushes else "keep"
    options = {"rounding": AWAY, "subnormals": subnormals, "return_flags": True}
    wanted, flags = golden.convert(codes, source, DLFLOAT16, **options)
    assert_same_bits(got["bits"], wanted, codes)
    assert_same_bits(got["flags"], flags, codes)


def test_convert_of_dlfloat16_with_flushed_results_is_goldens():
    codes = all_codes(DLFLOAT16)
    got = flags_and_codes(DLFLOAT16, FP16, codes, flushes=True)
    wanted, flags = golden.convert(codes.astype(np.uint16), DLFLOAT16, FP16, subnormals="flush", return_flags=True)
    assert_same_bits(got["bits"], wanted, codes)
    assert_same_bits(got["flags"], flags, codes)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_converter_into_dlfloat16_of_every_depth_keeps_its_order(stages):
    unit = FloatConverter(source=FP32, destination=DLFLOAT16, stages=stages, roundings=(AWAY,))
    given = wide_codes(FP32, [DLFLOAT16], 60)[:120].astype(np.uint32)
    wanted, flags = golden.convert(given, FP32, DLFLOAT16, rounding=AWAY, return_flags=True)
    found = []

    async def drive(ctx):
        for code in given.tolist():
            ctx.set(unit.i.payload, code)
            ctx.set(unit.i.valid, 1)
            await ctx.tick()
        ctx.set(unit.i.valid, 0)

    async def collect(ctx):
        ctx.set(unit.o.ready, 1)
        async for _, _, valid, bits, raised in ctx.tick().sample(
            unit.o.valid, unit.o.payload.bits, unit.o.payload.flags
        ):
            if valid:
                found.append((bits, raised.as_value() if hasattr(raised, "as_value") else raised))
            if len(found) == len(given):
                break

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.add_testbench(collect)
    simulator.run()
    assert [bits for bits, _ in found] == wanted.tolist()
    assert len(flags) == len(found)


def test_float_shape_of_dlfloat16_is_the_models():
    shape = FloatShape(DLFLOAT16)
    numbers = [0.0, -0.0, 1.0, -6.0, 2.0**-31, 2.0**-31 * (1 + 2.0**-9), 2.0**-32 * 1.9, 8573157376.0, 1e30, -1e30]
    assert [shape.const(each).value for each in numbers] == [int(golden.encode(each, DLFLOAT16)) for each in numbers]
    assert shape.const(float("-inf")).value == 0xFFFF
    for code in range(0, 1 << 16, 37):
        if DLFLOAT16.is_finite(code):
            assert shape.from_bits(code) == float(golden.decode(code, DLFLOAT16))
    assert [FloatShape(ZEROS).from_bits(code) for code in (0x0F, 0x10)] == [0.0, 2.0**-14]
    assert isinstance(shape.const(1.0), Const)


def test_units_that_multiply_refuse_formats_without_subnormals_by_name():
    with pytest.raises(ValueError, match=r"e5m4_zeros.*without subnormals"):
        MultiplyAccumulate(operands=(ZEROS,))
    with pytest.raises(ValueError, match="dlfloat16"):
        MultiplyAccumulate(operands=(DLFLOAT16,))
    with pytest.raises(ValueError, match=r"e3m2_finite.*subnormals"):
        MxQuantizer(element=FINITE)
