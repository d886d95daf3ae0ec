"""Steps in neighbouring cycles: values that leak from one to the next change its result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np

from golden import FP32, Flag, FloatFormat, dot, encode
from golden.formats import HALF_FORMATS
from sim.scenario import Scenario
from sim.stimulus.directed import near_limits
from sim.stimulus.mac_coverage import accumulator_of
from sim.stimulus.maker import Maker
from sim.stimulus.operands import factors_of, from_parts
from sim.stimulus.order import Beat
from sim.stimulus.patterns import pattern
from sim.stimulus.reductions import Chain, Segment
from sim.stimulus.schedule import DRAINED, on_registers

__all__ = ["NEIGHBOURS", "neighbours", "neighbours_of_promotions", "required_neighbours"]

#: How the scenarios' names begin; every lane of a unit has the same products in them.
NEIGHBOURS = "neighbours"
_EIGHTHS = (1, 2, 3, 4)
# The name of a bin, and the factors of a reduction.
_Products = tuple[str, list[int], list[int]]


def neighbours(maker: Maker) -> list[Scenario]:
    """Interleave reductions whose second steps would be wrong with any value from the step before.

    Each group begins with nothing in flight, and a third product delays promotions, so that nothing comes between the
    second products. Formats whose products are all far above the smallest fp32 numbers have no such groups at level 0.
    Other groups cancel more digits than each exponent allows: here in every lane, not only in random ones. The last
    ones bring infinities and NaNs, as factors and accumulators, right after numbers and after each other.
    """
    maker.start(NEIGHBOURS)
    made = [kind for at in _kinds(maker) for kind in _segments(maker.operands[at[0]], *at) if kind]
    maker.bins.update(name for kind in made for name, _ in kind)
    turns: list[Chain] = []
    for kind in made:
        chains = [[segment] for _, segment in kind]
        maker.complete(NEIGHBOURS, chains)
        turns += [
            [segment for (segment,) in group] for group in on_registers(chains, maker.mac.registers, maker.paired)
        ]
    if not turns:
        return []
    beats: list[Beat] = []
    for turn in turns:
        turn[0].pauses = [DRAINED, *[0] * (len(turn[0].a) - 1)]
        beats += [(segment, k) for k in range(len(turn[0].a)) for segment in turn]
    scenario = maker.to_scenario(NEIGHBOURS, beats)
    scenario.is_bulk = True
    scenario.coverage = dict(maker.bins)
    return [scenario]


def neighbours_of_promotions(maker: Maker) -> Scenario:
    """Mix promotions of numbers, infinities and NaNs with products of the same classes; each reduction is one product.

    If a unit takes an infinity for a number, that overflows to infinity; times the smallest normal number it does not.
    Products right behind a promotion are rare, so there are many: every seed must bring each class into each lane.
    """
    counts = [count // len(maker.operands) for count in (0, 2000, 500)]

    def chains() -> list[Chain]:
        made: list[Chain] = []
        for index, level in maker.kinds:
            fmt = maker.operands[index]
            infinities = [(fmt.inf | minus, fmt.min_normal) for minus in (0, fmt.sign_mask)]
            factors = [(fmt.one, fmt.one), *infinities, *2 * [(fmt.nan, fmt.one)]]
            for at in maker.rng.integers(0, len(factors), counts[level]).tolist():
                a, b = factors[at]
                made.append([Segment(index, level, [a], [b], chunk=1)])
        return made

    scenario = maker.make(f"{NEIGHBOURS}_of_promotions", chains, policy="rotation")
    scenario.offers = pattern("random", maker.rng)
    scenario.is_bulk = True
    return scenario


def required_neighbours(maker: Maker) -> set[str]:
    """Return the bins of `neighbours`."""
    return {name for at in _kinds(maker) for kind in _segments(maker.operands[at[0]], *at) for name, _ in kind}


def _kinds(maker: Maker) -> list[tuple[int, int]]:
    """Return every format with the levels that differ in a step: into fp32, and into the format itself."""
    levels = sorted({maker.mac.levels[0], maker.mac.levels[-1]})
    return [kind for kind in maker.kinds if kind[1] in levels]


def _segments(operand: FloatFormat, index: int, level: int) -> list[list[tuple[str, Segment]]]:
    """Return lists of equally long reductions, of a few products and a zero, with the names of their bins."""
    return [
        [(name, Segment(index, level, [*a, 0], [*b, operand.one], chunk=0)) for name, a, b in found]
        for found in (made(operand, level) for made in (_products, _cancellations, _classes, _carries))
    ]


@cache
def _cancellations(operand: FloatFormat, level: int) -> list[_Products]:
    found = near_limits(operand, level, np.random.default_rng(0))
    return [(f"{NEIGHBOURS}/{operand}/level_{level}/cancels_beyond_exponent/{field}", a, b) for field, a, b in found]


@cache
def _classes(operand: FloatFormat, level: int) -> list[_Products]:
    """Return pairs of an accumulator and a product, of which a group holds both: it has an even number of registers."""
    head, one, nan, infinity = f"{NEIGHBOURS}/{operand}/level_{level}", operand.one, operand.nan, operand.inf
    special = (nan, infinity | 1, infinity, infinity | operand.sign_mask)
    products = [(one, one), (0, infinity), *((code, one) for code in special), *((one, code) for code in special)]
    steps = [(one, *product) for product in products] + [(infinity, *product) for product in products]
    before = {
        "numbers": (one, one, one),
        "nans": (nan, nan, nan),
        "infinities": (infinity, infinity, infinity),
        "opposite_infinities": (infinity, one, infinity | operand.sign_mask),
    }
    return [
        (f"{head}/classes_after_{name}", [accumulator, a], [one, b])
        for name, first in before.items()
        for step in (*steps, (nan, one, one), (nan, infinity, one))
        for accumulator, a, b in (first, step)
    ]


@cache
def _carries(operand: FloatFormat, level: int) -> list[_Products]:
    """Return sums that round up to a power of two, at the largest exponent of this accumulator and of others.

    ::

        1.11...11 * 2^e   + half an ulp  ->  2^(e + 1), or an infinity   - infinity  ->  that, or NaN
        a few products      a product                                    a product

    Where a lane takes one format's largest exponent for another's, its sum overflows too early, or is no infinity.
    """
    accumulator, head = accumulator_of(level, operand), f"{NEIGHBOURS}/{operand}/level_{level}/carries_from_exponent"
    size, bits, found = operand.precision, accumulator.precision, list[_Products]()
    for field in sorted({fmt.max_finite_field for fmt in (*HALF_FORMATS, FP32)}):
        exponent = field - accumulator.bias
        if field > accumulator.max_finite_field or exponent > 2 * operand.emax or exponent - bits < 2 * operand.emin:
            continue
        ones = [(1 << size) - (1 << max(size - (bits - place), 0)) for place in range(0, bits, size)]
        one = 1 << size - 1
        factors = [factors_of(operand, (part, one), exponent - number * size) for number, part in enumerate(ones)]
        factors.append(factors_of(operand, (one, one), exponent - bits))
        for minus in (0, operand.sign_mask):
            a = [x | minus for x, _ in factors] + [operand.inf | operand.sign_mask ^ minus]
            b = [y for _, y in factors] + [operand.one]
            _overflows_at_its_largest_exponent(operand, level, a, b, is_largest=field == accumulator.max_finite_field)
            found.append((f"{head}/{field}", a, b))
    return found


def _overflows_at_its_largest_exponent(
    operand: FloatFormat, level: int, a: list[int], b: list[int], *, is_largest: bool
) -> None:
    codes = (np.array(each, np.uint16) for each in (a, b))
    _, flags = dot(*codes, operand=operand, level=level, chunk=None, return_flags=True)
    assert bool(flags & Flag.OVERFLOW) == bool(flags & Flag.INVALID) == is_largest, (operand, level, a, b)
    assert flags & Flag.INEXACT, (operand, level, a, b)


@cache
def _products(operand: FloatFormat, level: int) -> list[_Products]:
    head, one = f"{NEIGHBOURS}/{operand}/level_{level}", operand.one
    found: list[_Products] = []
    for field, a, b in _limits(operand, accumulator_of(level, operand)):
        found.append((f"{head}/cancels_after_exponent/{field}", a, b))
        found.append((f"{head}/cancels", [one, one | operand.sign_mask], [one, one]))
    for name, a, b in _just_below_normal(operand) if level else ():
        found.append((f"{head}/{name}_below_normal", a, b))
    return found


def _limits(operand: FloatFormat, accumulator: FloatFormat) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield exponent fields of an accumulator that limit how far a difference is shifted, the accumulator, and +0.

    The limit must not end the shift of the next difference, which leaves nothing.
    """
    for field in range(1, min(FP32.precision + 2, accumulator.max_finite_field + 1)):
        exponent = field - accumulator.bias
        powers = exponent // 2, exponent - exponent // 2
        if powers[0] >= operand.emin:
            x, y = (int(encode(2.0**power, operand)) for power in powers)
            yield field, [x, 0], [y, operand.one]


def _just_below_normal(operand: FloatFormat) -> Iterator[_Products]:
    """Yield an accumulator A and a product ``-p`` whose difference is eighths of the lowest place below normal.

    Every exponent field of A needs a different shift. Odd and even eighths alternate: only odd ones have a bit below
    the place on which tininess depends.

    Let p = X 2^w with b bits of precision. In units of 2^w, the lowest place of a subnormal is 2^g, the smallest normal
    number is 2^(b-1+g), and t is the eighths. Then ``A = X + t - 2^(b-1+g)`` has b bits if the field is b - g and X + t
    is a multiple of 2^(b-1). For an odd factor of X, exactly one other factor of b bits makes it a multiple. Where A is
    the larger one, it is ``X - t + 2^(b-1+g)``, and its field is at least 2: the product is a normal number, too.
    """
    b = operand.precision
    top = 1 << b - 1
    for larger, sign in (("product", 1), ("accumulator", -1)):
        for field, eighths in itertools.product(range(1 if sign > 0 else 2, b - 2), _EIGHTHS):
            g = b - field
            t = sign * (eighths << g - 3)
            for x in range(top | 1, 2 * top, 2):
                y = top | -t * pow(x, -1, top) % top
                significand, rest = divmod(x * y + t - sign * (top << g), top)
                if not rest and top <= significand < 2 * top:
                    break
            else:
                raise AssertionError(f"{operand}: no {larger} {eighths} eighths below normal for field {field}")
            factors = factors_of(operand, (x, y), operand.emin + field - 1)
            a = [int(from_parts(operand, 0, field, significand - top)), factors[0] | operand.sign_mask]
            _is_tiny_from_three_eighths(operand, sign, eighths, a, [operand.one, factors[1]])
            yield f"larger_{larger}/exponent_{field}/{eighths}_eighths", a, [operand.one, factors[1]]


def _is_tiny_from_three_eighths(operand: FloatFormat, sign: int, eighths: int, a: list[int], b: list[int]) -> None:
    codes = (np.array(each, np.uint16) for each in (a, b))
    result, flags = dot(*codes, operand=operand, level=2, chunk=None, return_flags=True)
    assert int(result) == operand.min_normal | (operand.sign_mask if sign > 0 else 0), (operand, eighths, a, b)
    assert bool(flags & Flag.UNDERFLOW) == (eighths > 2), (operand, eighths, a, b)
