"""Large arrays in pieces whose intermediate results stay in the caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.rounding import Float64, RoundingChoice, round_float64
from golden.formats import FloatFormat

__all__ = ["pieces", "round_into"]

_PIECE = 1 << 14


def pieces(count: int) -> Iterator[slice]:
    """Cut a flat array of `count` elements."""
    return (slice(start, start + _PIECE) for start in range(0, count, _PIECE))


def round_into(
    result: NDArray[Any],
    given: NDArray[Any],
    fmt: FloatFormat,
    choice: RoundingChoice,
    before: Callable[[NDArray[Any]], Float64],
    after: Callable[[Float64], NDArray[Any]],
) -> None:
    """Fill `result`, contiguous, with ``after(round_float64(before(given), fmt, choice))``."""
    flat, into = given.reshape(-1), result.reshape(-1)
    words = None if choice.random is None else np.broadcast_to(choice.random, given.shape).reshape(-1)
    with np.errstate(all="ignore"):
        for piece in pieces(flat.size):
            here = choice if words is None else replace(choice, random=words[piece])
            into[piece] = after(round_float64(before(flat[piece]), fmt, here))
