"""Patterns of a source that offers and a sink that takes: rows and columns of the stream matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["PATTERNS", "pattern", "takes_on_sight"]

#: Never pausing; pausing at random; long pauses and long runs.
PATTERNS = ("none", "random", "bursts")

_LENGTH = 1009  # a prime: no period of the design divides it


def pattern(name: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the cycles in which a stream may transfer.

    Parameters
    ----------
    name : str
        One of `PATTERNS`.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If there is no such pattern.
    """
    if name == "none":
        return np.ones(1, np.bool_)
    if name == "random":
        return rng.random(_LENGTH) < 0.6
    if name == "bursts":
        lengths = rng.integers(1, 40, _LENGTH)
        starts_high = bool(rng.integers(2))
        values = (np.arange(_LENGTH) % 2 == 0) == starts_high
        return np.repeat(values, lengths)[: 4 * _LENGTH]
    raise ValueError(f"name: got {name!r}, must be one of {', '.join(PATTERNS)}")


def takes_on_sight(backpressure: str) -> bool:
    """Return whether a sink of the stream matrix waits for ``valid`` before it is ready.

    Only the sink that never pauses does. This slows nothing down, and it stops a unit whose ``valid`` waits for
    ``ready``. Other sinks are ready regardless of ``valid``.
    """
    return backpressure == "none"
