"""The matrix products that a device is asked for: how sums are ordered, and how hard sums are rounded.

All probes are fixed by the operand format and a seed, so that they can be written to a file and run elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import encode
from golden.formats import FloatFormat

__all__ = ["BESIDE", "KINDS", "LONG", "PAIRS", "Probe", "Terms", "hard_probe", "probes", "ranges", "units"]

#: Products of a sum whose order is found pair by pair, and how far apart the two of a pair are at most.
PAIRS, BESIDE = 128, 64
#: Products of a sum in which chunks and promotions are found.
LONG = 544

# Sums that differ are columns and rows of one product: only its diagonal counts, so a block is small.
_BLOCK = 16
#: Kinds of hard sums, by their second factor.
KINDS = 5
_HARD_LENGTHS = (1, 2, 3, 5, 8, 16, 17, 33, 64, 130, 300)


@dataclass(frozen=True, eq=False)
class Probe:
    """One matrix product.

    Parameters
    ----------
    name : str
        The kind of the probe.
    a, b : arrays of shape (M, K) and (K, N)
        Codes of the factors.
    about : tuple
        What the results mean: the places of large terms, row by row.
    initial : array of shape (M, N), optional
        Codes to which the products are added; +0 unless given.
    """

    name: str
    a: NDArray[Any]
    b: NDArray[Any]
    about: tuple[Any, ...] = ()
    initial: NDArray[Any] | None = None


def _split(exponent: int) -> tuple[int, int]:
    half = exponent // 2
    return exponent - half, half


class Terms:
    """Factors whose products are 2**high, -2**high and 2**low."""

    def __init__(self, operand: FloatFormat, high: int, low: int) -> None:
        self.large = encode([2.0**each for each in _split(high)], operand)
        self.small = encode([2.0**each for each in _split(low)], operand)
        self.minus = operand.sign_mask

    def sums(self, length: int, places: list[tuple[int, int]], small: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return one sum for each pair of places, 2**high at the first and -2**high at the second."""
        a = np.zeros((len(places), length), self.large.dtype)
        b = np.zeros_like(a)
        for row, (plus, minus) in enumerate(places):
            at = small(plus, minus)
            a[row, at], b[row, at] = self.small
            a[row, [plus, minus]], b[row, [plus, minus]] = self.large
            a[row, minus] |= self.minus
        return a, b


def _blocks(name: str, a: NDArray[Any], b: NDArray[Any], places: list[tuple[int, int]]) -> Iterator[Probe]:
    for at in range(0, len(a), _BLOCK):
        rows = slice(at, at + _BLOCK)
        yield Probe(name, a[rows], np.ascontiguousarray(b[rows].T), tuple(places[rows]))


def ranges(operand: FloatFormat) -> dict[str, tuple[int, int]]:
    """Return exponents of a large and a small product: as far apart as the format allows, and as float16 does."""
    lowest = operand.emin if operand.width > 8 else operand.emin - operand.fraction_bits
    top = operand.emax if operand.width > 8 else operand.emax - 1
    wide = min(60, 2 * top - 2), max(-60, 2 * lowest)
    narrow = min(15, wide[0]), max(-14 if operand.width > 8 else -18, wide[1])
    return {"wide": wide, "narrow": narrow}


def units(operand: FloatFormat) -> dict[str, float]:
    """Return the small product of each range of exponents."""
    return {kind: 2.0**low for kind, (_, low) in ranges(operand).items()}


def _order_probes(operand: FloatFormat) -> Iterator[Probe]:
    pairs = [(i, j) for i in range(PAIRS) for j in range(i + 1, PAIRS) if j - i < BESIDE or i == 0]
    behind = [(0, j) for j in range(1, LONG - 1)]
    for kind, (high, low) in ranges(operand).items():
        terms = Terms(operand, high, low)
        everywhere = terms.sums(PAIRS, pairs, lambda *_: slice(None))
        yield from _blocks(f"pairs {kind}", *everywhere, pairs)
        next_one = terms.sums(LONG, behind, lambda _, minus: minus + 1)
        yield from _blocks(f"long {kind}", *next_one, behind)


def _fractions(random: np.random.Generator, operand: FloatFormat, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return fractions that are random, of few bits, all ones or 0."""
    bits = operand.fraction_bits
    any_bits = random.integers(0, 1 << bits, shape)
    few = (1 << random.integers(0, bits, shape)) & ((1 << bits) - 1)
    kinds = [any_bits, few, np.full(shape, (1 << bits) - 1), np.zeros(shape, np.int64), any_bits]
    chosen = random.integers(0, len(kinds), (shape[0],) + (1,) * (len(shape) - 1))
    return np.choose(chosen, kinds)


def _row_of(random: np.random.Generator, values: list[Any], rows: int) -> NDArray[Any]:
    return np.array(values)[random.integers(0, len(values), rows)][:, None]


def hard_probe(random: np.random.Generator, operand: FloatFormat, shape: tuple[int, int], kind: int) -> Probe:
    """Return sums that are hard to round: cancellation, ties, carries, small terms beside large ones, subnormals.

    Every row has a range of exponents and a kind of fraction of its own. `kind` chooses the other factor: ones, random
    fractions, or fractions with random exponents: around 0, near the smallest, or near the largest of the format. These
    have random signs in half of the products. Zeros, infinities and NaNs are among the rows alone: see `shaped_probe`.
    """
    rows, length = shape
    lowest = operand.emin - operand.fraction_bits
    spread = _row_of(random, [0, 1, 3, 6, 10, 14, 24, 26, 40, 64, 256], rows)
    top = random.integers(lowest, operand.emax + 1, (rows, 1))
    near_one = random.random((rows, 1)) < 0.6
    top = np.where(near_one, random.integers(-2, 4, (rows, 1)) + np.minimum(spread // 2, 12), top)
    exponents = np.clip(top - random.integers(0, spread + 1, (rows, length)), lowest, operand.emax)
    significands = 1 + _fractions(random, operand, shape) / 2.0**operand.fraction_bits
    signs = random.random(shape) < _row_of(random, [0.0, 0.5, 0.5, 1.0], rows)
    values = np.ldexp(np.where(signs, -significands, significands), exponents)
    a = encode(values, operand, overflow="saturate")
    a = np.where(random.random(shape) < _row_of(random, [0.0, 0.0, 0.3, 0.8], rows), a & operand.sign_mask, a)
    # A code that is the negative of an earlier one cancels it where the other factors are equal.
    undone = random.random(rows) < 0.5
    for row in np.nonzero(undone & (length > 1))[0]:
        count = int(random.integers(1, length // 2 + 1))
        places = random.permutation(length)[: 2 * count]
        a[row, places[count:]] = a[row, places[:count]] ^ operand.sign_mask
    if operand.has_nan or operand.has_inf:
        special = random.random(shape) < np.where(random.random((rows, 1)) < 0.03, 0.1, 0.0)
        codes = [operand.nan] * operand.has_nan
        codes += [operand.inf, operand.inf | operand.sign_mask] if operand.has_inf else []
        a = np.where(special, np.array(codes)[random.integers(0, len(codes), shape)], a)
    b = np.full((1, length), 1.0)
    if kind:
        b = 1 + _fractions(random, operand, (1, length)) / 2.0**operand.fraction_bits
        b = np.where(random.random(b.shape) < random.choice([0.0, 0.5]), -b, b)
    if kind >= 2:
        reach = min(12, operand.emax // 2)
        ends = [(-reach, reach + 1), (lowest, operand.emin + 4), (operand.emax - 3, operand.emax + 1)]
        b = np.ldexp(b, random.integers(*ends[kind - 2], (1, length)))
        b[:, length // 2 :] = b[:, : length - length // 2]
    if operand.specials == "fnuz":  # its code of -0 is the NaN
        a = np.where(a == operand.sign_mask, 0, a) if not operand.has_negative_zero else a
    dtype = encode([0.0], operand).dtype
    return Probe("hard", a.astype(dtype), encode(b, operand, overflow="saturate").reshape(length, 1))


def _lowest_probes(operand: FloatFormat) -> Iterator[Probe]:
    """Yield sums 2**-145 - 2**low far below float32's smallest normal value, where the operands have such products.

    They show where a machine aligns its terms if the total is 0: few random sums depend on that.
    """
    factor, lows = -70, np.arange(-180, -149)
    if lows[0] - factor >= operand.emin:
        values = np.stack([np.full(len(lows), 2.0 ** (-145 - factor)), -np.ldexp(1.0, lows - factor)], axis=1)
        yield Probe("hard", encode(values, operand), encode(np.full((2, 1), 2.0**factor), operand))


def probes(operand: FloatFormat, seed: int, rows: int = 256) -> list[Probe]:
    """Return the probes of order, and hard sums."""
    random = np.random.default_rng([seed, 0x1DE7])
    found = list(_order_probes(operand))
    found += [hard_probe(random, operand, (rows, length), kind) for length in _HARD_LENGTHS for kind in range(KINDS)]
    return found + list(_lowest_probes(operand))
