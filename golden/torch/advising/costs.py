"""The cost of products: how many a unit takes per cycle at each level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golden.reduction import LEVELS

__all__ = ["Costs", "vector_unit"]

_LANES = 4
#: Cycles that each end of a chunk takes from the lanes, by level (see `docs/pages/pace`).
_PROMOTION = {1: 0.5, 2: 0.25}


def vector_unit(level: int, chunk: int | None) -> float:
    """Return the products per cycle that the vector unit of four lanes sustains.

    Level 0 uses half of its lanes. At levels 1 and 2 each chunk ends with a promotion, which takes cycles of its own.
    """
    if level == 0:
        return _LANES / 2
    return float(_LANES) if chunk is None else chunk / (chunk / _LANES + _PROMOTION[level])


class Costs:
    """Products per cycle by level, and at levels 1 and 2 by chunk length.

    Parameters
    ----------
    given : mapping, optional
        From each level to products per cycle, or to a mapping from chunk lengths to them; `vector_unit` unless given.
    levels, chunks
        What it must have an entry for besides level 0.

    Raises
    ------
    TypeError, ValueError
        If it is no such mapping.
    """

    def __init__(
        self, given: Mapping[int, Any] | None, levels: tuple[int, ...], chunks: tuple[int | None, ...]
    ) -> None:
        self.is_default = given is None
        self._rates: dict[tuple[int, int | None], float] = {}
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"costs: got {given!r}, must be a mapping such as {{0: 2.0, 1: 3.76, 2: 3.88}}")
        for level in (0, *levels):
            if given is not None and level not in given:
                raise ValueError(f"costs: has no entry for level {level}, must have one for each of {[0, *levels]}")
            for chunk in chunks if level else (None,):
                rate = vector_unit(level, chunk) if given is None else _rate(given[level], level, chunk)
                self._rates[level, chunk] = rate
        for level in given or ():
            if level not in LEVELS:
                raise ValueError(f"costs: got an entry for {level!r}, must be for levels 0, 1 and 2")

    def cycles(self, products: int, level: int, chunk: int | None) -> float:
        """Return how long products take, in cycles."""
        return products / self._rates[level, chunk if level else None]


def _rate(entry: Any, level: int, chunk: int | None) -> float:
    if isinstance(entry, Mapping) and level:
        if chunk not in entry:
            raise ValueError(f"costs: level {level} has no entry for chunk {chunk}, must have one")
        entry = entry[chunk]
    if not isinstance(entry, int | float) or isinstance(entry, bool):
        raise TypeError(f"costs: got {entry!r} for level {level}, must be products per cycle")
    if not 0 < entry < float("inf"):
        raise ValueError(f"costs: got {entry!r} for level {level}, must be finite and above 0")
    return float(entry)
