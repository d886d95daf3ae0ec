"""The axes of a batch, merged as far as the strides of all matrices allow: the kernels know four."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from golden.cuda.structures import AXES

__all__ = ["Axes", "merged", "packed"]

_Strides = tuple[int, ...]


@dataclass(frozen=True)
class Axes:
    """The lengths of the axes of a batch, the last of which varies fastest."""

    lengths: tuple[int, ...]

    @property
    def count(self) -> int:
        """Matrices of the batch."""
        return math.prod(self.lengths)

    @staticmethod
    def padded(numbers: Sequence[int], filler: int) -> _Strides:
        """Return as many numbers as the kernels take, the given ones last."""
        return (filler,) * (AXES - len(numbers)) + tuple(numbers)


def merged(lengths: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[Axes, list[_Strides]]:
    """Merge neighbouring axes where every matrix steps through both as through one.

    Parameters
    ----------
    lengths : sequence of int
    strides : sequence of sequences of int
        For each matrix its stride along each axis.

    Returns
    -------
    axes : Axes
    strides : list of tuple of int
        For each matrix, along the merged axes.

    Raises
    ------
    ValueError
        If more axes are left than the kernels know.
    """
    kept: list[int] = []
    columns: list[list[int]] = []
    for axis, length in enumerate(lengths):
        along = [each[axis] for each in strides]
        if length == 1:
            continue
        if kept and all(before == length * stride for before, stride in zip(columns[-1], along, strict=True)):
            kept[-1] *= length
            columns[-1] = along
        else:
            kept.append(length)
            columns.append(along)
    if len(kept) > AXES:
        raise ValueError(
            f"batch: got shape {tuple(lengths)} with strides that need {len(kept)} axes, must need at most {AXES}; "
            "make the operands contiguous"
        )
    return Axes(tuple(kept)), [tuple(column[matrix] for column in columns) for matrix in range(len(strides))]


def packed(axes: Axes, strides: _Strides) -> tuple[tuple[int, ...], _Strides]:
    """Return the lengths of the axes along which a batch has different matrices, and its strides once they are packed.

    A length is 1 where the matrices repeat; strides count matrices.
    """
    lengths = tuple(length if stride else 1 for length, stride in zip(axes.lengths, strides, strict=True))
    steps, count = [], 1
    for length, stride in zip(reversed(axes.lengths), reversed(strides), strict=True):
        steps.append(count if stride else 0)
        count *= length if stride else 1
    return lengths, tuple(reversed(steps))
