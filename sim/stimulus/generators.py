"""Random numbers that a seed reproduces, independently of everything else that runs."""

from __future__ import annotations

import zlib

import numpy as np

__all__ = ["generator_for"]


def generator_for(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator for a seed and names: a unit, or a unit and a scenario."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
