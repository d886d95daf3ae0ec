"""The questions for a faulty library of kernels: products and roundings of every kind, as labelled arrays of bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    Accumulator,
    FloatFormat,
    FusedSum,
    Reduction,
    Rounding,
    accumulators,
    convert,
    decode,
    dot,
    encode,
    kernels,
    matmul,
    matmul_values,
    multiply_accumulate,
    quantize,
)
from golden.arrays.value_products import indexed_values
from golden.kernels.products import Indexed, call_of, matmul_indexed
from lab.devices.family import member
from lab.suites.accumulators.cases import draw, draw_edges

from ..golden.judges import boundary_codes, code_dtype, values_around
from ..golden.kernels.operands import (
    BESIDE_FLOAT16,
    FAR_BELOW_FLOAT,
    KINDS,
    ODD_ONES,
    between_limits,
    beyond_double,
    codes,
    grown_by_rounding,
    grown_by_ulps,
    late_overflow,
    near_smallest_normal,
    tiny_by_the_last_digit,
)
from ..golden.kernels.test_accumulators import EIGHT_STAGES
from ..golden.kernels.test_counting import WIDE, numbers, plans
from ..golden.kernels.test_environment import FLUSH_TO_ZERO, LIBM, MASKED, ROUND_UP, SUBNORMALS_ARE_ZERO, ControlWord
from ..golden.kernels.test_indexed import tables
from .planes import planes

Answer = tuple[str, Any]
Part = Callable[[np.random.Generator], Iterator[Any]]

# Each operand's scale is bounded: by the largest value that float32 holds, and by the largest factor.
_SCALED_BY_THE_RANGE = FloatFormat("e8m7", 8, 7, bias=135), FloatFormat("e8m7_low", 8, 7, bias=143)
_SCALED_BY_THE_FACTOR = FloatFormat("e6m9", 6, 9, bias=12), FloatFormat("e8m1_low", 8, 1, bias=149)

#: Forms of counts.
_FORMS = (True, "rows", "sum")

#: The narrowest format whose codes take 32 bits.
_ONE_BIT_MORE = FloatFormat("e8m8", 8, 8)


def answers(parts: Sequence[Part] | None = None) -> Iterator[Answer]:
    """Yield every answer of the path in force, or the answers of some parts; the operands do not depend on it."""
    for part in PARTS if parts is None else parts:
        for number, array in enumerate(part(np.random.default_rng(150))):
            array = np.asarray(array)
            yield f"{part.__name__} {number}", array.view(np.uint32) if array.dtype == np.float32 else array


def flat(rng: np.random.Generator) -> Iterator[Any]:
    patterns = rng.integers(0, 2**32, 3001, dtype=np.uint32)
    doubles = rng.integers(0, 2**64, 1001, dtype=np.uint64).view(np.float64)
    for fmt in (CBFLOAT16, BF16, FP16, CB16, FP32, _ONE_BIT_MORE, *ODD_ONES):
        near = np.concatenate([boundary_codes(FP32, near=(fmt,)), patterns]).astype(np.uint32).view(np.float32)
        around = values_around(fmt)[::7] if fmt.width <= 16 else doubles
        for values in (near, np.concatenate([around, -around, doubles, [2.0**-160, -0.0, 1e308]])):
            yield encode(values, fmt)
            yield quantize(values, fmt)
        given = rng.integers(0, 2**fmt.width, 2003).astype(np.uint16 if fmt.width <= 16 else np.uint32)
        given = np.append(given, boundary_codes(fmt)).astype(given.dtype)
        yield decode(given, fmt)
        for destination in (CBFLOAT16, FP16, FP32, ODD_ONES[0], ODD_ONES[5]):
            yield convert(given, fmt, destination)


def lengths(rng: np.random.Generator) -> Iterator[Any]:
    values = rng.normal(size=140_001).astype(np.float32)
    for count in (0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 65_536, 65_537, 140_001):
        room = np.full(count + 64, 1234.5, np.float32)
        quantize(values[:count], CBFLOAT16, out=room[32 : count + 32])
        yield room
        yield encode(values[:count], FP16)
        yield convert(encode(values[:count], FP16), FP16, CBFLOAT16)


def chains(rng: np.random.Generator) -> Iterator[Any]:
    for fmt in (CBFLOAT16, BF16, FP16, CB16, FloatFormat("e4m3", 4, 3)):
        for kind in KINDS:
            a, b = codes(kind, fmt, (5, 301), rng), codes(kind, fmt, (301, 20), rng)
            for level in (0, 1, 2):
                yield matmul(a, b, operand=fmt, reduction=Reduction.for_level(level, fmt, inner=fmt))
            for chunk in (None, 1, 12, 256, 300):
                yield matmul(a, b, operand=fmt, reduction=Reduction(fmt, chunk, fmt))
        a, b = codes("normal", fmt, (3, 1300), rng), codes("normal", fmt, (1300, 70), rng)
        yield matmul(a, b, operand=fmt, reduction=Reduction(fmt, 300, FP32))
        plan = Reduction(fmt, None, FP32)
        yield matmul(a, b, operand=fmt, reduction=plan, initial=codes("normal", FP32, (70,), rng))


def edges(rng: np.random.Generator) -> Iterator[Any]:
    for fmt in (CBFLOAT16, BF16, FP16, CB16):
        yield matmul(*late_overflow(fmt), operand=fmt, level=2, chunk=None)
        yield matmul(*grown_by_rounding(fmt), operand=fmt, level=2, chunk=None)
        yield matmul(*beyond_double(fmt), operand=fmt, level=2)


def shapes(rng: np.random.Generator) -> Iterator[Any]:
    for rows in (1, 2, 4, 5, 6, 7, 13, 65):
        for columns in (1, 3, 15, 16, 17, 33, 64, 65, 129, 130):
            for fmt in (CBFLOAT16, FP16):
                a, b = codes("special", fmt, (rows, 37), rng), codes("special", fmt, (37, columns), rng)
                for level in (0, 1, 2):
                    yield matmul(a, b, operand=fmt, level=level)
    # Every other initial value of a row; results of two columns, which are written down the columns.
    for fmt in (CBFLOAT16, FP32):
        a, b = codes("special", fmt, (37, 20), rng), codes("normal", fmt, (20, 66), rng)
        start = codes("normal", FP32, (37, 66), rng)
        for columns in (2, 33):
            yield matmul(a, b[:, :columns], operand=fmt, level=1, initial=start[:, : 2 * columns : 2])
            yield matmul(a, b[:, :columns], operand=fmt, level=0, out=FP16)
    a, b = rng.normal(size=(70, 90, 2)).astype(np.float32), rng.normal(size=(90, 3, 70)).astype(np.float32)
    for x in (a[..., 0], a[::-1, ::-1, 1], np.asfortranarray(a[..., 0]), a[::2, :, 0]):
        for y in (b[:, 0], b[:, 1, ::-1], np.asfortranarray(b[:, 2]), b[:, 0, ::3]):
            yield matmul_values(x, y, operand=BF16, out=CBFLOAT16, initial=np.float32(0.1))
            yield matmul(encode(x, FP16), encode(y, FP16), operand=FP16, out=BF16)


def batches(rng: np.random.Generator) -> Iterator[Any]:
    for left, right, initial in (
        ((2, 3, 4, 6), (2, 3, 6, 5), (2, 3, 4, 5)),
        ((2, 1, 4, 6), (3, 6, 5), (3, 1, 5)),
        ((4, 6), (7, 6, 5), (7, 1, 1)),
        ((2, 3, 4, 6), (6, 5), (5,)),
        ((1, 1, 40, 6), (1, 6, 5), (40, 1)),
        ((2, 0, 6), (6, 5), ()),
    ):
        a, b = codes("normal", CBFLOAT16, left, rng), codes("normal", CBFLOAT16, right, rng)
        for level in (0, 1, 2):
            start = codes("normal", Reduction.for_level(level, CBFLOAT16).outer, initial, rng)
            yield matmul(a, b, operand=CBFLOAT16, level=level, chunk=4, initial=start)
            yield matmul(a[..., ::-1, :], b, operand=CBFLOAT16, level=level)


def reductions(rng: np.random.Generator) -> Iterator[Any]:
    formats = (CBFLOAT16, BF16, FP16, FP32, *ODD_ONES)
    for operand in formats:
        for inner in formats:
            if inner.has_one:
                outer = formats[rng.integers(len(formats))]
                a, b = codes("wide", operand, (9, 50), rng), codes("edges", operand, (50, 18), rng)
                plan = Reduction(inner, (None, 1, 7)[rng.integers(3)], outer)
                yield matmul(a, b, operand=operand, reduction=plan)
                yield matmul(codes("normal", operand, (9, 50), rng), b, operand=operand, reduction=plan, out=FP16)
    for fmt in BESIDE_FLOAT16:
        a, b = codes("wide", fmt, (9, 50), rng), codes("wide", fmt, (50, 40), rng)
        yield matmul(a, b, operand=fmt, reduction=Reduction(fmt, 8, FP32))


def scales(rng: np.random.Generator) -> Iterator[Any]:
    """Both operands share the accumulator's scale, as much of it as each has room for."""
    for operand, inner in (_SCALED_BY_THE_RANGE, _SCALED_BY_THE_FACTOR):
        for kind in ("edges", "special", "any"):
            a, b = codes(kind, operand, (5, 40), rng), codes("special", operand, (40, 20), rng)
            yield matmul(a, b, operand=operand, reduction=Reduction(inner, 8, FP32))
            yield matmul(b.T, a.T, operand=operand, reduction=Reduction(inner, 8, inner))


def subnormals(rng: np.random.Generator) -> Iterator[Any]:
    """Values that become subnormal operands: they are rounded once, before the product."""
    for fmt in (CBFLOAT16, FP16, CB16):
        near = values_around(fmt)
        near = near[abs(near) < 4 * 2.0**fmt.emin].astype(np.float32)
        a = rng.choice(near, (7, 30))
        yield matmul_values(a, np.full((30, 17), 2.0**-fmt.emin, np.float32), operand=fmt, out=FP32)
        yield matmul_values(np.eye(30, dtype=np.float32), a.T, operand=fmt, out=FP32)
        # Sums in float32 next to the ties of subnormal results.
        ties = (2 * rng.integers(0, 2**fmt.fraction_bits, (40, 1)) + 1) * 2.0 ** (fmt.emin - fmt.fraction_bits - 1)
        beside = encode(ties.astype(np.float32), FP32) + rng.integers(-2, 3, (40, 1)).astype(np.uint32)
        yield matmul(beside, encode([[1.0]], FP32), operand=FP32, level=0, out=fmt)


def windows(rng: np.random.Generator) -> Iterator[Any]:
    """Operands that tables pick from arrays; many shapes, so that lanes and blocks end everywhere."""
    for number in range(24):
        fmt = (CBFLOAT16, FP16, FP32)[number % 3]
        batches, rows, length, columns = (int(rng.integers(1, most)) for most in (4, 70, 600, 70))
        left, right = (
            Indexed(codes("special", fmt, (4000,), rng), *tables(rng, 4000, batches, lanes, length))
            for lanes in (rows, columns)
        )
        right = Indexed(right.data, right.batches, right.columns, right.rows)
        plan = Reduction.for_level(number % 3 if fmt != FP32 else 0, fmt)
        initial = codes("normal", plan.outer, (batches, rows, 1), rng)
        got = np.zeros((batches, rows, columns), code_dtype(fmt))
        if not matmul_indexed(left, right, initial, got, call_of(replace(plan, operand=fmt, out=fmt))):
            got = matmul(left.matrices(), right.matrices(), operand=fmt, reduction=plan, initial=initial, out=fmt)
        yield got
        values = [each._replace(data=decode(each.data, fmt)) for each in (left, right)]
        yield indexed_values(*values, operand=fmt, level=number % 3 if fmt != FP32 else 0, chunk=32)


def dots(rng: np.random.Generator) -> Iterator[Any]:
    for fmt in (CBFLOAT16, FP16, FP32, ODD_ONES[4]):
        for rows, length in ((37, 11), (1, 300), (70, 301), (200, 40)):
            a, b = codes("special", fmt, (rows, length), rng), codes("normal", fmt, (rows, length), rng)
            for level in (0, 1, 2):
                yield dot(a, b, operand=fmt, level=level, chunk=12)
        for accumulator in (fmt, FP32, CBFLOAT16):
            operands = codes("wide", fmt, (71,), rng), codes("special", fmt, (3, 1), rng)
            acc = codes("special", accumulator, (71,), rng)
            yield multiply_accumulate(*operands, acc, operand=fmt, accumulator=accumulator)


def modes(rng: np.random.Generator) -> Iterator[Any]:
    """Every rounding mode of every step; where it is stochastic, random numbers that differ from step to step."""
    for number, mode in enumerate(Rounding):
        options = {"rounding": mode, "seed": 0x9876_5432_10FE_DCBA, "call": number}
        for fmt in (CBFLOAT16, FP16, BF16, FP32, ODD_ONES[4]):
            a, b = codes("special", fmt, (13, 40), rng), codes("normal", fmt, (40, 70), rng)
            sums = {"operand": fmt, "reduction": Reduction(fmt, None, fmt)}
            for level in (0, 1, 2):
                yield matmul(a, b, operand=fmt, level=level, chunk=12, **options)
                yield dot(a, b.T[:13], operand=fmt, level=level, chunk=12, **options)
            tiny, huge = (codes(kind, fmt, (6, 30), rng) for kind in ("edges", "wide"))
            yield matmul(tiny, huge.T, operand=fmt, reduction=Reduction(fmt, 8, fmt), **options)
            yield matmul(a, b, operand=fmt, level=2, out=FP16, out_rounding=mode, **options)
            few = rng.integers(0, 2 * fmt.min_normal, (13, 3)).astype(a.dtype)  # subnormal sums, rounded
            yield matmul(few, b[:3], operand=fmt, level=2, **options)
            yield matmul(few, few.T, operand=fmt, level=0, **options)
            # Sums that are exactly 0, whose sign is the mode's, and sums that overflow late.
            yield matmul(
                np.concatenate([a, a ^ fmt.sign_mask], 1), np.full((80, 5), fmt.one, a.dtype), **options, **sums
            )
            for late in (late_overflow, grown_by_rounding) if fmt in (CBFLOAT16, FP16) else ():
                yield matmul(*late(fmt), operand=fmt, level=2, chunk=None, **options)
            start = codes("edges", FP32, (13, 70), rng)
            yield matmul(a, b, operand=fmt, level=0, initial=start, random_bits=3, **options)
        yield matmul(*grown_by_ulps(), operand=CBFLOAT16, reduction=Reduction(CBFLOAT16, None, FP32), **options)
        for level in (0, 1, 2):
            yield matmul(*between_limits(rng), operand=BF16, level=level, out=BF16, out_rounding=mode, **options)
        large = rng.normal(size=(2, 9, 1)) * 2.0 ** rng.integers(50, 75, (2, 9, 1))
        a, b = (encode(each, BF16) for each in large)
        yield matmul(a, b.T, operand=BF16, reduction=Reduction(FAR_BELOW_FLOAT, None, FP32), **options)


def counted(rng: np.random.Generator) -> Iterator[Any]:
    """Counts of steps: sums of every kind, of each result, of some rows and of whole products, in every mode."""
    for fmt in (CBFLOAT16, FP16, BF16, FP32, *WIDE, ODD_ONES[4]):
        for name, plan in plans(fmt).items():
            for kind in KINDS:
                a, b = codes(kind, fmt, (5, 70), rng), codes(kind, fmt, (70, 19), rng)
                yield from _counted(a, b, operand=fmt, reduction=plan, counts=True)
            start = codes("edges", plan.outer, (5, 19), rng)
            inexact = codes("normal", fmt, (5, 70), rng), codes("normal", fmt, (70, 19), rng)
            for rounding in Rounding:
                options = {"operand": fmt, "reduction": plan, "initial": start, "rounding": rounding, "seed": 7}
                for operands in ((a, b), inexact):
                    yield from _counted(*operands, counts=_FORMS[len(name) % len(_FORMS)], **options)
        half = codes("normal", fmt, (150, 90), rng)
        rows = np.flatnonzero(rng.random(150) < 0.3)
        with kernels.use(str(kernels.kernel_info()["path"]), 2):
            for form in _FORMS:
                yield from _counted(half, half.T[:, ::2], operand=fmt, counts=form)
                yield from _counted(half, half.T, operand=fmt, level=2, chunk=7, counts=form, counted_rows=rows)
    for fmt in (CBFLOAT16, FP16, BF16):
        for operands in (late_overflow(fmt), grown_by_rounding(fmt), beyond_double(fmt)):
            for plan in (Reduction(fmt, 32, fmt), Reduction(fmt, None, fmt), Reduction(FP32, None, FP32)):
                yield from _counted(*operands, operand=fmt, reduction=plan, counts=True)
        for kind in ("normal", "wide", "special"):
            a, b = codes(kind, fmt, (70, 50), rng), codes(kind, fmt, (70, 50), rng)
            for plan in plans(fmt).values():
                yield from _counted(a, b, operand=fmt, reduction=plan, counts=True, product=dot)
    for fmt in (CBFLOAT16, FP16, BF16, FP32):
        for operands in (*tiny_by_the_last_digit(fmt), near_smallest_normal(fmt)):
            yield from _counted(*operands, operand=fmt, reduction=Reduction(fmt, None, fmt), counts=True)

    # The largest factors that lose a digit: 2 - 2^-23 squared, less itself, leaves half of the last digit there is.
    largest = (FP32.one - (52 << 23) | 0x7FFFFF) & 0xFFFFFFFF
    row, column = np.zeros((12, 16), np.uint32), np.zeros((16, 64), np.uint32)  # whole vectors of factors
    row[:, :2], column[0], column[1] = largest, largest, largest | FP32.sign_mask
    yield from _counted(row, column, operand=FP32, level=0, counts=True)
    # The same in one row and one column, among factors that are larger by an ulp.
    row[:], column[:] = largest + 1, largest + 1
    row[3, :2], column[0, 5], column[1, 5] = largest, largest, largest | FP32.sign_mask
    yield from _counted(row, column, operand=FP32, level=0, counts=True)
    # Factors of which a few alone make tiny sums: in each block, panel and vector in turn, among others that make none.
    for fmt in (CBFLOAT16, BF16, FP16, FP32):
        for panel, column in enumerate((2, 37, 71, 105, 139)):
            a, b = (np.full(shape, fmt.one, code_dtype(fmt)) for shape in ((7, 400), (400, 140)))
            k = 40 + 80 * panel
            a[panel, :k] = 0
            a[panel, k], b[k, column] = fmt.one + 1, fmt.min_normal - 3
            yield from _counted(a, b, operand=fmt, reduction=Reduction(fmt, (None, 32)[panel % 2], fmt), counts="rows")


def _counted(*operands: Any, product: Any = matmul, **options: Any) -> Iterator[Any]:
    result, found = product(*operands, **options)
    yield result
    yield from numbers(found)


def narrow(rng: np.random.Generator) -> Iterator[Any]:
    """Operands of 8 bits and fewer, which other kernels multiply in their place."""
    for fmt in (FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN):
        a, b = (rng.integers(0, 1 << fmt.width, shape, np.uint8) for shape in ((7, 70), (70, 19)))
        for level in (0, 1, 2):
            yield matmul(a, b, operand=fmt, level=level)
            yield dot(a, b.T[:7], operand=fmt, level=level, return_flags=True)[0]


def other_machines(rng: np.random.Generator) -> Iterator[Any]:
    """The accumulators of other machines: short and long sums, values that cancel, overflow or are tiny, strides."""
    for rule in accumulators.values():
        wide = rule.operand_bits == 16
        for fmt in (BF16, FP16, FloatFormat("e3m12", 3, 12)) if wide else (FLOAT8_E4M3FN, FLOAT8_E5M2):
            for m, k, n in ((3, 37, 40), (9, 150, 5), (1, 64, 33), (70, 11, 33)):
                a, b, totals = draw(rng, fmt, m, k, n, rule.outer)
                yield matmul(a, b, operand=fmt, reduction=rule, initial=totals)
                yield matmul(a[::-1], b[:, ::-2], operand=fmt, reduction=rule)
                yield dot(a, b[:, 0], operand=fmt, reduction=rule, initial=totals[:, 0])
            for length in (1, rule.block, 2 * rule.block + 1):
                a, b, totals = draw_edges(rng, fmt, 40, length, 40, rule.outer)
                yield matmul(a, b, operand=fmt, reduction=rule, initial=totals)
    yield matmul(*draw(rng, BF16, 5, 70, 40)[:2], operand=BF16, reduction=EIGHT_STAGES)
    a, b = codes("normal", BF16, (2, 1, 5, 20), rng), codes("special", BF16, (3, 20, 6), rng)
    for rule in (accumulators["nvidia_ampere"], accumulators["x86_vdpbf16ps"]):
        start = codes("normal", FP32, (3, 1, 6), rng)
        yield matmul(a, b, operand=BF16, reduction=rule, initial=start)
        yield matmul(a.swapaxes(-1, -2)[..., :3, :], b[:, :5], operand=BF16, reduction=rule)
        long = codes("normal", BF16, (40, 1500), rng)
        with kernels.use(threads=2):
            yield matmul(long, long.T[:, ::3], operand=BF16, reduction=rule)


def members(rng: np.random.Generator) -> Iterator[Any]:
    """Members of the accumulators' family that no machine has: every parameter is drawn from its whole range."""
    for number in range(40):
        for total in (FP32, FP16):
            device = member(number, total)
            rule, fmt = device.model, device.operand
            for cases, rows in ((draw, 3), (draw, 2), (draw_edges, 3)):
                a, b, totals = cases(rng, fmt, rows, (3 - rows // 3) * rule.block - 1 + number % 3, 34, rule.outer)
                yield matmul(a, b, operand=fmt, reduction=rule, initial=totals)
            yield dot(a, b.T[:rows], operand=fmt, reduction=rule, initial=totals[:, 0])
    # A total of float16, and a sum next to half of its last place, by a digit that a double has no room for beside it.
    parts, start = (FusedSum(9, 40, rounding=None),), encode([1.0, 1 + 2.0**-10, 3.0], FP16)
    rule = Accumulator(16, 9, FusedSum(2, result=FP16), stages=parts, nan=FP16.nan)
    a = encode([[2.0**-7] * 8 + [2.0**-27]], BF16)
    for sign in (0, BF16.sign_mask):
        b = np.repeat(a.T, 3, axis=1)
        b[8] |= a.dtype.type(sign)
        yield matmul(a, b, operand=BF16, reduction=rule, initial=start)


def flushed(rng: np.random.Generator) -> Iterator[Any]:
    """Subnormals flushed: of operands, of initial values, of sums and results, in codes and in values."""
    for fmt in (CBFLOAT16, FP16, BF16, CB16, FP32, *ODD_ONES):
        options = {"operand": fmt, "subnormals": "flush"}
        inner = fmt if fmt.has_one else CBFLOAT16
        plans = Reduction(FP32, None, FP32), Reduction(inner, 7, FP32), Reduction(inner, 12, inner)
        for kind in ("edges", "special", "wide"):
            a, b = codes(kind, fmt, (7, 40), rng), codes("wide", fmt, (40, 37), rng)
            for plan in (*plans, Reduction(FP32, 16, BF16), Reduction(inner, None, inner)):
                start = codes("edges", plan.outer, (7, 1), rng)
                for out in (None, FP16, FP32):
                    yield matmul(a, b, reduction=plan, out=out, **options)
                yield matmul(a, a.T, reduction=plan, initial=start, **options)
                yield dot(a, b.T[:7], reduction=plan, **options)
                values = decode(a, fmt), decode(b, fmt)
                yield matmul_values(*values, reduction=plan, initial=np.float32(2.0**-130), **options)
        # Products and sums beside the smallest normal value, and beside what is just rounded up to it.
        a, b = near_smallest_normal(fmt)
        for plan in plans if fmt.has_one else ():
            yield matmul(a, b, reduction=plan, **options)
        steps = np.arange(-40, 41)[:, np.newaxis]
        for destination in (CBFLOAT16, FP16, ODD_ONES[0], ODD_ONES[1], fmt):
            smallest = 2.0**destination.emin
            for below in (0.0, 0.25, 0.5, 1.0):
                beside = np.float32(smallest * (1 - below * 2.0 ** -(destination.fraction_bits + 1)))
                near = (encode(beside, FP32) + steps).astype(np.uint32) | np.uint32([0, FP32.sign_mask])
                one = encode([[1.0]], FP32)
                inner = destination if destination.has_one else FP32
                for plan in (Reduction(FP32, None, FP32), Reduction(inner, 4, FP32)):
                    yield matmul(
                        near.reshape(-1, 1), one, operand=FP32, reduction=plan, out=destination, subnormals="flush"
                    )
    # What the library leaves to NumPy: other modes, counts, conversions.
    for fmt in (CBFLOAT16, FP32):
        options = {"operand": fmt, "level": 0, "subnormals": "flush"}
        a, b = codes("edges", fmt, (7, 20), rng), codes("wide", fmt, (20, 17), rng)
        for mode in Rounding:
            yield matmul(a, b, rounding=mode, seed=3, **options)
        yield from _counted(a, b, counts="sum", **options)
        for to in (FP16, FP32):
            yield convert(a, fmt, to, subnormals="flush")
            yield encode(decode(a, fmt), to, subnormals="flush")
            yield quantize(decode(a, fmt), to, subnormals="flush")
    for threads in (1, 2):
        with kernels.use(str(kernels.kernel_info()["path"]), threads):
            a, b = codes("edges", BF16, (90, 300), rng), codes("wide", BF16, (300, 70), rng)
            yield matmul(a, b, operand=BF16, level=2, subnormals="flush")


def threads(rng: np.random.Generator) -> Iterator[Any]:
    """Enough steps that each thread gets a share, and many calls close upon each other."""
    path = kernels.kernel_info()["path"]
    for count in (2, 3):
        with kernels.use(str(path), count):
            for rows, depth, columns in ((150, 60, 140), (700, 60, 20), (20, 60, 700), (1600, 4, 1100)):
                a, b = codes("normal", BF16, (rows, depth), rng), codes("normal", BF16, (depth, columns), rng)
                yield matmul(a, b, operand=BF16)
            values = rng.normal(size=200_000).astype(np.float32)
            for _ in range(20):
                yield encode(values, CBFLOAT16)[::1000]


def environment(rng: np.random.Generator) -> Iterator[Any]:
    """Whatever the caller's floating-point environment is, it neither matters nor changes."""
    a, b = codes("edges", CBFLOAT16, (6, 40), rng), codes("special", CBFLOAT16, (40, 20), rng)
    small = rng.integers(0, 2**23, 100, dtype=np.uint32).view(np.float32)
    on_numpy = kernels.kernel_info()["path"] == "numpy"  # which depends on it
    for word in (MASKED | FLUSH_TO_ZERO | SUBNORMALS_ARE_ZERO, MASKED | ROUND_UP):
        with np.errstate() if on_numpy or not LIBM else ControlWord(word):
            got = [matmul(a, b, operand=CBFLOAT16, level=level) for level in (0, 1, 2)]
            got += [encode(small, FloatFormat("e8m15", 8, 15)), convert(a, CBFLOAT16, FP32)]
            same = on_numpy or not LIBM or ControlWord.read() & 0xFFC0 == word
        yield from got
        yield np.array([same])


PARTS: tuple[Part, ...] = (
    flat, lengths, chains, edges, shapes, batches, reductions, scales, subnormals, windows, dots, modes, counted,
    narrow, other_machines, members, flushed, planes, threads, environment,
)  # fmt: skip
