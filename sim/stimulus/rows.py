"""Rows of a SIMD multiply-accumulate unit, and their form at its ports: words of all lanes, and beats of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from golden import FloatFormat
from sim.stimulus.reductions import NO_ERROR, Segment
from sim.stimulus.schedule import Table

__all__ = ["Loads", "Row", "answers_of", "words_of"]


@dataclass
class Row(Segment):
    """Products of one row from one answer to the next: fields that all lanes share, and a segment for every element.

    Parameters
    ----------
    elements : list of Segment
        Alike in everything but their operands; the row's own products only give their number.
    """

    elements: list[Segment] = field(default_factory=list)


@dataclass
class Loads(Row):
    """The beats that load initial values into a tile, one for each row of lanes; the elements' results are the values.

    Its products are random: an array must ignore them.
    """


def words_of(
    table: Table, lanes: int, width: int, operands: Sequence[FloatFormat], rng: np.random.Generator
) -> list[Any]:
    """Return the operands a and b of all lanes, as words; lanes without an element get random operands.

    Parameters
    ----------
    table : Table
        The beats, of rows.
    lanes, width : int
        The number of lanes, and the bits of an operand in each.
    operands : sequence of FloatFormat
    rng : numpy.random.Generator
    """
    codes = rng.integers(0, 1 << width, (len(table.which), 2, lanes))
    beats_of = np.split(np.argsort(table.which, kind="stable"), np.cumsum(np.bincount(table.which))[:-1])
    for row, at in zip(table.segments, beats_of, strict=True):
        assert isinstance(row, Row)
        # A row without products is driven as a product that changes nothing.
        fmt = operands[row.format] if row.format < len(operands) else operands[0]
        for side, neutral in enumerate((fmt.sign_mask, fmt.one)):
            products = [(one.b if side else one.a) or [neutral] for one in row.elements]
            codes[at, side, : len(products)] = np.array(products)[:, table.place[at]].T
    words = [
        [sum(code << width * lane for lane, code in enumerate(every)) for every in codes[:, side].tolist()]
        for side in range(2)
    ]
    return [np.array(side, object) for side in words]


def answers_of(row: Row) -> list[dict[str, int]]:
    """Return the fields of the answers of a row: see the tables of `hdl.VectorMac`."""
    common = {"result": 0, "flags": 0, "error": row.error, "register": row.register, "part": 0}
    if row.error != NO_ERROR:
        return [common]
    width, lanes_apart = (16, 1) if row.level == 2 else (32, 2)
    answers = []
    for part in range(2 if row.level == 1 else 1):
        elements = row.elements[part::2] if row.level == 1 else row.elements
        result = sum(element.result << width * at for at, element in enumerate(elements))
        flags = sum(element.flags << 5 * lanes_apart * at for at, element in enumerate(elements))
        answers.append(common | {"result": result, "flags": flags, "part": part})
    return answers
