"""A testbench for the array of lanes in Amaranth's simulator: queues of beats in, rows of tiles out."""

from typing import NamedTuple

import numpy as np

import golden
from hdl import MatrixMac

from .simulators import Run, feed

#: Cycles without an accepted beat or a result after which the run ends.
QUIET = 120


class Beat(NamedTuple):
    a: tuple[int, ...]
    b: tuple[int, ...]
    register: int = 0
    level: int = 0
    format: int = 0
    first: bool = False
    last: bool = False
    rounding: int = 0
    initial: tuple[int, ...] = ()
    loads: bool = False
    row: int = 0


class Result(NamedTuple):
    result: tuple[int, ...]
    flags: tuple[int, ...]
    error: int
    register: int
    row: int
    last_row: int


def tile(a, b, *, first=True, last=True, **where) -> list[Beat]:
    """The beats of one tile from ``a`` (rows, K) and ``b`` (K, columns), the first and the last marked."""
    end = len(b) - 1
    return [
        Beat(tuple(map(int, a[:, k])), tuple(map(int, b[k])), first=first and k == 0, last=last and k == end, **where)
        for k in range(end + 1)
    ]


def load(initial, b, **where) -> list[Beat]:
    """The beats that start a tile from ``initial`` (rows, columns), with factors and marks that must not count."""
    rows, factors = len(initial), tuple(map(int, b[0]))
    return [
        Beat(factors[:1] * rows, factors, initial=tuple(map(int, codes)), loads=True, row=row,
             first=row % 2 == 0, last=row % 3 == 0, **where)
        for row, codes in enumerate(initial)
    ]  # fmt: skip


def in_turn(*queues: list[Beat]) -> list[Beat]:
    """Beats of several tiles in rotation."""
    longest = max(map(len, queues))
    return [queue[k] for k in range(longest) for queue in queues if k < len(queue)]


def answers(
    unit: MatrixMac, a, b, *, format=0, register=0, level, chunk, initial=None, raised=0, **how
) -> list[Result]:
    """The rows that golden computes for a tile, with the flags of `golden.dot` for each element."""
    operand = unit.operands[format]
    left, right = np.broadcast_arrays(a[:, None, :], np.asarray(b).T[None, :, :])
    codes, flags = golden.dot(
        left, right, operand=operand, level=level, chunk=chunk or None, initial=initial, return_flags=True,
        subnormals=unit.subnormals, **how,
    )  # fmt: skip
    flags = (flags | raised) if unit.flags else np.zeros_like(flags)
    whole = golden.matmul(a, b, operand=operand, level=level, chunk=chunk or None, initial=initial,
                          subnormals=unit.subnormals, **how)  # fmt: skip
    assert (whole == codes).all()
    return [
        Result(tuple(map(int, codes[row])), tuple(map(int, flags[row])), 0, register, row, int(row == unit.rows - 1))
        for row in range(unit.rows)
    ]


def refused(unit: MatrixMac, error, register: int) -> Result:
    """The single beat that answers a refused beat."""
    return Result((0,) * unit.columns, (0,) * unit.columns, error.value, register, 0, 1)


def run(unit: MatrixMac, beats, **schedule) -> Run:
    """Feed beats in order and collect rows, as `feed` does."""

    def result(payload):
        columns = range(unit.columns)
        return Result(
            tuple(payload.result[column] for column in columns),
            tuple(payload.flags[column].as_bits() if unit.flags else 0 for column in columns),
            payload.error.value, payload.register, payload.row if unit.rows > 1 else 0, payload.last_row,
        )  # fmt: skip

    def fields(beat):
        return beat._asdict() | {"initial": beat.initial or (0,) * unit.columns}

    return feed(unit, beats, fields=fields, result=result, quiet=QUIET, **schedule)
