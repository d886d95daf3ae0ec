"""The arguments of a rounding: mode, overflow and random words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_array, same_shape
from golden.arrays.rounding import PLAIN, RoundingChoice
from golden.rounding import Rounding, as_overflow, as_rounding, as_subnormals, check_random_width

__all__ = ["as_choice", "as_random"]


def as_random(random: ArrayLike | None, random_bits: int, argument: str) -> NDArray[Any]:
    """Accept random words of a stochastic rounding: an unsigned array or Python ints."""
    check_random_width(random_bits)
    allowed = f"must be unsigned words of {random_bits} bits for rounding='stochastic'"
    if random is None:
        raise TypeError(f"{argument}: got None, {allowed}")
    words = as_array(random, argument)
    from_python = not isinstance(random, (np.ndarray, np.generic)) and words.dtype.kind == "i"
    if words.dtype.kind != "u" and not from_python and words.size:
        raise TypeError(f"{argument}: got an array of {words.dtype}, {allowed}")
    outside = (words < 0) | (words >= 2**random_bits) if words.size else np.zeros(0, bool)
    if outside.any():
        worst = int(words[outside].flat[0])
        raise ValueError(
            f"{argument}: got {worst:#x}, must be 0 to {2**random_bits - 1:#x}, which fits random_bits={random_bits}"
        )
    return words.astype(np.uint32, copy=False)


def as_choice(
    rounding: Rounding | str,
    overflow: str,
    random: ArrayLike | None,
    random_bits: int,
    argument: str,
    shape: tuple[int, ...],
    subnormals: str = "keep",
) -> RoundingChoice:
    """Accept the arguments of a rounding of numbers of a shape; `argument` names these."""
    are_words = isinstance(overflow, str) and isinstance(subnormals, str)
    if rounding is Rounding.NEAREST_EVEN and random is None and are_words and overflow + subnormals == "specialkeep":
        return PLAIN  # the common case, soon decided
    mode, saturates = as_rounding(rounding, "rounding"), as_overflow(overflow, "overflow") == "saturate"
    flushes = as_subnormals(subnormals, "subnormals") == "flush"
    if mode is not Rounding.STOCHASTIC:
        if random is not None:
            given = f"an array of {random.dtype}" if isinstance(random, np.ndarray) else repr(random)
            raise ValueError(f"random: got {given}, must be None: only rounding='stochastic' takes random words")
        if mode is Rounding.NEAREST_EVEN and not (saturates or flushes):
            return PLAIN
        return RoundingChoice(mode, saturates, flushes=flushes)
    words = as_random(random, random_bits, "random")
    if same_shape(f"{argument}, random", shape, words.shape) != shape:
        raise ValueError(f"random: got shape {words.shape}, must broadcast to the shape of {argument}, {shape}")
    return RoundingChoice(mode, saturates, words, random_bits, flushes=flushes)
