"""The tree of a sum in every rounding, from single small terms that survive between a large one and its negative.

A sum has three terms: 2**high at one place, -2**high at another, and a small one at a third. Only where the small one
is added behind the node at which the large ones meet is it the result, whatever rounding leaves of it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator
from golden.arrays.conversion import decode
from golden.formats import FloatFormat
from golden.identification.order import Order, structures
from golden.identification.probes import BESIDE, Probe, Terms, ranges

__all__ = ["dissected"]

_SEEN = 2 * BESIDE
#: A promotion is looked for behind this place, and at most so many places further.
_FAR, _FURTHEST = 1024, 1100
#: Exponents between a large and a small term, at least: a sum of float32 loses the small one.
_APART = 26
#: The exponent of a large term, at most.
_HIGHEST = 60

_Product = Callable[[Probe], NDArray[Any]]


class _Survivors:
    """Asks a device which small terms survive between two large ones."""

    def __init__(self, product: _Product, operand: FloatFormat, out: FloatFormat) -> None:
        self.product, self.operand, self.out = product, operand, out
        # A format of few exponents has no other room for a small term that is no product of subnormal factors, and a
        # total of few exponents none for a larger one.
        high, low = min(_HIGHEST, 2 * operand.emax, out.emax), ranges(operand)["wide"][1]
        # Some devices flush subnormal factors, or align terms at zeros.
        for least in (low, *range(max(low, 2 * operand.emin), high - _APART, 4)):
            self.terms, self.unit = Terms(operand, high, least), 2.0**least
            self.survives = not self.lost(0, 0, np.array([1]), 2)[0]
            if self.survives:
                break

    def lost(self, plus: int, minus: int, at: NDArray[Any], length: int) -> NDArray[np.bool_]:
        """Return for each of these places whether a small term there is lost; the large terms count as lost.

        If both large terms have the same place, there are none.
        """
        terms = self.terms
        a, b = np.zeros((1, length), terms.large.dtype), np.zeros((length, at.size), terms.large.dtype)
        a[0, at], b[at, range(at.size)] = terms.small
        if plus != minus:
            a[0, [plus, minus]], b[[plus, minus]] = terms.large[0], terms.large[1]
            a[0, minus] |= terms.minus
        sums = decode(self.product(Probe("survivors", a, b))[0], self.out).astype(np.float64)
        is_lost: NDArray[np.bool_] = (sums != self.unit) | (at == plus) | (at == minus)
        return is_lost

    def beside(self, plus: int, minus: int) -> int:
        """Return the last place at which a small term is lost, of `_SEEN` from the second large term on."""
        at = np.arange(minus, minus + _SEEN)
        return int(at[self.lost(plus, minus, at, minus + _SEEN + 1)].max())

    def reach(self, plus: int, minus: int) -> int:
        """Return the last place at which a small term is lost."""
        last = self.beside(plus, minus)
        if last < minus + BESIDE:
            return last
        low, high = last, minus + _FURTHEST
        while low < high:  # all places up to a promotion are lost
            middle = (low + high + 1) // 2
            is_lost = self.lost(plus, minus, np.array([middle]), middle + 1)[0]
            low, high = (middle, high) if is_lost else (low, middle - 1)
        return low


def dissected(product: _Product, operand: FloatFormat, out: FloatFormat) -> Iterator[Accumulator]:
    """Yield accumulators with the order of a device's sums; how they round is a first guess.

    Parameters
    ----------
    product : callable
        Returns the codes of a probe's product.
    operand, out : FloatFormat
        Formats of factors and results.
    """
    asked = _Survivors(product, operand, out)
    if not asked.survives:
        return
    reach = [0] + [asked.beside(0, minus) for minus in range(1, _SEEN)]
    ends = np.maximum.accumulate(reach) == np.arange(_SEEN)
    for promote in _promotions(asked):
        within = _SEEN if promote is None else min(_SEEN, promote)
        for block in range(1, BESIDE + 1):
            if promote is not None and promote % block:
                continue
            if ends[block - 1 : within : block][block == 1 :].all():
                found = structures(Order(_pairs(asked, block), block), out, [(block, promote)])
                yield from found
                if found:  # longer blocks only repeat this one
                    break


def _promotions(asked: _Survivors) -> list[int | None]:
    """Return after how many products the total may join an outer sum; None stands for never."""
    end = asked.reach(0, _FAR)
    period = asked.reach(0, end + 1) - end
    return [None, period] if period <= BESIDE else [period]


def _pairs(asked: _Survivors, block: int) -> dict[tuple[int, int], int]:
    """Return how many small terms of two blocks are lost, for all pairs in the second and the first term of all."""
    at = np.arange(2 * block)
    second = range(block, 2 * block)
    pairs = [(0, j) for j in second] + [(i, j) for i in second for j in second if i < j]
    return {pair: int(asked.lost(*pair, at, 2 * block).sum()) for pair in pairs}
