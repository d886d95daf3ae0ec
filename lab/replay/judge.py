"""A recorded product, computed by the netlist and by golden, and the events in its sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

import golden
from golden import Flag, Reduction
from golden.counts import Counts, Events
from lab.replay.netlist import Netlist
from lab.replay.recording import Product
from sim.counts import COUNTERS, as_numbers

__all__ = ["CHUNK", "Replayed", "judge"]

#: Products in a chunk: the default of NUMERICS section 5.
CHUNK = 32
#: Steps whose flags golden computes at a time, each in a few dozen bytes.
_BLOCK = 1 << 21
#: Outputs whose steps are watched one by one.
_WATCHED = 64


@dataclass(frozen=True)
class Replayed:
    """The counts from replaying a product at a level.

    Parameters
    ----------
    product : Product
    level : int
    differ : int
        Outputs whose codes or flags are not golden's.
    first : str
        The first mismatch, in hex; empty if there is none.
    overflowed, underflowed : float
        Shares of the outputs with that flag.
    swamped : float
        Share of the products that are not zero and yet left their accumulator as it was, of those watched.
    cycles : int
    miscounted : str
        The first counter that differs from golden's counts; empty if there is none, or the unit has none.
    """

    product: Product
    level: int
    differ: int
    first: str
    overflowed: float
    underflowed: float
    swamped: float
    cycles: int
    miscounted: str = ""


def judge(product: Product, level: int, netlist: Netlist, *, counters: bool = False) -> Replayed:
    """Replay a product at a level and compare every bit of its results and flags, and the counts if it has counters."""
    where: dict[str, Any] = {"operand": product.operand, "level": level, "chunk": CHUNK}
    counts: list[int] = []
    if counters:
        codes, flags, cycles, counts = netlist.counted_matmul(product.a, product.b, **where)
    else:
        codes, flags, cycles = netlist.matmul(product.a, product.b, **where)
    differ, first = 0, ""
    for rows in _blocks(product):
        wanted, raised = golden.dot(product.a[rows, None, :], product.b.T[None], return_flags=True, **where)
        wrong = (codes[rows] != wanted) | (flags[rows] != raised)
        if wrong.any() and not first:
            row, column = map(int, np.argwhere(wrong)[0])
            at = rows.start + row
            first = (
                f"{product.layer} {product.direction}, {product.operand} level {level}, row {at}, column {column}: "
                f"{codes[at, column]:#x} with flags {flags[at, column]:#x}, "
                f"must be {wanted[row, column]:#x} with {raised[row, column]:#x}"
            )
        differ += int(wrong.sum())
    return Replayed(
        product, level, differ, first,
        float(np.mean(flags & Flag.OVERFLOW != 0)), float(np.mean(flags & Flag.UNDERFLOW != 0)),
        _swamped(product, level), cycles, _miscounted(product, level, counts) if counters else "",
    )  # fmt: skip


def _miscounted(product: Product, level: int, counts: list[int]) -> str:
    """Return which counter differs from golden's, and how."""
    total = Counts(*(Events(*[0] * len(fields(Events))) for _ in range(2)))
    for rows in _blocks(product):
        *_, counted = golden.dot(
            product.a[rows, None, :], product.b.T[None], operand=product.operand, level=level, chunk=CHUNK, counts="sum"
        )
        total += counted
    for name, got, must in zip(COUNTERS, counts, as_numbers(total), strict=True):
        if got != must:
            place = f"{product.layer} {product.direction}, {product.operand} level {level}"
            return f"{place}: {name} counts {got}, must be {must}"
    return ""


def _blocks(product: Product) -> Iterator[slice]:
    rows, per_row = product.a.shape[0], product.a.shape[1] * product.b.shape[1]
    step = max(1, _BLOCK // per_row)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _swamped(product: Product, level: int) -> float:
    """Watch the steps of some outputs: in rows and columns drawn at random."""
    rng = np.random.default_rng(0)
    side = int(np.sqrt(_WATCHED))
    rows = rng.choice(product.a.shape[0], min(side, product.a.shape[0]), replace=False)
    columns = rng.choice(product.b.shape[1], min(side, product.b.shape[1]), replace=False)
    a = product.a[rows][:, None, :]
    b = product.b[:, columns].T[None]
    inner = Reduction.for_level(level, product.operand, chunk=CHUNK).inner
    partial = np.zeros((len(rows), len(columns)), np.uint32)
    x, y = golden.decode(a, product.operand), golden.decode(b, product.operand)
    moves = (x != 0) & (y != 0) & np.isfinite(x) & np.isfinite(y)
    unmoved = 0
    for k in range(product.a.shape[1]):
        if level and k % CHUNK == 0:
            partial = np.zeros_like(partial)
        following = np.asarray(
            golden.multiply_accumulate(a[..., k], b[..., k], partial, operand=product.operand, accumulator=inner)
        )
        unmoved += int((moves[..., k] & (following == partial)).sum())
        partial = following
    return unmoved / int(moves.sum()) if moves.any() else 0.0
