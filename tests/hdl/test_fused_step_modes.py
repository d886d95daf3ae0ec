"""One fused step in every mode, and whether it swamps its product: tiny formats in full, named ones at their edges."""

import numpy as np
import pytest

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat, Rounding
from golden.exact_steps import Kind, Step
from golden.formats import HALF_FORMATS
from hdl.cores.fused_step import FusedStep
from hdl.cores.result import result_layout
from hdl.cores.step_formats import StepFormats
from lab.exhaustive.operands import drawn_operands
from tools.compiled import Compiled, fields

from ..golden.judges import all_codes, assert_same_bits

E3M2, E2M3, E3M1 = FloatFormat("e3m2", 3, 2), FloatFormat("e2m3", 2, 3), FloatFormat("e3m1", 3, 1)
EVERY = tuple(Rounding)


class ModeStep:
    """A compiled fused step that is built for some modes."""

    def __init__(self, operands, accumulators, roundings=EVERY, random_bits=16):
        self.formats = StepFormats(operands, accumulators, roundings, random_bits)
        self.compiled = Compiled(FusedStep(self.formats))

    def __call__(self, a, b, acc, operand, accumulator, mode, random):
        formats = self.formats
        given = {
            "format": formats.operands.index(operand),
            "accumulator_format": formats.accumulators.index(accumulator),
            "rounding": mode.value,
            "random": random,
        }
        results = self.compiled(a=a, b=b, acc=acc, **{k: v for k, v in given.items() if k in self.compiled.inputs})
        return fields(result_layout(formats.accumulator_width), results["o"])

    def assert_goldens(self, a, b, acc, operand, accumulator, mode, random=0):
        random = np.broadcast_to(np.asarray(random, np.uint32), a.shape)
        got = self(a, b, acc, operand, accumulator, mode, random)
        options = {"rounding": mode}
        if mode is Rounding.STOCHASTIC:
            options |= {"random": random, "random_bits": self.formats.random_bits}
        wanted, flags = golden.multiply_accumulate(
            a, b, acc, operand=operand, accumulator=accumulator, return_flags=True, **options
        )
        assert_same_bits(got["bits"], wanted, a, b, acc, random)
        assert_same_bits(got["flags"], flags, a, b, acc, random)
        return set(flags.tolist())


MODES = pytest.mark.parametrize("mode", EVERY, ids=str)


@pytest.fixture(scope="module")
def tiny():
    return {fmt: ModeStep((fmt,), (fmt,), random_bits=3) for fmt in (E3M2, E2M3)}


@MODES
@pytest.mark.parametrize("fmt", [E3M2, E2M3], ids=str)
def test_step_of_a_tiny_format_in_every_mode_on_every_operand_and_random_number_is_goldens(tiny, fmt, mode):
    a, b, acc = (x.ravel() for x in np.meshgrid(*[all_codes(fmt)] * 3))
    raised = set()
    for random in range(8) if mode is Rounding.STOCHASTIC else (0,):
        raised |= tiny[fmt].assert_goldens(a, b, acc, fmt, fmt, mode, random)
    assert raised >= {0, 1, 3, 5, 16}


@pytest.mark.parametrize("roundings", [(mode,) for mode in EVERY if mode is not Rounding.NEAREST_EVEN], ids=str)
def test_step_of_a_single_mode_takes_no_choice_of_one(roundings):
    step = ModeStep((E3M1,), (E3M1,), roundings, random_bits=1)
    assert "rounding" not in step.compiled.inputs
    a, b, acc = (x.ravel() for x in np.meshgrid(*[all_codes(E3M1)] * 3))
    for random in (0, 1) if "random" in step.compiled.inputs else (0,):
        step.assert_goldens(a, b, acc, E3M1, E3M1, *roundings, random)


@pytest.fixture(scope="module")
def three():
    return ModeStep(HALF_FORMATS, (*HALF_FORMATS, FP32))


@MODES
@pytest.mark.parametrize("accumulator", ["operand", "float32"])
@pytest.mark.parametrize("operand", HALF_FORMATS, ids=str)
def test_step_built_for_three_formats_in_every_mode_is_goldens(three, operand, accumulator, mode):
    accumulator = FP32 if accumulator == "float32" else operand
    a, b, acc = drawn_operands(operand, accumulator, 60_000, 40)
    random = np.random.default_rng(5).integers(0, 1 << 16, len(a))
    random[::5] = np.random.default_rng(6).choice([0, 1, 0x7FFF, 0x8000, 0xFFFF], len(random[::5]))
    assert {0, 1, 16} <= three.assert_goldens(a, b, acc, operand, accumulator, mode, random)


@pytest.mark.parametrize("random_bits", [1, 11, 32])
@pytest.mark.parametrize(("operand", "accumulator"), [(CB16, CB16), (FP16, FP32), (BF16, BF16)], ids=str)
def test_step_with_random_numbers_of_any_width_is_goldens(operand, accumulator, random_bits):
    step = ModeStep((operand,), (accumulator,), (Rounding.STOCHASTIC,), random_bits)
    a, b, acc = drawn_operands(operand, accumulator, 60_000, 41)
    random = np.random.default_rng(7).integers(0, 1 << random_bits, len(a))
    step.assert_goldens(a, b, acc, operand, accumulator, Rounding.STOCHASTIC, random)


E2M1 = FloatFormat("e2m1", 2, 1)


def judged(a, b, acc, operand, accumulator, **options):
    """The results of steps, and which of them lost their product, both from golden."""
    result = golden.multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator, **options)
    x, y, before, after = (
        golden.decode(code, fmt).astype(np.float64)
        for code, fmt in ((a, operand), (b, operand), (acc, accumulator), (result, accumulator))
    )
    is_finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(before)
    return result, is_finite & (x != 0) & (y != 0) & (before == after)


class SwampedStep:
    def __init__(self, formats):
        self.formats, self.compiled = formats, Compiled(FusedStep(formats, with_swamped=True))

    def assert_goldens(self, a, b, acc, operand, accumulator, mode=Rounding.NEAREST_EVEN, random=0):
        given = {
            "format": self.formats.operands.index(operand),
            "accumulator_format": self.formats.accumulators.index(accumulator),
            "rounding": mode.value,
            "random": random,
        }
        got = self.compiled(a=a, b=b, acc=acc, **{k: v for k, v in given.items() if k in self.compiled.inputs})
        options = {"rounding": mode}
        if mode is Rounding.STOCHASTIC:
            random = np.broadcast_to(np.asarray(random, np.uint32), a.shape)
            options |= {"random": random, "random_bits": self.formats.random_bits}
        _, wanted = judged(a, b, acc, operand, accumulator, **options)
        assert_same_bits(got["swamped"], wanted, a, b, acc)
        return wanted


def every(operand, accumulator):
    return [axis.ravel() for axis in np.meshgrid(*(all_codes(fmt) for fmt in (operand, operand, accumulator)))]


@pytest.mark.parametrize("accumulator", [E3M2, E2M3, E3M1, E2M1], ids=str)
@pytest.mark.parametrize("operand", [E3M2, E3M1], ids=str)
def test_swamped_step_of_tiny_formats_on_every_operand_is_goldens(operand, accumulator):
    step = SwampedStep(StepFormats((operand,), (accumulator,)))
    wanted = step.assert_goldens(*every(operand, accumulator), operand, accumulator)
    assert 0 < wanted.sum() < len(wanted)


@pytest.mark.parametrize("fmt", [E3M2, E2M1], ids=str)
def test_swamped_step_in_every_mode_on_every_operand_is_goldens(fmt):
    step = SwampedStep(StepFormats((fmt,), (fmt,), tuple(Rounding), 2))
    a, b, acc = every(fmt, fmt)
    for mode in Rounding:
        for random in range(4) if mode is Rounding.STOCHASTIC else (0,):
            step.assert_goldens(a, b, acc, fmt, fmt, mode, random)


@pytest.fixture(scope="module")
def swamped_three():
    return SwampedStep(StepFormats(HALF_FORMATS, (*HALF_FORMATS, FP32)))


@pytest.mark.parametrize("accumulator", ["operand", "float32"])
@pytest.mark.parametrize("operand", HALF_FORMATS, ids=str)
def test_swamped_step_built_for_three_formats_is_goldens(swamped_three, operand, accumulator):
    accumulator = FP32 if accumulator == "float32" else operand
    for seed in range(3):
        wanted = swamped_three.assert_goldens(
            *drawn_operands(operand, accumulator, 100_000, seed), operand, accumulator
        )
        assert wanted.any() or operand is BF16


@pytest.mark.parametrize("accumulator", [CBFLOAT16, FP32], ids=str)
def test_swamped_of_the_reference_is_that_of_the_judge(accumulator):
    a, b, acc = (codes[:400] for codes in drawn_operands(CBFLOAT16, accumulator, 4000, 7))
    result, lost = judged(a, b, acc, CBFLOAT16, accumulator)
    steps = [
        Step(Kind.PRODUCT, 0, *map(int, codes), golden.Flag(0), CBFLOAT16, accumulator)
        for codes in zip(a, b, acc, result, strict=True)
    ]
    assert [step.is_swamped for step in steps] == lost.tolist()
    assert lost.any()
