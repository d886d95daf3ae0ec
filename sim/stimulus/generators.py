"""Random numbers that one seed repeats, whatever else runs."""

from __future__ import annotations

import zlib

import numpy as np

__all__ = ["generator_for"]


def generator_for(seed: int, *names: str) -> np.random.Generator:
    """Return the random numbers that belong to a seed and to names: of a unit, or a unit and a scenario."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
