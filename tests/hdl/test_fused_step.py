"""One fused step, combinational: tiny formats exhaustively, the named ones at their edges, named cases by hand."""

import numpy as np
import pytest
from amaranth import C, Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat
from golden.formats import HALF_FORMATS, SIXTEEN_BIT_FORMATS
from hdl.cores.bundle import Bundle
from hdl.cores.fused_step import FusedStep, add_product, code_of
from hdl.cores.outcome import align_result, finish, pack_result
from hdl.cores.result import result_layout
from hdl.cores.step_formats import StepFormats
from lab.exhaustive.operands import drawn_operands
from tools.compiled import Compiled, fields

from ..golden.judges import all_codes, assert_same_bits, boundary_codes, code_dtype

E3M2, E3M3 = FloatFormat("e3m2", 3, 2), FloatFormat("e3m3", 3, 3)
FAR_BELOW = FloatFormat("e4m3_high_bias", 4, 3, bias=60)
THREE = StepFormats(HALF_FORMATS, (*HALF_FORMATS, FP32))


class Step:
    """A compiled fused step for some formats."""

    def __init__(self, formats, **options):
        self.formats = formats
        self.compiled = Compiled(FusedStep(formats, **options))

    def __call__(self, a, b, acc, operand, accumulator):
        formats = self.formats
        selects = {
            "format": formats.operands.index(operand),
            "accumulator_format": formats.accumulators.index(accumulator),
        }
        used = {port: value for port, value in selects.items() if port in self.compiled.inputs}
        results = self.compiled(a=a, b=b, acc=acc, **used)
        return fields(result_layout(formats.accumulator_width), results["o"])

    def assert_goldens(self, a, b, acc, operand, accumulator):
        got = self(a, b, acc, operand, accumulator)
        wanted, flags = golden.multiply_accumulate(
            a, b, acc, operand=operand, accumulator=accumulator, return_flags=True
        )
        assert_same_bits(got["bits"], wanted, a, b, acc)
        assert_same_bits(got["flags"], flags, a, b, acc)
        return set(flags.tolist())


@pytest.fixture(scope="module")
def three():
    return Step(THREE)


@pytest.mark.parametrize("fmt", [E3M2, E3M3], ids=str)
def test_step_of_a_tiny_format_on_every_operand_is_goldens(fmt):
    a, b, acc = (x.ravel() for x in np.meshgrid(*[all_codes(fmt)] * 3))
    raised = Step(StepFormats((fmt,), (fmt,))).assert_goldens(a, b, acc, fmt, fmt)
    assert raised == {0, 1, 3, 5, 16}


@pytest.mark.parametrize("fmt", [FP16, CBFLOAT16, CB16], ids=str)
def test_step_of_the_smallest_product_minus_a_smaller_accumulator_needs_the_whole_window(fmt):
    # The product has one significant bit, in the lowest place: fp16 0x0001 * 0x0001 + 0xa6000001 borrows from it, keeps
    # 24 bits below it and rounds by the two after them. No other step reaches as far down into the window.
    product_exponent = 2 * (fmt.emin - fmt.fraction_bits)
    places, low, sign = (x.ravel() for x in np.meshgrid(np.arange(1, 27), np.arange(64), [0, FP32.sign_mask]))
    acc = (sign | (product_exponent - places + FP32.bias << FP32.fraction_bits) | low).astype(np.uint32)
    a = np.full(acc.shape, fmt.min_subnormal, np.uint16)
    assert Step(StepFormats((fmt,), (FP32,))).assert_goldens(a, a, acc, fmt, FP32) == {0, 1}


@pytest.mark.parametrize("fmt", [E3M2, E3M3], ids=str)
def test_step_of_a_tiny_format_into_float32_on_every_factor_is_goldens(fmt):
    products = golden.decode(all_codes(fmt), fmt)
    finite = products[np.isfinite(products)]
    # Accumulators at the limits of fp32, and beside values of the size of the products: the ones that cancel.
    beside = golden.encode(finite, FP32)[:, None] + np.array([-1, 0, 1, 1 << 12], np.int64)
    acc = np.concatenate([boundary_codes(FP32)[::9], beside.ravel() % 2**32]).astype(np.uint32)
    a, b, acc = (x.ravel() for x in np.meshgrid(all_codes(fmt), all_codes(fmt), acc[:: 1 if fmt == E3M2 else 4]))
    Step(StepFormats((fmt,), (FP32,))).assert_goldens(a, b, acc, fmt, FP32)


@pytest.mark.parametrize("fmt", [*SIXTEEN_BIT_FORMATS, FAR_BELOW], ids=str)
def test_step_of_a_format_on_biased_operands_is_goldens(fmt):
    step = Step(StepFormats((fmt,), (fmt, FP32)))
    for seed, accumulator in enumerate((fmt, FP32)):
        raised = step.assert_goldens(*drawn_operands(fmt, accumulator, 150_000, 20 + seed), fmt, accumulator)
        assert {0, 1, 16} <= raised


@pytest.mark.parametrize("accumulator", ["operand", "float32"])
@pytest.mark.parametrize("operand", THREE.operands, ids=str)
def test_step_built_for_three_formats_is_goldens_in_each_of_them(three, operand, accumulator):
    accumulator = FP32 if accumulator == "float32" else operand
    three.assert_goldens(*drawn_operands(operand, accumulator, 150_000, 30), operand, accumulator)


def test_step_without_flags_gives_the_same_codes_and_no_flags():
    step = Step(StepFormats((E3M2,), (E3M2,)), with_flags=False)
    a, b, acc = (x.ravel() for x in np.meshgrid(*[all_codes(E3M2)] * 3))
    got = step(a, b, acc, E3M2, E3M2)
    assert_same_bits(got["bits"], golden.multiply_accumulate(a, b, acc, operand=E3M2, accumulator=E3M2), a, b, acc)
    assert not got["flags"].any()


# what, operand format, accumulator format, a, b, acc, result, flags (inexact 1, underflow 2, overflow 4, invalid 16)
CASES = [
    ("infinity times zero", CBFLOAT16, CBFLOAT16, 0x7E00, 0x0000, 0x3E00, 0x7F00, 16),
    ("infinity times zero beside a quiet NaN", CBFLOAT16, CBFLOAT16, 0x8000, 0xFE00, 0x7F00, 0x7F00, 16),
    ("infinity minus infinity", CBFLOAT16, CBFLOAT16, 0x7E00, 0x3E00, 0xFE00, 0x7F00, 16),
    ("infinity plus infinity", CBFLOAT16, CBFLOAT16, 0xFE00, 0x3E00, 0xFE00, 0xFE00, 0),
    ("quiet NaN with a payload", CBFLOAT16, CBFLOAT16, 0xFFAB, 0x3E00, 0x3E00, 0x7F00, 0),
    ("quiet NaN beside opposite infinities", CBFLOAT16, CBFLOAT16, 0x7E00, 0x7F00, 0xFE00, 0x7F00, 0),
    ("signalling NaN", CBFLOAT16, CBFLOAT16, 0x3E00, 0x3E00, 0x7E01, 0x7F00, 16),
    ("exact zero sum of opposite numbers is +0", CBFLOAT16, CBFLOAT16, 0x3E00, 0xBE00, 0x3E00, 0x0000, 0),
    ("zero sum of two negative zeros is -0", CBFLOAT16, CBFLOAT16, 0x8000, 0x3E00, 0x8000, 0x8000, 0),
    ("zero sum of both zeros is +0", CBFLOAT16, CBFLOAT16, 0x8000, 0x3E00, 0x0000, 0x0000, 0),
    ("underflow to -0 keeps the sign", CBFLOAT16, CBFLOAT16, 0x8001, 0x0001, 0x0000, 0x8000, 3),
    # 2^-30 - x 2^-40 for x = 1, 1/2, 1/2 + a little: 10 bits with an unbounded exponent reach 2^-30 only for x = 1/2.
    ("tiny after rounding", CBFLOAT16, CBFLOAT16, 0x1600, 0x9600, 0x0200, 0x0200, 3),
    ("not tiny after rounding", CBFLOAT16, CBFLOAT16, 0x1600, 0x9400, 0x0200, 0x0200, 1),
    ("tiny after rounding, barely", CBFLOAT16, CBFLOAT16, 0x1600, 0x9401, 0x0200, 0x0200, 3),
    ("overflow", CBFLOAT16, CBFLOAT16, 0x7DFF, 0x7DFF, 0x0000, 0x7E00, 5),
    # The largest finite number is odd: half an ulp more, 2^10 * 2^11, is a tie and goes to the even infinity.
    ("overflow of a tie", CBFLOAT16, CBFLOAT16, 0x5200, 0x5400, 0x7DFF, 0x7E00, 5),
    ("no overflow below the tie", CBFLOAT16, CBFLOAT16, 0x5200, 0x53FF, 0x7DFF, 0x7DFF, 1),
    ("no overflow in float32", CBFLOAT16, FP32, 0x7DFF, 0x7DFF, 0x00000000, 0x5F7F8010, 0),
    ("overflow in float32", BF16, FP32, 0x7F7F, 0x7F7F, 0x00000000, 0x7F800000, 5),
    ("underflow in float32", BF16, FP32, 0x0001, 0x8001, 0x00000000, 0x80000000, 3),
    ("product on a midpoint, tiny accumulator above", BF16, BF16, 0x3FF0, 0x3FF8, 0x009E, 0x4069, 1),
    ("product on a midpoint, tiny accumulator below", BF16, BF16, 0x3FA0, 0x3FFC, 0x80B5, 0x401D, 1),
    ("product on a midpoint, no accumulator", BF16, BF16, 0x3FF0, 0x3FF8, 0x0000, 0x4068, 1),
    ("product on a midpoint, tiny accumulator above", CBFLOAT16, CBFLOAT16, 0x3E08, 0x6EE0, 0x8052, 0x6EEB, 1),
    # 2.0 - 2.5: all digits of the difference below the sign are zeros.
    ("cancellation to a negative power of two", CBFLOAT16, CBFLOAT16, 0xC080, 0x3E00, 0x4000, 0xBC00, 0),
    ("cancellation to a positive power of two", CBFLOAT16, CBFLOAT16, 0xC000, 0x3E00, 0x4080, 0x3C00, 0),
    # 1.0 - (1 + 2^-9)^2 is -2^-8 (1 + 2^-10); 1.0 - 513 * 518 / 2^18 is -3600.5 / 2^18, ...
    ("tie of a negative difference to even below", CBFLOAT16, CBFLOAT16, 0xBE01, 0x3E01, 0x3E00, 0xAE00, 1),
    ("tie of a negative difference to even above", CBFLOAT16, CBFLOAT16, 0xBE01, 0x3E06, 0x3E00, 0xB182, 1),
    (
        "tie of a negative difference without cancellation, to even below",
        CBFLOAT16,
        CBFLOAT16,
        0xBE18,
        0x3FE0,
        0x3E00,
        0xBE0E,
        1,
    ),
    (
        "tie of a negative difference without cancellation, to even above",
        CBFLOAT16,
        CBFLOAT16,
        0xBE10,
        0x3FF0,
        0x3E00,
        0xBE10,
        1,
    ),
    ("tie of a negative difference from 2.0 to even below", CBFLOAT16, CBFLOAT16, 0xBE05, 0x3FF9, 0x4000, 0xAEEE, 1),
    ("tie of a negative difference from 2.0 to even above", CBFLOAT16, CBFLOAT16, 0xBE03, 0x3FFD, 0x4000, 0xAEFC, 1),
    # One ulp of the subnormals, 2^-39, against 2^-39 * 1.0: a normalised product, nine places below the smallest.
    ("subnormal minus an equal product is +0", CBFLOAT16, CBFLOAT16, 0x8001, 0x3E00, 0x0001, 0x0000, 0),
    ("product minus an equal subnormal is +0", CBFLOAT16, CBFLOAT16, 0x0001, 0x3E00, 0x8001, 0x0000, 0),
    ("subnormal of float32 minus an equal product is +0", BF16, FP32, 0x8001, 0x3780, 0x00000001, 0x00000000, 0),
    # 128 or 161.25 ulps, a product below the smallest normal, and one ulp.
    ("subnormal product plus a smaller subnormal", CBFLOAT16, CBFLOAT16, 0x0080, 0x3E00, 0x0001, 0x0081, 0),
    ("subnormal product minus a smaller subnormal", CBFLOAT16, CBFLOAT16, 0x0080, 0x3E00, 0x8001, 0x007F, 0),
    ("negative subnormal product plus a smaller subnormal", CBFLOAT16, CBFLOAT16, 0x8080, 0x3E00, 0x0001, 0x807F, 0),
    ("negative subnormal product minus a smaller one", CBFLOAT16, CBFLOAT16, 0x8080, 0x3E00, 0x8001, 0x8081, 0),
    ("subnormal product minus a smaller subnormal, rounded", CBFLOAT16, CBFLOAT16, 0x0081, 0x3E80, 0x8001, 0x00A0, 3),
    ("negative subnormal product plus a smaller one, rounded", CBFLOAT16, CBFLOAT16, 0x8081, 0x3E80, 0x0001, 0x80A0, 3),
    ("subnormal product of float32 minus a smaller one", BF16, FP32, 0x0040, 0x3780, 0x80000001, 0x0000003F, 0),
    ("rounded twice through float32 would be 0x3fea", FP16, FP16, 0x3EB1, 0x26F3, 0x3FBC, 0x3FEB, 1),
    ("rounded twice through float32 would be 0x3c7e", FP16, FP16, 0x3E2C, 0x1F74, 0x3C72, 0x3C7D, 1),
    ("rounded twice through float32 would be 0x2f60", CBFLOAT16, CBFLOAT16, 0x3F7F, 0x2381, 0x2F47, 0x2F5F, 1),
]


@pytest.mark.parametrize(
    ("operand", "accumulator", "a", "b", "acc", "result", "flags"),
    [case[1:] for case in CASES],
    ids=[f"{case[1]}-{case[0]}".replace(" ", "_") for case in CASES],
)
def test_step_of_a_named_case_has_the_result_worked_out_by_hand(three, operand, accumulator, a, b, acc, result, flags):
    got = three(*(np.array([code]) for code in (a, b, acc)), operand, accumulator)
    assert (hex(got["bits"][0]), got["flags"][0]) == (hex(result), flags)
    by_golden, raised = golden.multiply_accumulate(
        *(np.array([code], code_dtype(fmt)) for code, fmt in ((a, operand), (b, operand), (acc, accumulator))),
        operand=operand,
        accumulator=accumulator,
        return_flags=True,
    )
    assert (hex(by_golden[0]), raised[0]) == (hex(result), flags)


def test_step_of_wider_operands_than_the_near_path_shifts_is_refused():
    # Built for float32 operands, 0xb3a66c00 * 0x5b496da0 + 0x4f82f210 (FPgen) was 0x3f000080 and not 0x3f800000.
    with pytest.raises(ValueError, match="operands: got float32 with a significand of 24 bits, must have at most 14"):
        StepFormats((FP32,), (FP32,))


def test_step_of_the_longest_significands_cancels_as_far_as_they_reach():
    # (2 - 2^-13)^2 is 4 - 2^-11 + 2^-26: beside 4 - 2^-11 only the product's lowest bit is left.
    fmt = FloatFormat("e2m13", 2, 13)
    a, acc = np.array([0x3FFF], np.uint16), golden.encode(-(4 - 2.0**-11), FP32)[np.newaxis]
    assert Step(StepFormats((fmt,), (FP32,))).assert_goldens(a, a, acc, fmt, FP32) == {0}
    near = np.arange(-40, 41) + int(acc[0])
    Step(StepFormats((fmt,), (FP32,))).assert_goldens(a, a, near.astype(np.uint32), fmt, FP32)


def test_step_of_products_far_below_float32s_accumulator_keeps_the_accumulator():
    # The product, 2^-120 and less, became 0x0d160000, for want of a bit in the difference of the exponents.
    step = Step(StepFormats((FAR_BELOW,), (FP32,)))
    got = step(np.array([0x4F]), np.array([0x4A]), np.array([0xE1749BAD]), FAR_BELOW, FP32)
    assert (hex(got["bits"][0]), got["flags"][0]) == ("0xe1749bad", 1)


class AddProduct(wiring.Component):
    """`add_product` alone: an exact product, as the multiplier hands it on, and an accumulator's code."""

    def __init__(self, formats):
        self.formats = formats
        self.layout = data.StructLayout(
            {
                "significand": formats.product_width,
                "exponent": signed(formats.product_exponent_width),
                "sign": 1,
                "is_infinite": 1,
                "is_nan": 1,
                "invalid": 1,
            }
        )
        self.accumulator_format = C(0, 0)
        width = formats.accumulator_width
        super().__init__({"product": In(self.layout), "acc": In(width), "o": Out(result_layout(width))})

    def after(self, step, bundle):
        return bundle.named(self.module)

    def elaborate(self, platform):
        self.module = m = Module()
        formats, index = self.formats, self.accumulator_format
        number, its_class = code_of(m, formats, self, self.acc)
        product = Bundle(**{name: self.product[name] for name, _ in self.layout})
        rounded = add_product(m, formats, self, product, lambda: number, lambda: its_class)
        finished = finish(m, formats, index, rounded)
        m.d.comb += [
            self.o.bits.eq(pack_result(formats, index, align_result(formats, index, rounded), finished)),
            self.o.flags.eq(finished.flags),
        ]
        return m


def test_add_product_takes_the_exact_product_of_normalised_significands():
    adder = AddProduct(StepFormats((E3M2,), (E3M2,)))
    a, b, acc = (x.ravel().astype(np.int64) for x in np.meshgrid(*[all_codes(E3M2)] * 3))

    def unpacked(code):
        """Exponent, significand of three bits with a leading one, and whether it is infinite or NaN."""
        field, fraction = code >> 2 & 7, code & 3
        exponent, significand = np.maximum(field, 1), fraction + 4 * (field > 0)
        for _ in range(2):
            short = (significand > 0) & (significand < 4)
            exponent, significand = exponent - short, significand << short
        return exponent, significand, (field == 7) & (fraction == 0), (field == 7) & (fraction > 0)

    (ea, ma, inf_a, nan_a), (eb, mb, inf_b, nan_b) = unpacked(a), unpacked(b)
    zero = (ma == 0) | (mb == 0)
    invalid = (inf_a | inf_b) & zero | nan_a & (a & 2 == 0) | nan_b & (b & 2 == 0)
    parts = {
        # ma * mb * 2^-4 is in [1, 4); the exponent belongs to the higher place.
        "significand": ma * mb,
        "exponent": np.where(zero, adder.formats.exponent_of_zero, ea + eb - E3M2.bias + 1),
        "sign": (a ^ b) >> 5,
        "is_infinite": inf_a | inf_b,
        "is_nan": nan_a | nan_b | (inf_a | inf_b) & zero,
        "invalid": invalid,
    }
    word = sum((parts[key] % (1 << field.width)) << field.offset for key, field in adder.layout)
    got = fields(result_layout(6), Compiled(adder)(product=word, acc=acc)["o"])
    wanted, flags = golden.multiply_accumulate(
        *(x.astype(np.uint16) for x in (a, b, acc)), operand=E3M2, accumulator=E3M2, return_flags=True
    )
    assert_same_bits(got["bits"], wanted, a, b, acc)
    assert_same_bits(got["flags"], flags, a, b, acc)
