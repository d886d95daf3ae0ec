"""`FloatShape`: constants from Python floats, floats back from codes, decimal numbers in waveforms."""

import itertools
import math

import numpy as np
import pytest
from amaranth import Const, Module, Signal
from amaranth.back import verilog
from amaranth.sim import Simulator

import golden
from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FP16,
    FP32,
    FloatFormat,
    reference,
)
from golden.formats import NARROW_FORMATS, SIXTEEN_BIT_FORMATS, WIDE_FORMATS
from hdl import FloatShape, FloatView

from ..golden.judges import values_around

TINY = FloatFormat("tiny", 3, 2)
HIGH = FloatFormat("high", 4, 3, bias=-2)  # every value is at least 2^0: no places behind the point


def constant(number, fmt):
    return Const(number, FloatShape(fmt)).value


@pytest.mark.parametrize(
    ("fmt", "code"),
    [(CBFLOAT16, 0x3F00), (CB16, 0x5500), (FP16, 0x3E00), (BF16, 0x3FC0), (FP32, 0x3FC00000), (TINY, 0x0E)],
    ids=str,
)
def test_constant_one_and_a_half_is_its_code_in_every_format(fmt, code):
    assert constant(1.5, fmt) == code
    assert constant(-1.5, fmt) == code | fmt.sign_mask
    assert Signal(FloatShape(fmt), init=1.5).as_value().init == code
    assert Signal(FloatShape(fmt)).as_value().init == 0


def test_constant_six_in_cb16_is_the_sdk_guides():
    assert constant(6.0, CB16) == 0x5900


@pytest.mark.parametrize("fmt", [*WIDE_FORMATS, TINY, HIGH], ids=str)
def test_constant_of_edge_numbers_is_goldens_rounding(fmt):
    largest = 2.0**fmt.emax * (2 - 2.0**-fmt.fraction_bits)
    limit = 2.0**fmt.emax * (2 - 2.0 ** -(fmt.fraction_bits + 1))  # from here on it overflows
    smallest = 2.0 ** (fmt.emin - fmt.fraction_bits)
    edges = [0.0, smallest, smallest / 2, 1.5 * smallest, 0.75 * smallest, 2.0**fmt.emin, largest, limit, 1e308, 5e-324]
    edges += [math.nextafter(x, towards) for x in edges[:-2] for towards in (0.0, math.inf)]
    for number in [*edges, math.inf, math.nan]:
        for signed in (number, -number):
            assert constant(signed, fmt) == int(golden.encode(signed, fmt)), signed.hex()


@pytest.mark.parametrize("fmt", [*WIDE_FORMATS, TINY, HIGH], ids=str)
def test_constant_of_random_numbers_and_midpoints_is_goldens_rounding(fmt):
    rng = np.random.default_rng(1)
    exponents = rng.uniform(fmt.emin - fmt.fraction_bits - 3, fmt.emax + 3, 1500)
    numbers = rng.choice([-1, 1], 1500) * rng.uniform(1, 2, 1500) * 2.0**exponents
    if fmt != FP32:
        numbers = np.append(numbers, rng.choice(values_around(fmt), 1500))
    codes = golden.encode(numbers, fmt).tolist()
    assert [constant(number, fmt) for number in numbers.tolist()] == codes


@pytest.mark.parametrize("fmt", [*SIXTEEN_BIT_FORMATS, TINY, HIGH], ids=str)
def test_from_bits_of_every_code_is_goldens_value(fmt):
    codes = np.arange(1 << fmt.width, dtype=np.uint16)
    got = np.array([FloatShape(fmt).from_bits(code) for code in codes.tolist()])
    wanted = golden.decode(codes, fmt).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(got[number].view(np.uint64), wanted[number].view(np.uint64))  # the sign of 0 too


@pytest.mark.parametrize("fmt", NARROW_FORMATS, ids=str)
def test_constant_of_every_narrow_value_and_midpoint_is_the_references_rounding(fmt):
    values = sorted({FloatShape(fmt).from_bits(code) for code in range(1 << fmt.width) if fmt.is_finite(code)})
    midpoints = [(low + high) / 2 for low, high in itertools.pairwise(values)]
    beyond = [1.03 * values[-1], 1.06 * values[-1], 1.5 * values[-1], 1e30]
    for number in [*values, *midpoints, *beyond, *(math.nextafter(x, 0) for x in midpoints), -0.0, 5e-324]:
        for signed in (number, -number):
            given = reference.Value(reference.Class.FINITE, int(math.copysign(1, signed) < 0), 0, 0)
            if signed:
                numerator, denominator = abs(signed).as_integer_ratio()
                given = reference.Value(given.kind, given.sign, numerator, 1 - denominator.bit_length())
            assert constant(signed, fmt) == reference.round_value(given, fmt)[0], signed.hex()


@pytest.mark.parametrize("fmt", NARROW_FORMATS, ids=str)
def test_from_bits_of_every_narrow_code_is_the_references_value(fmt):
    for code in range(1 << fmt.width):
        got, wanted = FloatShape(fmt).from_bits(code), reference.decode(code, fmt)
        if wanted.kind is reference.Class.FINITE:
            assert (abs(got), math.copysign(1, got)) == (abs(wanted.as_fraction()), (-1) ** wanted.sign)
        else:
            assert math.isnan(got) == wanted.is_nan
            assert math.isinf(got) != wanted.is_nan


def test_constant_that_the_format_has_no_code_for_is_an_error():
    for fmt in (FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ, FLOAT4_E2M1FN):
        with pytest.raises(ValueError, match=f"^init: got -inf, must be finite: {fmt} has no infinity$"):
            constant(-math.inf, fmt)
    with pytest.raises(ValueError, match=r"^init: got nan, must be a number: float4_e2m1fn has no NaN$"):
        constant(math.nan, FLOAT4_E2M1FN)
    assert (constant(math.nan, FLOAT8_E4M3FN), constant(math.nan, FLOAT8_E4M3FNUZ)) == (0x7F, 0x80)


def test_simulator_gives_floats_back_and_takes_floats():
    m = Module()
    source, copy = Signal(FloatShape(BF16), init=-6.25), Signal(FloatShape(BF16))
    m.d.comb += copy.eq(source)
    seen = []

    async def testbench(ctx):
        seen.append(ctx.get(copy))
        ctx.set(source, 0.1)
        seen.append(ctx.get(copy))

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == [-6.25, 0.10009765625]


def test_view_has_the_fields_of_a_code_and_assigns_floats():
    m = Module()
    view = Signal(FloatShape(CBFLOAT16))
    m.d.comb += view.eq(-1.5)
    seen = []

    async def testbench(ctx):
        seen.extend(ctx.get(part) for part in (view.sign, view.exponent_field, view.fraction))

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == [1, 31, 256]
    assert [len(part) for part in (view.sign, view.exponent_field, view.fraction)] == [1, 6, 9]


def shown_in_a_waveform(fmt, numbers, path):
    """The text of each value in the VCD, in which GTKWave shows a string."""
    m = Module()
    signal, other = Signal(FloatShape(fmt)), Signal()
    m.d.comb += other.eq(signal.as_value().any())

    async def testbench(ctx):
        for number in numbers:
            ctx.set(signal, number)
            await ctx.delay(1e-6)

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    with simulator.write_vcd(str(path)):
        simulator.run()
    return [line[1:].split()[0] for line in path.read_text().splitlines() if line.startswith("s")]


@pytest.mark.parametrize("fmt", [*SIXTEEN_BIT_FORMATS, TINY, HIGH], ids=str)
def test_waveform_shows_decimal_numbers(fmt, tmp_path):
    code = np.random.default_rng(2).integers(0, fmt.inf, 12, dtype=np.uint16)
    numbers = golden.decode(code, fmt).astype(float).tolist()
    numbers += [float(golden.decode(c, fmt)) for c in (1, fmt.max_finite, fmt.min_normal - 1)]
    numbers += [-numbers[0], math.inf, -math.inf, math.nan]
    shown = shown_in_a_waveform(fmt, numbers, tmp_path / "waves.vcd")
    assert shown[-4:] == [f"-{shown[-len(numbers)]}", "inf", "-inf", "nan"]
    last_digit = 10.0 ** -len(shown[-5].partition(".")[2])
    for number, text in zip(numbers[:-4], shown[-len(numbers) :], strict=False):
        assert "." in text
        assert abs(float(text) - number) <= last_digit, (number, text)
        if not number % 1:
            assert int(text.partition(".")[0]) == number


@pytest.mark.parametrize("fmt", NARROW_FORMATS, ids=str)
def test_waveform_of_a_narrow_format_shows_its_largest_number_and_its_nan(fmt, tmp_path):
    largest = FloatShape(fmt).from_bits(fmt.max_finite)
    numbers = [0.5, largest, -largest] + [math.nan] * fmt.has_nan + [-math.inf] * fmt.has_inf
    shown = shown_in_a_waveform(fmt, numbers, tmp_path / "waves.vcd")[-len(numbers) :]
    assert [float(text) for text in shown[:3]] == numbers[:3]
    assert shown[3:] == ["nan"] * fmt.has_nan + ["-inf"] * fmt.has_inf


def test_netlist_does_not_contain_the_decimal_text():
    def netlist(shape):
        m = Module()
        source, copy = Signal(shape, name="source"), Signal(shape, name="copy")
        m.d.sync += copy.eq(source)
        ports = [getattr(signal, "as_value", lambda signal=signal: signal)() for signal in (source, copy)]
        return verilog.convert(m, ports=ports, emit_src=False)

    assert netlist(FloatShape(CBFLOAT16)) == netlist(CBFLOAT16.width)


def test_shapes_of_equal_formats_are_equal():
    assert FloatShape(CBFLOAT16) == FloatShape(FloatFormat("cbfloat16", 6, 9))
    assert FloatShape(CBFLOAT16) != FloatShape(CB16)
    assert hash(FloatShape(CB16)) == hash(FloatShape(CB16))


def test_wrong_use_is_an_error_that_names_what_is_allowed():
    with pytest.raises(TypeError, match=r"^fmt: got 'float16', must be a golden\.FloatFormat$"):
        FloatShape("float16")
    with pytest.raises(TypeError, match=r"^init: got '1\.5', must be a Python number$"):
        FloatShape(FP16).const("1.5")
    with pytest.raises(ValueError, match=r"^target: got 15 bits, must be 16 for float16$"):
        FloatView(FloatShape(FP16), Signal(15))
    with pytest.raises(ValueError, match=r"^format_spec: got '\.3f', a float takes none$"):
        FloatShape(FP16).format(Signal(FloatShape(FP16)), ".3f")
