"""Chunks up to the largest: all products are zero except for a few, which show where the chunks ended.

Adding a zero changes nothing and raises no flags. The flags, which golden's arrays return a step at a time, therefore
come from the few nonzero products; the results are compared with `golden.dot` on all products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import FP32, FloatFormat, dot, multiply_accumulate
from sim.stimulus.maker import Maker
from sim.stimulus.operands import with_exponents
from sim.stimulus.reductions import Chain, Segment

__all__ = ["long_chains", "long_lengths", "required_long_chunks", "sparse_results"]

#: Products beyond the last whole chunk.
_REST = 5
#: The most reductions to try until all wrong chunk lengths are distinguished.
_DRAWS = 200


def long_lengths(chunk_bits: int, most_bits: int) -> list[int]:
    """Return the chunk lengths around every power of two up to `most_bits`, the largest of the port and no limit."""
    most = min((1 << chunk_bits) - 1, (1 << most_bits) + 1)
    around = {(1 << bit) + nearby for bit in range(most_bits + 1) for nearby in (-1, 0, 1)}
    return [*sorted(length for length in around if 1 <= length <= most), 0]


def _lengths(maker: Maker) -> list[int]:
    return long_lengths(maker.mac.chunk_bits, maker.long_bits) if maker.mac.parameters.has_chunks else []


def required_long_chunks(maker: Maker) -> set[str]:
    """Return the bins that must not be empty: each length distinguished from every wrong one."""
    return {_name(chunk, level) for chunk in _lengths(maker) for level in maker.mac.levels if level}


def long_chains(maker: Maker) -> Iterator[Chain]:
    """Yield reductions of each level and long chunk length, enough to distinguish it from any wrong length."""
    for chunk in _lengths(maker):
        for level in maker.mac.levels:
            if level:
                yield from ([one] for one in _segments(maker, level, chunk))
                maker.bins[_name(chunk, level)] += 1


def _name(chunk: int, level: int) -> str:
    return f"long_chunk/level_{level}/{chunk or 'unlimited'}"


def _segments(maker: Maker, level: int, chunk: int) -> Iterator[Segment]:
    index = int(maker.rng.integers(len(maker.operands)))
    operand = maker.operands[index]
    # Without a limit: enough to overflow the counter, or as many as are simulated.
    end = chunk or 1 << min(maker.mac.chunk_bits, maker.long_bits)
    length = end + _REST
    places = np.unique([0, 1, end // 2, *range(max(end - 4, 0), length)])
    wrong = _wrong_lengths(chunk, end)
    for _ in range(_DRAWS):
        a, b = (with_exponents(operand, maker.rng.integers(-2, 3, len(places)), maker.rng) for _ in range(2))
        results, flags = sparse_results(operand, level, a, b, places, np.array([chunk or length, *wrong]))
        told = results[1:] != results[0]
        if wrong.size and not told.any():
            continue
        zeros, ones = np.zeros(length, np.uint16), np.full(length, operand.one, np.uint16)
        zeros[places], ones[places] = a, b
        whole = int(np.asarray(dot(zeros, ones, operand=operand, level=level, chunk=chunk or None)))
        if whole != results[0]:
            raise AssertionError(
                f"{operand} level {level} chunk {chunk}: {whole:#x} of all, {results[0]:#x} of the few"
            )
        made = Segment(index, level, zeros.tolist(), ones.tolist(), chunk=chunk)
        made.result, made.flags, made.is_known = whole, int(flags[0]), True
        yield made
        wrong = wrong[~told]
        if not wrong.size:
            return
    raise ValueError(f"chunk: got {chunk}, of which {_DRAWS} reductions do not tell where it ends")


def _wrong_lengths(chunk: int, end: int) -> NDArray[np.int64]:
    """Return lengths that a wrong counter would take for this one: one off, or without its upper bits.

    Without them, a power of two is 0, and the whole reduction one chunk.
    """
    lengths = {end - 1, end + 1} | {end % (1 << bit) or end + _REST for bit in range(1, end.bit_length())}
    if not chunk:
        lengths = {end, end - 1, end // 2}
    return np.array(sorted(length for length in lengths if length and length != chunk), np.int64)


def sparse_results(
    operand: FloatFormat, level: int, a: Any, b: Any, places: NDArray[np.int64], chunks: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return results and flags of a reduction with few nonzero products, for each of several chunk lengths.

    Parameters
    ----------
    operand : FloatFormat
    level : int
        1 or 2.
    a, b : arrays of codes
        Factors of the nonzero products.
    places : int array
        Their numbers, ascending.
    chunks : int array
        Chunk lengths, one for each answer.
    """
    outer = FP32 if level == 1 else operand
    total = np.zeros(len(chunks), np.uint32 if level == 1 else np.uint16)
    partial, flags = np.zeros(len(chunks), np.uint16), np.zeros(len(chunks), np.uint8)

    def promote(now: NDArray[np.bool_]) -> None:
        if not now.any():
            return
        sums, raised = multiply_accumulate(
            partial, np.uint16(operand.one), total, operand=operand, accumulator=outer, return_flags=True
        )
        total[now], flags[now] = sums[now], flags[now] | raised[now]
        partial[now] = 0

    current = places[0] // chunks
    for x, y, place in zip(a.astype(np.uint16), b.astype(np.uint16), places.tolist(), strict=True):
        promote(place // chunks != current)
        current = place // chunks
        partial, raised = multiply_accumulate(x, y, partial, operand=operand, accumulator=operand, return_flags=True)
        flags |= raised.astype(np.uint8)
    promote(np.ones(len(chunks), np.bool_))
    return total, flags
