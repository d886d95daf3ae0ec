"""The combinational converter between every two formats: every code of 16 bits, float32 around what decides."""

import itertools
import re

import numpy as np
import pytest
from amaranth import Module
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, Flag, FloatFormat
from golden.formats import CONVERSIONS, SIXTEEN_BIT_FORMATS, WIDE_FORMATS
from hdl.cores.conversion import Convert
from hdl.cores.result import result_layout
from tools.compiled import Compiled, fields

from ..golden.judges import all_codes, assert_same_bits, boundary_codes, code_dtype, random_codes

ODD = (
    FloatFormat("e2m1", 2, 1),
    FloatFormat("e2m12", 2, 12),
    FloatFormat("e3m3", 3, 3),
    FloatFormat("e4m3_high_bias", 4, 3, bias=60),
    FloatFormat("e7m8", 7, 8),
    FloatFormat("e5m6_bias_of_float32", 5, 6, bias=127),
    # wider than most destinations, and its values end below where theirs do
    FloatFormat("e5m17_high_bias", 5, 17, bias=40),
)
ALL = (*WIDE_FORMATS, *ODD)
# Formats that lie one above the other in a special way: the destination's normal range begins above the source's,
# but its subnormals hold all of it; the same with biases about 0; its normal range begins above the source's infinity.
ABOVE = (
    (FloatFormat("e3m2_bias_18", 3, 2, bias=18), FloatFormat("e5m4_bias_17", 5, 4, bias=17)),
    (FloatFormat("e3m5_bias_1", 3, 5, bias=1), FloatFormat("e5m7_bias_0", 5, 7, bias=0)),
    (FloatFormat("e3m4_bias_18", 3, 4, bias=18), FloatFormat("e2m6_bias_10", 2, 6, bias=10)),
)
# Every named pair; every odd format with float32 and with its neighbours in the list.
PAIRS = [
    *CONVERSIONS,
    *itertools.product(ODD, [FP32]),
    *itertools.product([FP32], ODD),
    *itertools.pairwise((*ODD, ODD[0])),
    *itertools.pairwise((*ODD, ODD[0])[::-1]),
    *ABOVE,
]


class ConvertToAll(wiring.Component):
    """One source into all its destinations at once: one compilation."""

    def __init__(self, source):
        self.source = source
        self.destinations = [destination for other, destination in PAIRS if other == source]
        super().__init__(
            {"code": In(source.width)} | {str(fmt): Out(result_layout(fmt.width)) for fmt in self.destinations}
        )

    def elaborate(self, platform):
        m = Module()
        for destination in self.destinations:
            m.submodules[str(destination)] = convert = Convert(self.source, destination)
            m.d.comb += [convert.code.eq(self.code), getattr(self, str(destination)).eq(convert.o)]
        return m


def stimulus(source):
    """Every code; of more than 16 bits those at the limits of all formats, and around every destination's midpoints."""
    if source.width <= 16:
        return all_codes(source)
    rng = np.random.default_rng(3)
    parts = [random_codes(source, 50_000, 4), boundary_codes(source, near=ALL)]
    for fmt in ALL:
        if fmt.width < source.width and source.precision > fmt.precision + 1:
            value = golden.convert(random_codes(fmt, 20_000, 5), fmt, source).astype(np.int64)
            half = rng.integers(-1, 2, len(value)) << (source.fraction_bits - fmt.fraction_bits - 1)
            parts.append(value + half + rng.integers(-2, 3, len(value)))
    return (np.concatenate(parts).astype(np.int64) % 2**source.width).astype(code_dtype(source))


@pytest.fixture(scope="module")
def converted():
    """Codes of a source, and the hardware's results in every other format; each source runs once."""
    done = {}

    def convert(source):
        if source not in done:
            codes = stimulus(source)
            done[source] = codes, Compiled(ConvertToAll(source))(code=codes)
        return done[source]

    return convert


@pytest.mark.parametrize(("source", "destination"), PAIRS, ids=str)
def test_convert_between_two_formats_is_goldens_bit_for_bit(converted, source, destination):
    codes, results = converted(source)
    got = fields(result_layout(destination.width), results[str(destination)])
    wanted, flags = golden.convert(codes, source, destination, return_flags=True)
    assert_same_bits(got["bits"], wanted, codes)
    assert_same_bits(got["flags"], flags, codes)


def test_convert_of_values_all_below_the_destinations_reach_is_a_zero():
    # All of e4m3_high_bias is below float16's smallest subnormal; 0x01 once became 0x0001, for want of an exponent bit.
    source = FloatFormat("e4m3_high_bias", 4, 3, bias=60)
    code = np.array([0x01, 0x81, 0x08, 0x77, 0xF7])
    got = fields(result_layout(16), Compiled(Convert(source, FP16))(code=code)["o"])
    assert got["bits"].tolist() == [0, 0x8000, 0, 0, 0x8000]
    assert (got["flags"] == Flag.UNDERFLOW | Flag.INEXACT).all()


def test_stimulus_of_float32_rounds_both_ways_ties_and_raises_every_flag():
    codes = stimulus(FP32)
    for destination in SIXTEEN_BIT_FORMATS:
        lost = FP32.fraction_bits - destination.fraction_bits
        _, flags = golden.convert(codes, FP32, destination, return_flags=True)
        assert {0, 1, 3, 5, 16} <= set(flags.tolist())
        below_half = codes % 2**lost
        assert all((below_half == 2 ** (lost - 1) + offset).sum() > 1000 for offset in (-1, 0, 1))


@pytest.mark.parametrize(("source", "destination"), [(FP32, CBFLOAT16), (FP16, CB16), (CB16, CBFLOAT16)], ids=str)
def test_convert_without_flags_gives_the_same_codes_and_no_flags(converted, source, destination):
    codes, results = converted(source)
    got = fields(
        result_layout(destination.width), Compiled(Convert(source, destination, with_flags=False))(code=codes)["o"]
    )
    assert_same_bits(got["bits"], fields(result_layout(destination.width), results[str(destination)])["bits"], codes)
    assert not got["flags"].any()


def arithmetic_cells(component):
    """The cells of a netlist that add, shift or compare by size."""
    cells = re.findall(r"^\s*cell (\$\w+)", rtlil.convert(component), re.MULTILINE)
    return [
        cell for cell in cells if cell in {"$add", "$sub", "$neg", "$shl", "$shr", "$sshl", "$sshr", "$shift", "$gt"}
    ]


def test_converter_that_only_appends_fraction_bits_has_no_arithmetic():
    assert arithmetic_cells(Convert(BF16, FP32)) == []
    # The same search finds arithmetic in a converter that re-biases by no round number, and in one that rounds.
    assert "$add" in arithmetic_cells(Convert(CB16, FP32))
    assert "$add" in arithmetic_cells(Convert(FP32, BF16))
