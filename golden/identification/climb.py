"""Accumulators from the tree of a sum: every part is improved by how far results are from the device's.

The share of equal results does not tell which of two wrong rules is nearer to the right one. Their distance does, above
all in sums of a few terms that meet at one node of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator, FusedSum
from golden.arrays.conversion import encode
from golden.formats import FloatFormat
from golden.identification.device import Device
from golden.identification.fit import Candidate, Examples, nearest, operand_bits, variations
from golden.identification.probes import Probe
from golden.identification.survivors import dissected
from golden.kernels.accumulators import serves

__all__ = ["Search", "sparse_probe"]

_PROBES, _ROWS, _BLOCKS = 4, 32, 3
_CHANGES, _ROUNDS, _FAILING = 24, 16, 24
_SPREADS = (0, 1, 2, 4, 8, 12, 16, 24, 32)
#: The part of a difference in the distance, whatever its size; the rest grows with its bits.
_UNEQUAL = 0.25


class _Near(Examples):
    """Examples whose share is nearer to 1 the nearer the results are."""

    def distances(self, given: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any]:
        """Return 0 for equal codes, up to 1 for those that are far apart."""
        ranks = []
        for codes in (given, wanted):
            magnitude = (codes & (self.out.sign_mask - 1)).astype(np.int64)
            ranks.append(np.where(codes & self.out.sign_mask, -magnitude, magnitude))
        bits = np.log2(1.0 + np.abs(ranks[0] - ranks[1])) / self.out.width
        return np.where(given == wanted, 0.0, _UNEQUAL + (1 - _UNEQUAL) * bits)


def sparse_probe(
    random: np.random.Generator, operand: FloatFormat, rule: Accumulator, sizes: Sequence[int], blocks: int
) -> Probe:
    """Return sums of few terms: beneath one node of a rule's tree and, with several blocks, in others."""
    order = np.array(rule.order or range(rule.block))
    length = blocks * rule.block
    present = np.zeros((_ROWS, length), bool)
    a = np.zeros((_ROWS, length))
    for row in range(_ROWS):
        size = int(random.choice(sizes))
        start = int(random.integers(rule.block // size)) * size
        beneath = order[start : start + size] + rule.block * int(random.integers(blocks))
        places = random.permutation(beneath)[: int(random.choice([1, 2, 3, size]))]
        if blocks > 1 and random.random() < 0.4:
            places = np.concatenate([places, random.integers(0, length, int(random.choice([1, 2, 5])))])
        present[row, places] = True
        a[row] = _values(random, operand, length)
        # Every second sum has a term and its negative.
        if random.random() < 0.5 and len(places) > 1:
            a[row, places[0]] = -a[row, places[1]]
    columns = np.stack(
        [
            np.ones(length),
            np.full(length, _values(random, operand, 1)[0]),
            np.abs(_values(random, operand, length, 0)),
            np.exp2(random.integers(-3, 4, length)),
        ],
        axis=1,
    )
    codes = encode(np.where(present, a, 0.0), operand, overflow="saturate")
    return Probe("sparse", codes, encode(columns, operand, overflow="saturate"))


def _values(
    random: np.random.Generator, operand: FloatFormat, count: int, spread: int | None = None
) -> NDArray[np.float64]:
    spread = int(random.choice(_SPREADS)) if spread is None else spread
    low, high = (max(operand.emin, -(spread + 1) // 2), min(operand.emax - 1, spread // 2))
    fractions = random.integers(0, 1 << operand.fraction_bits, count)
    if random.random() < 0.3:
        fractions &= 1 << (operand.fraction_bits - 1)
    significands = 1 + fractions / 2.0**operand.fraction_bits
    values = np.ldexp(significands, random.integers(low, high + 1, count))
    return np.where(random.random(count) < 0.5, -values, values)


def _steepest(near: _Near, start: Candidate) -> Candidate:
    """Improve a rule by the one change of a part that helps most, again and again."""
    best = start
    for _ in range(_CHANGES):
        for joint in (False, True):
            before = best
            for group in variations(before.model, joint):  # type: ignore[arg-type]  # starts are accumulators
                best = nearest(near, group, best)
                if best.share == 1.0:
                    return best
            if best.share > before.share:
                break
        else:
            return best
    return best


def _completed(examples: Examples, start: Accumulator) -> Candidate:
    """Improve a rule on the examples that it fails, until it computes them all or no change helps."""
    found, failing = Candidate(start, 0.0), _Near([], [], examples.operand, examples.out)
    for _ in range(_ROUNDS):
        more = examples.failing(found.model, rows=_FAILING)
        if not more.asked:
            return Candidate(found.model, 1.0)
        failing = failing.joined(more)
        found = _steepest(failing, Candidate(found.model, failing.share(found.model)))
        if found.share < 1.0:
            break
    return Candidate(found.model, examples.share(found.model))


class Search:
    """The search for one device's accumulator; later calls go on from the rule found before.

    Parameters
    ----------
    device : Device
        Is asked for the tree of its sums, and for sums of few terms.
    operand, out : FloatFormat
        Formats of factors and results.
    """

    def __init__(self, device: Device, operand: FloatFormat, out: FloatFormat) -> None:
        self.device, self.operand, self.out = device, operand, out
        self._known: list[Accumulator] | None = None

    def found(self, examples: Examples) -> Candidate | None:
        """Return the accumulator that computes most of the examples, or None where none computes sums of few terms."""
        if self._known is None:
            trees = dissected(self.device.product, self.operand, self.out)
            rules = (replace(tree, operand_bits=operand_bits(examples)) for tree in trees)
            starts: Iterable[Accumulator] = filter(None, map(self._climbed_or_wider, rules))
        else:
            starts = self._known
        best: Candidate | None = None
        for start in starts:
            found = _completed(examples, start)
            if found.share < 1.0:  # a part that single terms and few do not show
                wider = [_completed(examples, each) for each in _with_stages(start)]
                found = max(found, *wider, key=lambda each: each.share) if wider else found
            if best is None or found.share > best.share:
                best = found
            if best.share == 1.0:
                break
        self._known = [] if best is None else [best.model]  # type: ignore[list-item]  # starts are accumulators
        return best

    def _climbed_or_wider(self, rule: Accumulator) -> Accumulator | None:
        """Improve a rule, or if that fails the rule with more stages."""
        return next(filter(None, map(self._climbed, [rule, *_with_stages(rule)])), None)

    def _climbed(self, rule: Accumulator) -> Accumulator | None:
        """Improve a rule on single terms, then on sums within a block from the inner nodes on, then on any."""
        sizes = list(dict.fromkeys(accumulate((stage.terms for stage in rule.stages), mul, initial=1)))
        sizes = sizes if sizes[-1] == rule.block else [*sizes, rule.block]
        found = Candidate(rule, 0.0)
        for level in range(len(sizes) + 1):
            near = self._asked(rule, sizes[: level + 1], 1 if level < len(sizes) else _BLOCKS)
            found = _steepest(near, Candidate(found.model, near.share(found.model)))
            if found.share < 1.0:
                return None
        return found.model  # type: ignore[return-value]

    def _asked(self, rule: Accumulator, sizes: Sequence[int], blocks: int) -> _Near:
        random = np.random.default_rng([len(sizes), blocks])
        asked = [sparse_probe(random, self.operand, rule, sizes, blocks) for _ in range(_PROBES)]
        return _Near(asked, [self.device.product(each) for each in asked], self.operand, self.out)


def _with_stages(rule: Accumulator) -> list[Accumulator]:
    """Return a rule with a stage of single terms before, between and behind its stages; each keeps 40 bits of them.

    There is none where kernels do not serve so many stages: NumPy takes a hundred times as long.
    """
    one = FusedSum(1, 40, rounding=None)
    stages = [one, *(each for stage in rule.stages for each in (stage, one))]
    wider = replace(rule, stages=tuple(stages))
    return [wider] if serves(wider) else []
