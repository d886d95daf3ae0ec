"""A format is one line: hardware built for one that no other file knows computes what golden computes."""

import numpy as np
import pytest

import golden
from golden import CBFLOAT16, FP32, FloatFormat
from hdl import FloatShape, MultiplyAccumulate
from hdl.cores.conversion import Convert
from hdl.cores.fused_step import FusedStep
from hdl.cores.result import result_layout
from hdl.cores.step_formats import StepFormats
from lab.exhaustive.operands import drawn_operands
from tools.compiled import Compiled, fields

from ..golden.judges import all_codes, assert_same_bits, boundary_codes
from .mac_bench import reduction, run

E7M8 = FloatFormat("e7m8", 7, 8)


@pytest.mark.parametrize("other", [FP32, CBFLOAT16], ids=str)
def test_new_format_converts_from_and_to_a_named_one(other):
    for source, destination in ((E7M8, other), (other, E7M8)):
        codes = all_codes(source) if source.width <= 16 else boundary_codes(source, near=(E7M8,))
        got = fields(result_layout(destination.width), Compiled(Convert(source, destination))(code=codes)["o"])
        wanted, flags = golden.convert(codes, source, destination, return_flags=True)
        assert_same_bits(got["bits"], wanted, codes)
        assert_same_bits(got["flags"], flags, codes)


def test_new_format_steps_in_itself_and_in_float32():
    step = Compiled(FusedStep(StepFormats((E7M8,), (E7M8, FP32))))
    for select, accumulator in enumerate((E7M8, FP32)):
        a, b, acc = drawn_operands(E7M8, accumulator, 100_000, 11)
        got = fields(result_layout(32), step(a=a, b=b, acc=acc, accumulator_format=select)["o"])
        wanted, flags = golden.multiply_accumulate(a, b, acc, operand=E7M8, accumulator=accumulator, return_flags=True)
        assert_same_bits(got["bits"], wanted, a, b, acc)
        assert_same_bits(got["flags"], flags, a, b, acc)


def test_new_format_reduces_at_every_level_beside_a_named_one():
    unit = MultiplyAccumulate(operands=(CBFLOAT16, E7M8))
    rng = np.random.default_rng(12)
    products, wanted = [], []
    for level in (0, 1, 2):
        for number, fmt in enumerate(unit.operands):
            register = 4 * level + 2 * number
            a, b = golden.encode(rng.normal(size=(2, 13)), fmt)
            products += reduction(a, b, register=register, level=level, format=number)
            code, flags = golden.dot(a, b, operand=fmt, level=level, chunk=4, return_flags=True)
            wanted.append((int(code), int(flags), 0, register))
    done = run(unit, products, chunk=4)
    assert sorted(done.results) == sorted(wanted)


def test_new_format_has_constants():
    assert FloatShape(E7M8).const(-1.5).value == 0xBF80
