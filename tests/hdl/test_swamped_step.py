"""Whether one fused step tells that its product was lost: tiny formats exhaustively, the named ones at their edges."""

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FP32, FloatFormat, Rounding
from golden.exact_steps import Kind, Step
from golden.formats import HALF_FORMATS
from hdl.cores.fused_step import FusedStep
from hdl.cores.step_formats import StepFormats
from lab.exhaustive.operands import drawn_operands
from tools.compiled import Compiled

from ..golden.judges import all_codes, assert_same_bits

E3M2, E2M3, E3M1, E2M1 = (FloatFormat(f"e{e}m{m}", e, m) for e, m in ((3, 2), (2, 3), (3, 1), (2, 1)))


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
def three():
    return SwampedStep(StepFormats(HALF_FORMATS, (*HALF_FORMATS, FP32)))


@pytest.mark.parametrize("accumulator", ["operand", "float32"])
@pytest.mark.parametrize("operand", HALF_FORMATS, ids=str)
def test_swamped_step_built_for_three_formats_is_goldens(three, operand, accumulator):
    accumulator = FP32 if accumulator == "float32" else operand
    for seed in range(3):
        wanted = three.assert_goldens(*drawn_operands(operand, accumulator, 100_000, seed), operand, accumulator)
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
