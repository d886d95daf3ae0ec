"""How far a sum of products may lie from the exact one: what every order of its terms keeps.

A sum is a tree of nodes. Node j has the exact value s_j, a sum of some of the terms: its magnitude is at most Q, the
larger of the sum of the positive terms and that of the negative ones. A node makes three errors:

- It cuts its terms. All of them together lose at most c times the power of two at which they are aligned. That power is
  at most the largest magnitude among them, except where a factor is subnormal or zero, or the total is: their exponents
  are above their size. Of such products, Z is the sum of the powers of two; `floor` is that of a small total.
- It rounds the sum by the relative error u.
- It loses at most `least`, where the result is small.

With e for the error before a node, the error after it is at most ``(1 + u)(1 + c)(e + Q) - Q + least + (1 + u) c (Z +
floor)``. The i-th of the nodes, sorted by their distance from the root, has at most i nodes above it. So the error of n
nodes of one kind is at most ``((1 + u)**n (1 + c)**n - 1) Q``, plus ``(1 + u)**n (1 + c)**n`` times the sum of what
came in, what Z adds, and n times ``least + c floor`` (after Higham, Accuracy and Stability of Numerical Algorithms,
section 4.2, where Q is the sum of all magnitudes). Where there are several such sums, their values of Q add up to no
more than the sum S of all magnitudes.

Three rules follow from the range of the formats:

- A sum of terms of one sign is at least the largest power of two in a term, since every rounding and every cut keeps
  that power. Of m terms, the largest is at least S / m, and its power of two at least a quarter of that: a product of
  two significands is below 4. This holds if no product that is subnormal or zero is aligned above it.
- A sum that can pass the largest finite value on the way, in some order, may be infinite. If it can on both sides, it
  may be a NaN.
- In a mode that stops at the largest finite value, a sum that can pass it is only known to lie between the sum of its
  negative terms and that of its positive ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator, FusedSum
from golden.formats import FP32, FloatFormat
from golden.grouped_sums import GroupedSums
from golden.machine import Machine
from golden.reduction import Reduction
from golden.rounding import STAYS_FINITE, Rounding

__all__ = ["SumBounds", "sum_bounds"]

_NEAREST = (Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY)
#: e**600 times the smallest product is beyond every result; more would overflow in float64.
_MOST_GROWTH = 600.0


@dataclass(frozen=True)
class _Sums:
    """Sums of one kind, all of which have the same shape.

    Parameters
    ----------
    groups, nodes, width : int
        How many sums there are; roundings in each; products beneath each.
    largest : float
        The largest finite value of the format that they are rounded to.
    unit, cut, least, floor : float
        u, c, `least` and `floor` of a node.
    stays : tuple of bool
        Whether a positive and a negative sum stop at the largest finite value.
    has_start : bool
        Whether the initial value is one of the terms.
    """

    groups: int
    nodes: int
    width: int
    largest: float = math.inf
    unit: float = 0.0
    cut: float = 0.0
    least: float = 0.0
    floor: float = 0.0
    stays: tuple[bool, bool] = (False, False)
    has_start: bool = False

    @property
    def growth(self) -> float:
        """``(1 + u)**n (1 + c)**n - 1``."""
        return math.expm1(min(self.nodes * (math.log1p(self.unit) + math.log1p(self.cut)), _MOST_GROWTH))


@dataclass(frozen=True)
class SumBounds:
    """The results that some order of the sum may have, element by element.

    Parameters
    ----------
    exact, error : float64 array
        The sum without any rounding, and how far float64 may be from it.
    low, high : float64 array
        The finite results.
    above, below, invalid : bool array
        Whether the result may be infinite, of either sign, or a NaN.
    """

    exact: NDArray[Any]
    error: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    above: NDArray[Any]
    below: NDArray[Any]
    invalid: NDArray[Any]

    def hold(self, results: Any, out: FloatFormat) -> NDArray[Any]:
        """Tell which results, as values of the format `out`, are within their bounds."""
        within = (self.low <= results) & (results <= self.high)
        if out.has_inf:
            infinite = (self.above & (results == np.inf)) | (self.below & (results == -np.inf))
            return within | infinite | (self.invalid & np.isnan(results))
        if out.has_nan:
            return within | ((self.above | self.below | self.invalid) & ~np.isfinite(results))
        largest = _largest(out)
        stopped = (self.above & (results == largest)) | (self.below & (results == -largest))
        return within | stopped | (self.invalid & (results == 0))

    @property
    def differ_from_zero(self) -> NDArray[Any]:
        """Whether the exact sum is finite and not 0."""
        return np.isfinite(self.exact) & (np.abs(self.exact) > self.error)


def sum_bounds(
    a: NDArray[Any], b: NDArray[Any], start: NDArray[Any], *, model: Reduction | Machine, operand: FloatFormat
) -> SumBounds:
    """Return the bounds of a product of matrices.

    Parameters
    ----------
    a, b, start : float64 array
        The factors of shape (..., M, K) and (..., K, N), and what the sums begin with: 0 for nothing.
    model : Reduction or Accumulator
    operand : FloatFormat
        Format of the factors.
    """
    rule = _machine(model)
    if _flushes(model, rule):
        a, b = _flushed(a, operand), _flushed(b, operand)
        if not (isinstance(rule, Accumulator) and rule.promote_every):
            start = _flushed(start, model.outer)
    with np.errstate(all="ignore"):
        return _bounds(a, b, start, list(_kinds(model, a.shape[-1])), _alignments(a, b, rule, operand))


def _bounds(a: Any, b: Any, start: Any, kinds: list[_Sums], hidden: Any) -> SumBounds:
    exact = a @ b + start
    special = ~np.isfinite(a).all(-1)[..., :, None] | ~np.isfinite(b).all(-2)[..., None, :] | ~np.isfinite(start)
    a, b, start = (np.where(np.isfinite(each), each, 0.0) for each in (a, b, start))
    # The error of float64 itself: of sums of K products, and of the few operations below.
    spare = (a.shape[-1] + 16) * 2.0**-52
    products, sizes = a @ b, (np.abs(a) @ np.abs(b)) * (1 + spare)
    most = np.abs(a).max(-1, initial=0.0)[..., :, None] * np.abs(b).max(-2, initial=0.0)[..., None, :]
    value, all_sizes = products + start, sizes + np.abs(start) * (1 + spare)
    slack = all_sizes * spare

    error, stopped, above, below = np.zeros(exact.shape), *(np.zeros(exact.shape, bool) for _ in range(3))
    for sums in kinds:
        total, middle, begin = (all_sizes, value, start) if sums.has_start else (sizes, products, 0.0)
        limit = sums.width * most + np.abs(begin)
        up, down = (np.minimum((total + sign * middle) / 2, limit) for sign in (1, -1))
        mass = np.minimum(total, sums.groups * np.maximum(up, down))
        small = sums.groups * sums.nodes * (sums.least + sums.cut * sums.floor) + sums.cut * hidden
        error = (1 + sums.growth) * (error + small) + sums.growth * mass
        is_last = sums is kinds[-1] and sums.groups * sums.nodes == 1
        if is_last:  # its result is the only sum: only that may be too large
            up, down = (np.where(stopped, side, sign * middle) for side, sign in ((up, 1), (down, -1)))
        too_large, too_low = (side + error + slack > sums.largest for side in (up, down))
        above, below = above | (too_large & (not sums.stays[0])), below | (too_low & (not sums.stays[1]))
        if not is_last:
            stopped = stopped | (too_large & sums.stays[0]) | (too_low & sums.stays[1])

    error = error * (1 + 2.0**-40) + slack
    low, high = np.where(stopped, -down, value) - error, np.where(stopped, up, value) + error
    least = _least_of_one_sign(all_sizes, a.shape[-1] + 1, kinds, hidden)
    low = np.where(_are_of_sign(a, b, start, 1), np.maximum(low, least), low)
    high = np.where(_are_of_sign(a, b, start, -1), np.minimum(high, -least), high)
    if kinds[-1].stays[0]:
        low = np.minimum(low, kinds[-1].largest)
    if kinds[-1].stays[1]:
        high = np.maximum(high, -kinds[-1].largest)
    # With infinities and NaNs among the operands, a result has their class, unless the other terms can pass the range.
    return SumBounds(
        exact=exact,
        error=slack,
        low=np.where(special, np.inf, low),
        high=np.where(special, -np.inf, high),
        above=np.where(special, exact == np.inf, above),
        below=np.where(special, exact == -np.inf, below),
        invalid=np.where(special, np.isnan(exact) | ((exact > 0) & below) | ((exact < 0) & above), above & below),
    )


def _are_of_sign(a: Any, b: Any, start: Any, sign: int) -> Any:
    """Tell in which elements no term is of the other sign; float64 counts terms exactly."""
    signs_a, signs_b = np.sign(a), np.sign(b)
    count = np.abs(signs_a) @ np.abs(signs_b)
    return (sign * (signs_a @ signs_b) == count) & (sign * start >= 0)


def _least_of_one_sign(sizes: Any, terms: int, kinds: list[_Sums], hidden: Any) -> Any:
    """Return the least magnitude of a sum of terms of one sign."""
    power = sizes * (1 - 2.0**-20) / (4 * terms)  # less what `spare` added
    is_held = np.ones(sizes.shape, bool)
    for sums in kinds:
        is_held &= power >= sums.least
        if sums.cut:
            is_held &= power >= np.maximum(hidden, sums.floor)
    return np.where(is_held, np.minimum(power, min((sums.largest for sums in kinds), default=math.inf)), 0.0)


def _alignments(a: Any, b: Any, rule: Machine | None, operand: FloatFormat) -> Any:
    """Return Z: the powers of two at which products with a subnormal factor or a zero are aligned, added up."""
    if not isinstance(rule, Accumulator):
        return 0.0
    of_zero = 0.0 if rule.zero_exponent is None else 2.0**rule.zero_exponent
    (x, hidden_x), (y, hidden_y) = (_scales(each, operand, of_zero) for each in (a, b))
    hidden = (x * hidden_x) @ y + x @ (y * hidden_y)
    if a.shape[-1] % rule.block:  # the last block is filled with products of zeros
        hidden = hidden + of_zero**2
    return hidden


def _scales(values: Any, operand: FloatFormat, of_zero: float) -> tuple[Any, Any]:
    """Return the powers of two at which factors are aligned, and which factors are smaller."""
    values = np.abs(np.where(np.isfinite(values), values, 0.0))
    smallest = 2.0**operand.emin
    scales = np.maximum(np.ldexp(0.5, np.frexp(values)[1]), smallest)
    return np.where(values == 0, of_zero, scales), values < smallest


def _machine(model: Reduction | Machine) -> Machine | None:
    return model.accumulator if isinstance(model, Reduction) else model


def _flushes(model: Reduction | Machine, rule: Machine | None) -> bool:
    if isinstance(rule, Accumulator):
        return rule.flush != "none"
    return isinstance(model, Reduction) and model.flushes


def _flushed(values: Any, fmt: FloatFormat) -> Any:
    return np.where(np.abs(values) < fmt.smallest_normal, 0.0, values)


def _largest(fmt: FloatFormat) -> float:
    top = fmt.max_finite & ((1 << fmt.fraction_bits) - 1)
    return math.ldexp(1 + top * 2.0**-fmt.fraction_bits, fmt.emax)


def _rounded(sums: _Sums, fmt: FloatFormat, mode: Rounding, *, flushes: bool = False) -> _Sums:
    """Return sums of which each node is rounded to a format."""
    has_least = fmt.subnormals and not flushes
    return replace(
        sums,
        unit=2.0 ** -(fmt.fraction_bits + (mode in _NEAREST)),
        least=2.0 ** (fmt.emin - fmt.fraction_bits) if has_least else fmt.smallest_normal,
        largest=_largest(fmt),
        stays=STAYS_FINITE[mode],
    )


def _kinds(model: Reduction | Machine, length: int) -> Iterator[_Sums]:
    """Yield the sums of `length` products, in the order in which they are made."""
    rule = _machine(model)
    mode = model.rounding if isinstance(model, Reduction) else Rounding.NEAREST_EVEN
    if isinstance(rule, GroupedSums):
        yield from _of_groups(rule, length, mode)
    elif isinstance(rule, Accumulator):
        yield from _of_accumulator(rule, length)
    elif rule is not None:
        raise TypeError(f"model: got the accumulator {rule!r}, must be an Accumulator or a GroupedSums")
    elif isinstance(model, Reduction):
        chunk = length if model.chunk is None else min(length, model.chunk)
        chunks = -(-length // chunk) if chunk else 0
        within = _Sums(chunks, chunk, chunk, has_start=model.is_chain)
        yield _rounded(within, model.inner, mode, flushes=model.flushes)
        if not model.is_chain:
            yield _rounded(_Sums(1, chunks, length, has_start=True), model.outer, mode, flushes=model.flushes)
    if isinstance(model, Reduction) and model.out is not None and model.out != model.outer:
        last = _Sums(1, 1, length, has_start=True)
        yield _rounded(last, model.out, model.out_rounding, flushes=model.flushes)


def _of_groups(rule: GroupedSums, length: int, mode: Rounding) -> Iterator[_Sums]:
    groups = -(-length // rule.group)
    if rule.rnd != "xct":
        yield _rounded(_Sums(groups, 1, rule.group), rule.total, mode if rule.rnd == "frm" else Rounding.TO_ODD)
    yield _rounded(_Sums(1, groups, length, has_start=True), rule.total, mode)


def _of_accumulator(rule: Accumulator, length: int) -> Iterator[_Sums]:
    blocks, width = -(-length // rule.block), 1
    left = rule.block
    if rule.products_overflow:
        yield _Sums(length, 1, 1, largest=_largest(FP32))
    for stage in rule.stages:
        left //= stage.terms
        width *= stage.terms
        sums = _Sums(blocks * left, stage.terms if stage.chain else 1, width)
        yield _fused(sums, stage, rule, _cut(stage, stage.terms))
    join, every = rule.join, rule.promote_every
    partials = 1 if every is None else -(-length // every)
    most = length if every is None else min(length, every)
    nodes = -(-most // rule.block) * (left if join.chain else 1)
    sums = _Sums(partials, nodes, most, has_start=every is None)
    yield _fused(sums, join, rule, _cut(join, left) + _cut_of_total(rule))
    if every is not None:
        yield _rounded(_Sums(1, partials, length, has_start=True), FP32, Rounding.NEAREST_EVEN)


def _cut(spec: FusedSum, terms: int) -> float:
    return 0.0 if spec.fraction_bits is None else terms * 2.0**-spec.fraction_bits


def _cut_of_total(rule: Accumulator) -> float:
    if rule.join.fraction_bits is None:
        return 0.0
    cut = 2.0 ** -(rule.total_fraction_bits or rule.join.fraction_bits)
    # A total that is dropped is below the power of two of the alignment by more than this.
    return cut if rule.total_reach is None else max(cut, 2.0**-rule.total_reach)


def _fused(sums: _Sums, spec: FusedSum, rule: Accumulator, cut: float) -> _Sums:
    floor = max(2.0**rule.outer.emin, 2.0**rule.zero_total_exponent)
    sums = replace(sums, cut=cut, floor=floor)
    if spec.rounding is None:
        return sums
    rounded = _rounded(sums, spec.result, spec.rounding, flushes=rule.flush != "none")
    return replace(rounded, stays=(False, False))  # its overflow is infinite in every mode
