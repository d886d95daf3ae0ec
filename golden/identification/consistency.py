"""The same sums again: in another call, at another place, in products of another shape; and what differs, how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import decode, encode
from golden.formats import FloatFormat
from golden.identification.findings import Finding
from golden.identification.probes import KINDS, Probe, hard_probe

__all__ = ["RANDOM", "SAME", "consistency", "consistency_probes", "shaped_probe"]

_Asked = Sequence[tuple[Probe, NDArray[Any]]]

# Kernels change their order where a product is long, or has a single row or column.
_LENGTHS = (48, 700)
_ROWS, _COLUMNS = 6, 5
_SHAPES = (
    (1, 33, 1), (1, 520, 9), (9, 130, 1), (3, 385, 5), (33, 64, 65), (16, 1030, 16), (2, 4100, 2), (128, 16, 96),
    (4, 40, 300), (300, 40, 4), (1, 64, 520), (150, 130, 160), (128, 520, 128),
    (256, 64, 256), (16, 1024, 16), (8, 2048, 8), (8, 4096, 8),
)  # fmt: skip
_DISTINCT = 8
#: Statements that the probes show, until a further sum shows otherwise.
SAME = (
    "The same call repeats its results.",
    "Equal sums have equal results at every place.",
    "Results do not depend on M and N.",
)
#: Probes with many different sums that are random and hard.
RANDOM = ("whole", "shape")
# Fraction bits of float16, DLFloat and cbfloat16, bfloat16, float32: 1 and a part of the last place, many times.
_PRECISIONS, _PARTS, _SIDE = (10, 9, 7, 23), (0.25, 0.75), 16


def shaped_probe(random: np.random.Generator, operand: FloatFormat, shape: tuple[int, int, int], kind: int) -> Probe:
    """Return hard sums as a product (M, K) by (K, N), in which one factor is harder: its rows, or in half its columns.

    The columns, or rows, of the other factor repeat after eight.
    """
    rows, length, columns = shape
    is_mirrored = bool(random.random() < 0.5)
    if is_mirrored:
        rows, columns = columns, rows
    a = hard_probe(random, operand, (rows, length), kind).a
    own = [hard_probe(random, operand, (1, length), (kind + n) % KINDS).b for n in range(min(columns, _DISTINCT))]
    b = np.concatenate(own, 1)[:, np.arange(columns) % len(own)]
    return Probe("shape", *((np.ascontiguousarray(b.T), np.ascontiguousarray(a.T)) if is_mirrored else (a, b)))


def consistency_probes(operand: FloatFormat, random: np.random.Generator) -> Iterator[Probe]:
    """Return sums that stand at several places, in several shapes, and in two calls."""
    for length in _LENGTHS:
        base = hard_probe(random, operand, (1, length), 1)
        yield Probe("equal", np.repeat(base.a, 24, 0), np.repeat(base.b, 20, 1))
        whole = shaped_probe(random, operand, (_ROWS, length, _COLUMNS), 1)
        yield Probe("whole", whole.a, whole.b, (length,))
        yield Probe("whole again", whole.a, whole.b, (length,))
        for row in range(_ROWS):
            at = slice(row, row + 1)
            yield Probe("part", whole.a[at], whole.b[:, :1], (length, at, slice(0, 1)))
            yield Probe("part", whole.a[at], whole.b, (length, at, slice(None)))
        for column in range(_COLUMNS):
            at = slice(column, column + 1)
            yield Probe("part", whole.a, np.ascontiguousarray(whole.b[:, at]), (length, slice(None), at))
    for bits, part in product(_PRECISIONS, _PARTS):
        exponent = round(np.log2(0.25)) - bits
        if exponent // 2 < operand.emin:
            continue
        terms = [(1.0, 1.0)] + [(2.0 ** (exponent - exponent // 2), 2.0 ** (exponent // 2))] * round(part * 4)
        a, b = (np.array(factors) for factors in zip(*terms, strict=True))
        codes = encode(a, operand), encode(b, operand)
        yield Probe("part of a unit", np.tile(codes[0], (_SIDE, 1)), np.tile(codes[1], (_SIDE, 1)).T, (bits, part))
    for number, shape in enumerate(_SHAPES):
        yield shaped_probe(random, operand, shape, 1 + number % (KINDS - 1))


def _sum_of(probe: Probe, row: int, column: int, result: int, statement: str) -> Finding:
    pairs = zip(probe.a[row].tolist(), probe.b[:, column].tolist(), strict=True)
    return Finding(statement, tuple((x, y) for x, y in pairs if x or y), result)


def consistency(asked: _Asked, out: FloatFormat) -> tuple[list[Finding], bool]:
    """Return the differences between equal sums, and whether there is none."""
    named: dict[str, list[tuple[Probe, NDArray[Any]]]] = {}
    for probe, result in asked:
        named.setdefault(probe.name, []).append((probe, result))
    again = _again(named)
    place = _place(named)
    shape = _shape(named)
    found = [each or Finding(words) for each, words in zip((again, place, shape), SAME, strict=True)]
    parts = named.get("part of a unit", [])  # operands of few bits have no such parts
    chances = [each for each in (_chance(*one, out) for one in parts) if each is not None]
    return [*found, *chances], not (again or place or shape or chances)


def _again(named: dict[str, list[tuple[Probe, NDArray[Any]]]]) -> Finding | None:
    for (probe, first), (_, second) in zip(named["whole"], named["whole again"], strict=True):
        for row, column in np.argwhere(first != second)[:1].tolist():
            return _sum_of(probe, row, column, int(second[row, column]), "Results do not repeat.")
    return None


def _place(named: dict[str, list[tuple[Probe, NDArray[Any]]]]) -> Finding | None:
    for probe, result in named["equal"]:
        values, counts = np.unique(result, return_counts=True)
        if len(values) > 1:
            words = "Results depend on their place."
            return _sum_of(probe, 0, 0, int(values[np.argmin(counts)]), words)
    return None


def _shape(named: dict[str, list[tuple[Probe, NDArray[Any]]]]) -> Finding | None:
    whole = {probe.about[0]: (probe, result) for probe, result in named["whole"]}
    for probe, result in named["part"]:
        length, rows, columns = probe.about
        base, results = whole[length]
        differs = np.argwhere(results[rows, columns] != result)
        for row, column in differs[:1].tolist():
            shape = f"({probe.a.shape[0]}, {length}) by ({length}, {probe.b.shape[1]})"
            other = f"({base.a.shape[0]}, {length}) by ({length}, {base.b.shape[1]})"
            words = f"Results depend on M or N: in a product {shape} a sum has another result than in {other}."
            return _sum_of(probe, row, column, int(result[row, column]), words)
    return None


def _is_scattered(result: NDArray[Any]) -> bool:
    """Return whether equal sums differ as by chance, so that hardly two rows or columns are alike."""
    return all(len(np.unique(result, axis=axis)) > result.shape[axis] // 2 for axis in (0, 1))


def _chance(probe: Probe, result: NDArray[Any], out: FloatFormat) -> Finding | None:
    """Return how often 1 and a part of the last place becomes the next value, if equal sums differ."""
    bits, part = probe.about
    values = decode(np.ascontiguousarray(result), out).astype(np.float64)
    up = float(np.mean(values == 1 + 2.0**-bits))
    if not 0 < up < 1 or not np.isin(values, (1.0, 1 + 2.0**-bits)).all() or not _is_scattered(result):
        return None
    words = f"Rounding is random: 1 + {part} * 2^-{bits} becomes 1 + 2^-{bits} in {up:.1%} of {values.size} equal sums"
    spread = 4 * (part * (1 - part) / values.size) ** 0.5
    kind = ", as stochastic rounding does." if abs(up - part) < spread else ", unlike stochastic rounding."
    return _sum_of(probe, 0, 0, int(result[0, 0]), words + kind)
