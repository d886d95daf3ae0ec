"""Directed reductions: flags that only a promotion raises, NaNs that return, exponents near the smallest.

Each has the name of the bin that it meets. The exact value or golden's flags confirm this here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from golden import FP32, Flag, FloatFormat, dot, encode
from sim.stimulus.mac_coverage import accumulator_of
from sim.stimulus.operands import factors_of, from_parts
from sim.stimulus.reductions import Segment

__all__ = ["directed_segments", "near_limits", "required_directed"]

#: Differences from the smallest normal number, in eighths of the spacing of subnormals.
_EIGHTHS = (1, 2, 3, 4, 5, 8)


def required_directed(operand: FloatFormat, level: int) -> set[str]:
    """Return the bins of `directed_segments`."""
    return {name for name, _ in directed_segments(0, operand, level, np.random.default_rng(0))}


def directed_segments(
    index: int, operand: FloatFormat, level: int, rng: np.random.Generator
) -> Iterator[tuple[str, Segment]]:
    """Yield the name of a bin and a reduction that meets it; several may meet the same bin.

    Parameters
    ----------
    index : int
        Index of the operand format in its unit.
    operand : FloatFormat
    level : int
    rng : numpy.random.Generator
    """
    head = f"{operand}/level_{level}"
    if level:
        for name, a, chunk in _promotions(operand, level):
            yield f"{head}/promotion/{name}", Segment(index, level, a, [operand.one] * len(a), chunk=chunk)
        for a, b, chunk in _quiet_nans(operand, rng):
            yield f"{head}/promotion/quiet_nan", Segment(index, level, a, b, chunk=chunk)
    for exponent, a, b in near_limits(operand, level, rng):
        yield f"{head}/near_limit/{exponent}", Segment(index, level, a, b, chunk=0)
    tiny = [*_tiny(operand, accumulator_of(level, operand)), *(_tiny_differences(operand) if level else [])]
    for name, a, b in tiny:
        yield f"{head}/tininess/{name}", Segment(index, level, a, b, chunk=0)


def _promotions(operand: FloatFormat, level: int) -> Iterator[tuple[str, list[int], int]]:
    """Yield a flag that only the promotion raises, addends, and the chunk length."""
    cases = {
        Flag.INEXACT: [operand.one, operand.min_subnormal],
        Flag.OVERFLOW: [operand.max_finite, operand.max_finite],
        Flag.INVALID: [operand.inf, operand.inf | operand.sign_mask],
    }
    if level == 1 and operand.emax < FP32.emax:
        del cases[Flag.OVERFLOW]
    for flag, (x, y) in cases.items():
        for minus in (0, operand.sign_mask):
            for a, chunk in (([x ^ minus, y ^ minus], 1), ([x ^ minus, 0, y ^ minus, 0], 2)):
                _raises_only_together(operand, level, a, chunk, flag)
                yield f"only_it_raises_{flag.name}", a, chunk


def _raises_only_together(operand: FloatFormat, level: int, a: list[int], chunk: int, flag: Flag) -> None:
    codes, ones = np.array(a, np.uint16), np.full(len(a), operand.one, np.uint16)

    def flags(part: slice) -> int:
        return int(dot(codes[part], ones[part], operand=operand, level=level, chunk=chunk, return_flags=True)[1])

    parts = [flags(slice(start, start + chunk)) for start in range(0, len(a), chunk)]
    assert flags(slice(None)) & flag, (a, flag)
    assert not any(part & flag for part in parts), (a, flag)


def _quiet_nans(operand: FloatFormat, rng: np.random.Generator) -> Iterator[tuple[list[int], list[int], int]]:
    """Yield factors, one of them a quiet NaN: its promotion is not invalid, regardless of its significand."""
    fractions = rng.integers(0, 1 << operand.fraction_bits, (12, 3))
    codes = from_parts(operand, rng.integers(0, 2, (12, 3)), operand.bias, fractions).astype(np.int64).tolist()
    for x, y, z in codes:
        yield [operand.nan], [x], 1
        yield [x, operand.nan, z, y], [y, z, x, y], 3


def near_limits(
    operand: FloatFormat, level: int, rng: np.random.Generator
) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield exponent fields of an accumulator, and factors whose last sum cancels as many digits as possible."""
    return _near_limits(operand, rng) if level else _near_limits_of_fp32(operand, rng)


def _near_limits(operand: FloatFormat, rng: np.random.Generator) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield exponent fields of an accumulator, and a product that is larger or smaller by its lowest bit.

    As many digits cancel as possible, but fewer than the exponent allows.
    """
    bits = operand.precision
    for field, lowest in itertools.product(range(1, min(2 * bits, operand.max_finite_field + 1)), (1, -1)):
        x, y = _inverse_factors(bits, lowest, rng)
        kept = x * y - lowest >> bits
        accumulator = int(from_parts(operand, 0, field, kept - (1 << bits - 1)))
        # kept * 2**bits + lowest, with the exponent of the accumulator.
        factors = factors_of(operand, (x, y), field - operand.bias - 1)
        for minus in (0, operand.sign_mask):
            yield field, [accumulator ^ minus, factors[0] ^ minus ^ operand.sign_mask], [operand.one, factors[1]]


def _inverse_factors(bits: int, lowest: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return odd significands whose product is a multiple of ``2**bits``, plus `lowest`, and at least 2 as a number."""
    while True:
        x = int(rng.integers(1 << bits - 1, 1 << bits)) | 1
        y = lowest * pow(x, -1, 1 << bits) % (1 << bits)
        if y >> bits - 1 and x * y >> 2 * bits - 1:
            return x, y


def _tiny_differences(operand: FloatFormat) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yield numbers whose difference is a little below the smallest normal number N, and the bin.

    ::

        product      2 N - lost        N + lost      the product of significands is near 2
        accumulator  N                 2 N
    """
    bits, normal = operand.precision, operand.min_normal
    for larger, accumulator, exponent in (
        ("product", normal, operand.emin),
        ("accumulator", normal + (1 << operand.fraction_bits), operand.emin - 1),
    ):
        # Of the spacing of subnormals, in units of the product's lowest place.
        quarter = 1 << bits - 3 + operand.emin - exponent
        found: dict[str, list[tuple[int, int]]] = {}
        for x in range(1 << bits - 1, 1 << bits):
            y, lost = divmod(1 << 2 * bits - 1, x)
            if larger == "accumulator":
                y, lost = y + 1, x - lost
            if y >> bits or not lost:
                continue
            side = "exactly" if lost % quarter == 0 else "above"
            found.setdefault(f"{side}_{min(lost // quarter, 3)}_quarters", []).append((x, y))
        for name, pairs in sorted(found.items()):
            for significands in (pairs[0], pairs[len(pairs) // 2], pairs[-1]):
                factors = factors_of(operand, significands, exponent)
                for minus in (0, operand.sign_mask):
                    a = [accumulator ^ minus ^ operand.sign_mask, factors[0] ^ minus]
                    yield f"of_larger_{larger}_{name}", a, [operand.one, factors[1]]


def _near_limits_of_fp32(operand: FloatFormat, rng: np.random.Generator) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield exponent fields of an fp32 accumulator, a product of that exponent, one ulp more, and the product again."""
    for field in range(1, FP32.precision + 1):
        exponent = field - FP32.bias
        ulp = exponent - FP32.fraction_bits
        if ulp < 2 * (operand.emin - operand.fraction_bits) or exponent < 2 * operand.emin:
            continue
        x, y = _small_factors(operand, exponent, rng)
        powers = [_power(operand, ulp // 2), _power(operand, ulp - ulp // 2)]
        for minus in (0, operand.sign_mask):
            yield field, [x ^ minus, powers[0] ^ minus, x ^ minus ^ operand.sign_mask], [y, powers[1], y]


def _small_factors(operand: FloatFormat, exponent: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return factors whose product has this exponent."""
    bits = operand.fraction_bits
    # Both below 1.25: the product is below 2.
    x, y = factors_of(operand, (1 << bits) + rng.integers(0, 1 << bits - 2, 2), exponent)
    return x, y


def _power(operand: FloatFormat, exponent: int) -> int:
    return int(encode(2.0**exponent, operand))


def _tiny(operand: FloatFormat, accumulator: FloatFormat) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yield sums a little below the smallest normal number, on both sides of where rounding makes it normal."""
    spacing = accumulator.emin - accumulator.fraction_bits
    if 2 * (operand.emin - operand.fraction_bits) > spacing - 3 - operand.fraction_bits:
        return
    half = accumulator.emin // 2
    normal = [_power(operand, half), _power(operand, accumulator.emin - half)]
    exponent = spacing - 3
    left = max(exponent // 2, operand.emin - operand.fraction_bits)
    for eighths in _EIGHTHS:
        # With a bit more, or less, far below.
        for name, factor in (("less", 1 - 2.0**-5), ("exactly", 1.0), ("more", 1 + 2.0**-5)):
            values = (eighths * factor * 2.0**left, 2.0 ** (exponent - left))
            codes = [int(encode(value, operand)) for value in values]
            for minus in (0, operand.sign_mask):
                a = [normal[0] ^ minus, codes[0] ^ minus ^ operand.sign_mask]
                yield f"{name}_{eighths}_eighths_below_normal", a, [normal[1], codes[1]]
