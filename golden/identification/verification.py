"""A model is judged on new sums: alone in their row, in products of many shapes, and with initial values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.identification.consistency import shaped_probe
from golden.identification.device import Device
from golden.identification.findings import Finding
from golden.identification.fit import Examples
from golden.identification.probes import KINDS, Probe, hard_probe
from golden.identification.start import start_probe

__all__ = ["LENGTHS", "Difference", "difference", "verified"]

#: Products of a sum that stands alone in its row.
LENGTHS = (1, 2, 3, 4, 7, 16, 31, 32, 33, 48, 64, 96, 129, 200, 520)
# Rows of a product: few where few sums are asked for, so that these are of all kinds and lengths.
_FEWEST_ROWS, _MOST_ROWS = 64, 2048
_TURNS = 4 * KINDS * len(LENGTHS)
# M and N, and lengths for them; a product has at most so many factors, and so many steps.
_PLACES = (
    (1, 1), (1, 64), (64, 1), (2, 3), (7, 5), (16, 16), (33, 17), (64, 64), (256, 9), (12, 200), (1, 520), (128, 128),
    (130, 200), (256, 256),
)  # fmt: skip
_LONG = (1, 5, 16, 64, 130, 256, 384, 385, 512, 520, 1024, 1030, 2048, 2049, 4096, 4100)
_STEPS, _STEPS_OF_LARGE, _LARGE = 2_400_000, 17_000_000, 128
# A product has at most this share of all sums, unless it is a small one.
_SHARE, _SMALL = 15, 64 * 64


@dataclass(frozen=True)
class Difference:
    """A sum that the model computes otherwise.

    Parameters
    ----------
    probe : Probe
        A product with one row and one column.
    result : int
        The device's result of it.
    finding : Finding or None
        Says so where the device gives the sum by itself another result than in the product.
    """

    probe: Probe
    result: int
    finding: Finding | None = None


def verified(
    model: Any, examples: Examples, device: Device, *, seed: int, verify: int, say: Callable[[str], None]
) -> tuple[int, Difference | None]:
    """Return how many new sums are equal, and the first difference."""
    random = np.random.default_rng([seed, 0x7E57])
    rows = min(max(verify // _TURNS, _FEWEST_ROWS), _MOST_ROWS)
    alone = shaped = turn = 0  # as many sums alone in their row as in products of many shapes
    while (done := alone + shaped) < verify:
        if alone <= shaped:
            shape = min(rows, verify - done), int(random.choice(LENGTHS))
            probe = hard_probe(random, examples.operand, shape, turn % KINDS)
            alone += len(probe.a)
        else:
            probe = _shaped(random, examples, device, verify, verify - done, turn)
            shaped += len(probe.a) * probe.b.shape[1]
        found = difference(model, probe, examples.plain(device.product(probe)), examples, device)
        if found is not None:
            return done, found
        turn += 1
        if turn % 100 == 0:
            say(f"verified {alone + shaped:,} of {verify:,} sums")
    return done, None


def _shaped(
    random: np.random.Generator, examples: Examples, device: Device, verify: int, left: int, turn: int
) -> Probe:
    places = [each for each in _PLACES if each[0] * each[1] <= max(_SMALL, verify // _SHARE)]
    rows, columns = (int(each) for each in random.choice(places))
    rows = min(rows, left)
    columns = min(columns, left // rows)
    steps = _STEPS_OF_LARGE if min(rows, columns) >= _LARGE else _STEPS
    fitting = [length for length in _LONG if rows * columns * length <= steps]
    shape = rows, int(random.choice(fitting)), columns
    if device.initial is not None and turn % 2:
        return start_probe(random, examples.operand, device.initial, shape, turn % KINDS)
    return shaped_probe(random, examples.operand, shape, turn % KINDS)


def difference(
    model: Any, probe: Probe, result: NDArray[Any], examples: Examples, device: Device | None
) -> Difference | None:
    """Return the first sum of a product that the model computes otherwise; the device is then asked for it again."""
    wrong = np.argwhere(examples.computed(probe, model) != result)
    if not len(wrong):
        return None
    row, column = wrong[0].tolist()
    start = None if probe.initial is None else probe.initial[row : row + 1, column : column + 1]
    one = Probe("hard", probe.a[row : row + 1], np.ascontiguousarray(probe.b[:, column : column + 1]), initial=start)
    inside = int(result[row, column])
    if device is None:
        return Difference(one, inside)
    if int(examples.plain(device.product(probe))[row, column]) != inside:
        return Difference(one, inside, Finding("Results do not repeat.", _pairs(one), inside))
    alone = int(examples.plain(device.product(one))[0, 0])
    if alone == inside:
        return Difference(one, inside)
    shape = f"({probe.a.shape[0]}, {probe.a.shape[1]}) by ({probe.b.shape[0]}, {probe.b.shape[1]})"
    words = f"Results depend on M, N or position: row {row}, column {column} of a product {shape} is {inside:#x}, "
    return Difference(one, alone, Finding(f"{words}by itself {alone:#x}.", _pairs(one), alone))


def _pairs(one: Probe) -> tuple[tuple[int, int], ...]:
    pairs = zip(one.a[0].tolist(), one.b[:, 0].tolist(), strict=True)
    return tuple((x, y) for x, y in pairs if x or y)
