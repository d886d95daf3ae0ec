"""The order of a sum, from which small terms survive between a large one and its negative (after FPRev).

With 2**high at i and -2**high at j, every small term that is added before the large ones cancel is lost. How many are
lost is the number of terms beneath the node at which i and j meet in the tree of additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator, FusedSum
from golden.arrays.conversion import decode
from golden.formats import FP16, FloatFormat
from golden.identification.probes import BESIDE, LONG, PAIRS, Probe
from golden.rounding import Rounding

__all__ = ["Order", "order_of", "structures"]

_TOTAL = -1
_Sums = dict[tuple[int, int], float]


@dataclass(frozen=True)
class Order:
    """What the probes of order have shown.

    Parameters
    ----------
    lost : dict
        For a pair of places, how many of the first 128 terms are lost between them; empty where rounding hides it.
    period : int
        After how many products the sum begins a new partial sum or block; 1 without any.
    """

    lost: dict[tuple[int, int], int]
    period: int

    def text(self) -> str:
        """Return the order in words."""
        period = self.period
        if period == 1 and not self.lost:
            return "nothing repeats; rounding hides more"
        if period == 1:
            is_chain = all(count == j + 1 for (_, j), count in self.lost.items())
            return f"{'' if is_chain else 'not '}one product after the other, from the first to the last"
        if not self.lost:
            return f"it repeats after {period} products; rounding hides more"
        if period > PAIRS // 2:
            return f"partial sums of {period} products in a sum of {LONG}; other lengths may have others"
        if not all(self._is_of_blocks(*pair) for pair in self.lost):
            return "several partial sums, not of neighbours"
        within = {pair: count for pair, count in self.lost.items() if pair[1] < period}
        if period == 2:
            return "blocks of 2 products"
        blocks = f"blocks of {period} products; within a block, "
        if all(count == j + 1 for (_, j), count in within.items()):
            return f"{blocks}one after the other"
        return blocks + ("all are lost together" if len(set(within.values())) == 1 else "in several steps")

    def _is_of_blocks(self, i: int, j: int) -> bool:
        """Return whether a pair of places is lost with no more than its block, or with more than a block."""
        lost = self.lost[i, j]
        end = (j // self.period + 1) * self.period
        return lost <= end if i // self.period == j // self.period else lost > self.period


def _measured(asked: Sequence[Probe], results: Sequence[NDArray[Any]], kind: str, fmt: FloatFormat) -> _Sums:
    """Return the sum for each pair of places."""
    found: _Sums = {}
    for probe, result in zip(asked, results, strict=True):
        if probe.name == kind:
            values = decode(np.ascontiguousarray(np.diagonal(result)), fmt).astype(np.float64)
            found |= dict(zip(probe.about, values.tolist(), strict=True))
    return found


def order_of(
    asked: Sequence[Probe], results: Sequence[NDArray[Any]], fmt: FloatFormat, units: dict[str, float]
) -> Order | None:
    """Return the order of the sum; None where rounding hides it, or no term is ever lost.

    `units` has the value of a small term for each range of exponents.
    """
    for kind, unit in units.items():
        behind = _measured(asked, results, f"long {kind}", fmt)
        # A term that is lost leaves nothing, or in some modes a unit in the last place of the large one.
        if not all(math.isfinite(value) for value in behind.values()) or unit not in behind.values():
            continue
        survivors = sorted(j + 1 for (_, j), value in behind.items() if value == unit)
        counts = {pair: sum_ / unit for pair, sum_ in _measured(asked, results, f"pairs {kind}", fmt).items()}
        is_clean = all(0 <= count <= PAIRS - 2 and count == int(count) for count in counts.values())
        lost = {pair: PAIRS - int(count) for pair, count in counts.items()} if is_clean else {}
        if set(lost.values()) == {2}:  # only the large ones are gone: every order has this sum
            continue
        return Order(lost, _period(survivors))
    return None


def _period(survivors: list[int]) -> int:
    """Return the period from the places behind -2**high at which a small term survives, with 2**high at place 0."""
    # In a chain that ends, all survive in it, and behind it those with which another one begins.
    head = next(place for place in range(1, LONG) if place + 1 not in survivors)
    if 1 < head < LONG - 1 and [place for place in survivors if place > head] == [*range(2 * head, LONG, head)]:
        return head
    tail = [place for place in survivors if place > LONG // 2]
    if len(tail) > 1:
        return math.gcd(*(later - earlier for earlier, later in pairwise(tail)))
    if len(tail) == 1 < len(survivors):
        return tail[0] - survivors[-2]
    return max(survivors)


Tree = int | list["Tree"]


def _tree(leaves: list[int], lost: Callable[[int, int], int]) -> Tree:
    if len(leaves) == 1:
        return leaves[0]
    most = max(lost(i, j) for at, i in enumerate(leaves) for j in leaves[at + 1 :])
    groups: list[list[int]] = []
    for leaf in leaves:
        near = [group for group in groups if any(lost(*sorted((leaf, other))) < most for other in group)]
        for group in near:
            groups.remove(group)
        groups.append(sorted(sum(near, [leaf])))
    if len(groups) == 1:
        raise ValueError
    return [_tree(group, lost) for group in sorted(groups)]


def _leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for child in tree for leaf in _leaves(child)]


def _shape(tree: Tree) -> Any:
    return 0 if isinstance(tree, int) else tuple(sorted((_shape(child) for child in tree), key=str))


def _stages(tree: Tree) -> tuple[list[int], list[tuple[int, bool]]]:
    """Return the leaves of a subtree in order, and its sums from the products up: how many terms, whether a chain."""
    if isinstance(tree, int):
        return [tree], []
    children = list(tree)
    is_chain = False
    if len({_shape(child) for child in children}) > 1:
        is_chain = True
        spine: Tree = tree
        later: list[Tree] = []
        while not isinstance(spine, int) and len(spine) == 2 and _shape(spine[0]) != _shape(spine[1]):
            spine, last = sorted(spine, key=lambda child: -len(_leaves(child)))
            later.append(last)
        first: list[Tree] = [spine] if isinstance(spine, int) else list(spine)
        children = first + later[::-1]
    parts = [_stages(child) for child in children]
    if any(stages != parts[0][1] for _, stages in parts):
        raise ValueError
    return [leaf for leaves, _ in parts for leaf in leaves], [*parts[0][1], (len(children), is_chain)]


def _joined(tree: Tree) -> tuple[list[Tree], bool]:
    """Return what joins the total, in order, and whether one after the other."""
    spine, joined = tree, []
    while spine != _TOTAL:
        if isinstance(spine, int):
            raise ValueError
        below = [child for child in spine if _TOTAL in _leaves(child)]
        joined.append([child for child in spine if child is not below[0]])
        spine = below[0]
    if len(joined) == 1:
        return joined[0], False
    if any(len(each) != 1 for each in joined):
        raise ValueError
    return [each[0] for each in reversed(joined)], True


def _blocks(period: int) -> Iterable[tuple[int, int | None]]:
    for block in range(min(period, BESIDE), 0, -1):
        if period % block == 0:
            yield block, None if block == period else period


def structures(
    order: Order, out: FloatFormat, blocks: Iterable[tuple[int, int | None]] | None = None
) -> list[Accumulator]:
    """Return accumulators whose sums have this order; how they round is a first guess.

    Parameters
    ----------
    order : Order
    out : FloatFormat
        Format of the results. Where it is float16, the total may be so, too.
    blocks : iterable of (int, int or None), optional
        Lengths of blocks and promotions; without it, all that fit the order's period are tried.
    """
    found = list(_structures(order, _blocks(order.period) if blocks is None else blocks))
    if out != FP16:
        return found
    into_half = [_into_half(rule) for rule in found if rule.promote_every is None]
    return [rule for pair in zip_longest(into_half, found) for rule in pair if rule is not None]


def _into_half(rule: Accumulator) -> Accumulator:
    return replace(rule, join=replace(rule.join, rounding=Rounding.NEAREST_EVEN, result=FP16), nan=FP16.nan)


def _structures(order: Order, blocks: Iterable[tuple[int, int | None]]) -> Iterator[Accumulator]:
    if not order.lost:
        for block, promote in blocks:
            yield from _usual(block, promote)
        return
    for block, promote in blocks:
        second = range(block, 2 * block)

        def lost(i: int, j: int, block: int = block) -> int:
            return order.lost[(0 if i == _TOTAL else block + i), block + j]

        try:
            joined, is_chain = _joined(_tree([_TOTAL, *range(len(second))], lost))
            leaves, stages = _stages(joined if len(joined) > 1 else joined[0])
            if len(joined) > 1:
                stages = stages[:-1]
            made = tuple(_first_guess(terms, chain) for terms, chain in stages)
            join = _first_guess(len(joined) + 1, is_chain, join=True)
            taken = tuple(leaves) if leaves != sorted(leaves) else ()
            yield Accumulator(16, block, join, stages=made, order=taken, promote_every=promote)
            # A sum that is not rounded keeps its exponent and so loses the total, as if it were one sum with it.
            if len(joined) > 1 and not is_chain:
                made += (_first_guess(len(joined), False),)
                yield Accumulator(16, block, FusedSum(2), stages=made, order=taken, promote_every=promote)
        except (ValueError, KeyError, IndexError):  # no tree, or none that stages can form
            continue


def _usual(block: int, promote: int | None) -> Iterable[Accumulator]:
    """Return rules for blocks whose inner order is not known: a chain, one sum, a sum of products, a tree."""
    yield Accumulator(16, block, FusedSum(block + 1, chain=True), promote_every=promote)
    if block > 1:
        pairs = (FusedSum(2),) * (block.bit_length() - 1)
        yield Accumulator(16, block, _first_guess(block + 1, False, join=True), promote_every=promote)
        yield Accumulator(16, block, FusedSum(2), stages=(_first_guess(block, False),), promote_every=promote)
        if 1 << len(pairs) == block:
            yield Accumulator(16, block, FusedSum(2), stages=pairs, promote_every=promote)


def _first_guess(terms: int, is_chain: bool, *, join: bool = False) -> FusedSum:
    if is_chain or terms == 2:
        return FusedSum(terms, chain=is_chain)
    return FusedSum(terms, 24, rounding="toward_zero" if join else None)
