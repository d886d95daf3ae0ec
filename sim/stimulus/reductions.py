"""Reductions to drive, and golden's results for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from golden import FloatFormat, Reduction, dot

__all__ = ["NO_ERROR", "REFUSED_ALIGNMENT", "UNSUPPORTED", "Chain", "Segment", "predict"]

NO_ERROR, REFUSED_ALIGNMENT, UNSUPPORTED = 0, 1, 2

#: Reductions of up to this length are made equally long, to be predicted together.
_ALIKE = 64


@dataclass
class Segment:
    """Products of one register from one answer to the next.

    Parameters
    ----------
    format, level : int
        The fields of the products. `format` is an index into the unit's operand formats.
    a, b : lists of codes
        K products, in order. K = 0 is driven as the neutral product -0 * 1.0.
    first : bool
        Whether it starts from +0; otherwise from the answer before it in its chain.
    last : bool
        Whether it is answered; otherwise it is abandoned, and the next segment of the chain starts again.
    odd : bool
        Whether it uses the odd register of the chain's pair.
    error : int
        The expected refusal of its single product.
    chunk : int
        Chunk length, 0 for one chunk; set when it is scheduled.
    register : int
        Set when it is scheduled.
    result, flags, initial : int
        Golden's results; `initial` is the total at the start.
    pauses : list of int
        Minimum number of cycles without an offer before each product; empty for none.
    beyond : int
        Bits of the register number beyond the unit's range.
    is_known : bool
        Result and flags have been filled in.
    is_load : bool
        Its beats load initial values into a tile of an array; only before `sim.stimulus.rows.Loads` replaces it.
    modes, random, random_promotion : list of int
        The rounding fields of each product; empty if a unit takes none.
    """

    format: int
    level: int
    a: list[int]
    b: list[int]
    first: bool = True
    last: bool = True
    odd: bool = False
    error: int = NO_ERROR
    chunk: int = 32
    register: int = -1
    result: int = 0
    flags: int = 0
    initial: int = 0
    pauses: list[int] = field(default_factory=list)
    beyond: int = 0
    is_known: bool = False
    is_load: bool = False
    modes: list[int] = field(default_factory=list)
    random: list[int] = field(default_factory=list)
    random_promotion: list[int] = field(default_factory=list)


#: Segments that follow each other on one register or one pair of registers.
Chain = list[Segment]


def predict(chains: Sequence[Chain], operands: Sequence[FloatFormat], subnormals: str = "keep") -> None:
    """Fill in results and flags with few calls of `golden.dot`, each for all similar segments.

    A continuing segment starts from the answer before it, and accumulates all flags since ``first``. Therefore the n-th
    segments of all chains are predicted together, for n = 0, 1, ...
    """
    for position in range(max(map(len, chains), default=0)):
        groups: dict[tuple[int, int, int, tuple[int, bool]], list[tuple[Segment, Segment | None]]] = defaultdict(list)
        for chain in chains:
            if position >= len(chain):
                continue
            segment = chain[position]
            if segment.error == NO_ERROR and not segment.is_known:
                before = chain[position - 1] if position and not segment.first else None
                length = _length_class(segment, goes_on=before is not None)
                groups[segment.format, segment.level, segment.chunk, length].append((segment, before))
        for (index, level, chunk, _), members in groups.items():
            plan = Reduction.for_level(level, operands[index], chunk=chunk or None)
            plan = replace(plan, operand=operands[index], subnormals=subnormals)
            _predict_group([segment for segment, _ in members], [before for _, before in members], plan)


def _length_class(segment: Segment, *, goes_on: bool) -> tuple[int, bool]:
    """Return equal values for lengths that can be padded to one length with products of +0 and +0.

    Before all others, while the sum is +0, they change neither sum nor flags, unless a chunk then ends elsewhere.
    """
    length = len(segment.a)
    stays = goes_on or (segment.level > 0 and 0 < segment.chunk < length)
    return (length, True) if stays else (max(1 << (length - 1).bit_length(), _ALIKE), False)


def _predict_group(segments: list[Segment], befores: list[Segment | None], plan: Reduction) -> None:
    outer: Any = np.uint16 if plan.outer.width == 16 else np.uint32
    length = max(len(segment.a) for segment in segments)
    starts = np.array([before.result if before else 0 for before in befores], outer)
    results, flags = dot(
        np.array([[0] * (length - len(segment.a)) + segment.a for segment in segments], np.uint16),
        np.array([[0] * (length - len(segment.b)) + segment.b for segment in segments], np.uint16),
        reduction=plan,
        initial=starts,
        return_flags=True,
    )
    for at, (segment, before) in enumerate(zip(segments, befores, strict=True)):
        segment.initial = int(starts[at])
        segment.result = int(results[at])
        segment.flags = int(flags[at]) | (before.flags if before else 0)
