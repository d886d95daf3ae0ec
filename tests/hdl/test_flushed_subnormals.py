"""Steps, conversions and widened operands whose subnormals are flushed (NUMERICS section 12), against the model."""

import numpy as np
import pytest

import golden
from golden import (
    BF16,
    CBFLOAT16,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FORMATS,
    FP16,
    FP32,
    Flag,
    FloatFormat,
    Rounding,
)
from golden.exact_steps import Kind, Step
from golden.formats import HALF_FORMATS, NARROW_FORMATS
from hdl import FloatConverter, MultiplyAccumulate
from hdl.cores.conversion import Convert
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.fused_step import FusedStep
from hdl.cores.result import result_layout
from hdl.cores.step_formats import StepFormats
from hdl.cores.widen import Widen
from lab.exhaustive.operands import drawn_operands
from tools.compiled import Compiled, fields

from ..golden.judges import all_codes, assert_same_bits, boundary_codes, random_codes
from .test_any_conversion import Together

E3M2, E2M3, E2M10 = FloatFormat("e3m2", 3, 2), FloatFormat("e2m3", 2, 3), FloatFormat("e2m10", 2, 10)
EVERY = tuple(Rounding)
MODES = pytest.mark.parametrize("mode", EVERY, ids=str)
RANDOM_BITS = 3
TINY = Flag.UNDERFLOW | Flag.INEXACT


class FlushingStep:
    """A compiled fused step that flushes, in every mode."""

    def __init__(self, operands, accumulators, roundings=EVERY):
        self.formats = StepFormats(operands, accumulators, roundings, RANDOM_BITS, flushes=True)
        self.compiled = Compiled(FusedStep(self.formats, with_swamped=True))

    def assert_goldens(self, a, b, acc, operand, accumulator, mode, random=0):
        """Compare codes and flags; return the flags that were raised, and the lost addends."""
        formats = self.formats
        given = {
            "format": formats.operands.index(operand),
            "accumulator_format": formats.accumulators.index(accumulator),
            "rounding": mode.value,
            "random": random,
        }
        results = self.compiled(a=a, b=b, acc=acc, **{k: v for k, v in given.items() if k in self.compiled.inputs})
        got = fields(result_layout(formats.accumulator_width), results["o"])
        options = {"rounding": mode, "subnormals": "flush"}
        if mode is Rounding.STOCHASTIC:
            options |= {"random": np.full(a.shape, random, np.uint32), "random_bits": RANDOM_BITS}
        formats = {"operand": operand, "accumulator": accumulator}
        wanted, flags = golden.multiply_accumulate(a, b, acc, **formats, return_flags=True, **options)
        assert_same_bits(got["bits"], wanted, a, b, acc)
        assert_same_bits(got["flags"], flags, a, b, acc)
        return wanted, flags, results["swamped"]


@pytest.fixture(scope="module")
def tiny():
    return {fmt: FlushingStep((fmt,), (fmt,)) for fmt in (E3M2, E2M3)}


@MODES
@pytest.mark.parametrize("fmt", [E3M2, E2M3], ids=str)
def test_step_of_a_tiny_format_that_flushes_on_every_operand_is_goldens(tiny, fmt, mode):
    a, b, acc = (x.ravel() for x in np.meshgrid(*[all_codes(fmt)] * 3))
    raised = set()
    for random in range(1 << RANDOM_BITS) if mode is Rounding.STOCHASTIC else (0,):
        codes, flags, swamped = tiny[fmt].assert_goldens(a, b, acc, fmt, fmt, mode, random)
        raised |= set(flags.tolist())
        for at in np.random.default_rng(random).integers(0, len(a), 1500).tolist() if random < 2 else ():
            operands = int(a[at]), int(b[at]), int(acc[at])
            step = Step(Kind.PRODUCT, 0, *operands, int(codes[at]), Flag(int(flags[at])), fmt, fmt, "flush")
            assert swamped[at] == step.is_swamped, [hex(code) for code in operands]
    assert raised == {0, Flag.INEXACT, TINY, Flag.OVERFLOW | Flag.INEXACT, Flag.INVALID}


PAIRS = [(CBFLOAT16, CBFLOAT16), (CBFLOAT16, FP32), (BF16, FP32), (FP16, FP16), (E2M10, E2M10), (E2M10, FP32)]


@pytest.mark.parametrize(("operand", "accumulator"), PAIRS, ids=[f"{x}-{y}" for x, y in PAIRS])
def test_step_that_flushes_at_the_edges_of_named_formats_is_goldens(operand, accumulator):
    step, rng = FlushingStep((operand,), (accumulator,)), np.random.default_rng(3)
    a, b, acc = drawn_operands(operand, accumulator, 30_000, 4)
    # Sums a little above and below the smallest normal number.
    least, count = accumulator.min_normal, 30_000
    near = least + rng.integers(-4, 2 * least, count) | rng.integers(0, 2, count) << accumulator.width - 1
    middle = (operand.one + operand.min_normal) // 2 + rng.integers(
        -2 * operand.min_normal, 4 * operand.min_normal, (2, count)
    )
    middle = np.clip(middle, 0, operand.inf) | rng.integers(0, 2, (2, count)) << operand.width - 1
    a, b = np.append(a, middle[0].astype(a.dtype)), np.append(b, middle[1].astype(b.dtype))
    acc = np.append(acc, near.astype(acc.dtype))
    tiny = 0
    for mode in EVERY:
        flags = step.assert_goldens(a, b, acc, operand, accumulator, mode, int(mode is Rounding.STOCHASTIC) * 5)[1]
        tiny += int((flags == TINY).sum())
    assert tiny > 100 or (accumulator == FP32 and operand.emin > FP32.emin // 2)


def test_step_of_several_formats_that_flushes_is_goldens_in_each():
    step = FlushingStep(HALF_FORMATS, (*HALF_FORMATS, FP32), (Rounding.NEAREST_EVEN,))
    for fmt in HALF_FORMATS:
        for accumulator in (fmt, FP32):
            step.assert_goldens(*drawn_operands(fmt, accumulator, 20_000, 5), fmt, accumulator, Rounding.NEAREST_EVEN)


def compare(source, codes, modes, overflow="special"):
    plan = {"roundings": modes, "overflow": overflow, "random_bits": RANDOM_BITS, "flushes": True}
    destinations = [fmt for fmt in FORMATS if fmt != source]
    unit = Compiled(Together({str(fmt): Convert(source, fmt, **plan) for fmt in destinations}))
    size = ConversionPlan(source, source, **plan).controls.size
    codes = codes.astype(golden.code_arrays.code_dtype(source))
    for mode in modes:
        for random in range(1 << RANDOM_BITS) if mode is Rounding.STOCHASTIC else (0,):
            controls = {f"controls_{size}": mode.value | random << 3} if size else {}
            results = unit(**{f"code_{source}": codes}, **controls)
            options = {"rounding": mode, "overflow": overflow, "subnormals": "flush", "return_flags": True}
            if mode is Rounding.STOCHASTIC:
                options |= {"random": np.full(codes.shape, random, np.uint32), "random_bits": RANDOM_BITS}
            for destination in destinations:
                got = fields(result_layout(destination.width), results[str(destination)])
                wanted, flags = golden.convert(codes, source, destination, **options)
                assert_same_bits(got["bits"], wanted, codes)
                assert_same_bits(got["flags"], flags, codes)


@pytest.mark.parametrize("overflow", ["special", "saturate"])
@pytest.mark.parametrize("source", NARROW_FORMATS, ids=str)
def test_convert_that_flushes_of_every_narrow_code_in_every_mode_is_goldens(source, overflow):
    compare(source, all_codes(source), EVERY, overflow)


@pytest.mark.parametrize("source", [FP16, BF16, CBFLOAT16], ids=str)
def test_convert_that_flushes_of_every_code_of_16_bits_is_goldens(source):
    compare(source, all_codes(source), (Rounding.NEAREST_EVEN,))


def test_convert_that_flushes_of_float32_at_the_limits_of_every_format_is_goldens():
    codes = np.concatenate([boundary_codes(FP32, near=FORMATS), random_codes(FP32, 5000, 6)])
    compare(FP32, codes, EVERY)


@pytest.mark.parametrize("inner", [FP16, BF16], ids=str)
def test_widened_operand_that_is_subnormal_in_its_own_format_is_the_zero_of_its_sign(inner):
    formats = (FLOAT8_E4M3FN, FLOAT8_E5M2FNUZ, FLOAT8_E5M2)
    unit = Compiled(Widen(formats, inner, flushes=True))
    for index, fmt in enumerate(formats):
        codes = all_codes(fmt).astype(np.uint8)
        got = unit(code=codes, format=index)["o"]
        magnitude = codes & (fmt.sign_mask - 1)
        is_subnormal = (magnitude > 0) & (magnitude < fmt.min_normal)
        wanted = golden.convert(codes, fmt, inner)
        # -0 of a format that has none is the sign of its product, too.
        wanted[is_subnormal] &= inner.sign_mask
        wanted[fmt.is_signalling(codes)] = inner.inf | 1
        assert_same_bits(got, wanted, codes)


def test_inner_format_that_would_make_a_normal_operand_subnormal_is_refused():
    given = {"operands": (FLOAT8_E5M2FNUZ,), "inner": FP16}
    assert MultiplyAccumulate(**given).inner == FP16
    with pytest.raises(
        ValueError, match=r"inner: got float16 for float8_e5m2fnuz with subnormals 'flush', must .* 2\^-15"
    ):
        MultiplyAccumulate(**given, subnormals="flush")


@pytest.mark.parametrize(
    "unit", [MultiplyAccumulate, lambda **given: FloatConverter(source=FP32, destination=BF16, **given)]
)
def test_unit_keeps_subnormals_unless_told_and_names_another_choice(unit):
    assert unit().subnormals == "keep"
    assert unit(subnormals="flush").subnormals == "flush"
    with pytest.raises(ValueError, match="subnormals: got 'drop', must be one of keep, flush"):
        unit(subnormals="drop")
