"""The cost of products: how many a unit takes per cycle at each level, in each format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golden.reduction import LEVELS
from golden.torch.advising.choosing import Setting
from golden.torch.advising.formats import Formats

__all__ = ["Costs", "vector_unit"]

_LANES = 4
_WIDTH = 16  # bits of an operand
#: Cycles that each end of a chunk takes from the lanes, by level (see `docs/pages/pace`).
_PROMOTION = {1: 0.5, 2: 0.25}


def vector_unit(level: int, chunk: int | None, width: int = _WIDTH) -> float:
    """Return the products per cycle that a vector unit sustains: of four lanes, or of more for narrower operands.

    Level 0 uses half of its lanes. At levels 1 and 2 each chunk ends with a promotion, which takes cycles of its own.
    Operands of fewer than 16 bits have as many lanes as a beat of four 16-bit operands has room for.
    """
    wider = (_LANES * _WIDTH // width) / _LANES
    if level == 0:
        return wider * _LANES / 2
    return wider * (_LANES if chunk is None else chunk / (chunk / _LANES + _PROMOTION[level]))


class Costs:
    """Products per cycle by format and level, and at levels 1 and 2 by chunk length.

    Parameters
    ----------
    given : mapping, optional
        From each level to products per cycle, or to a mapping from chunk lengths to them; or from the name of each
        format to such a mapping. `vector_unit` unless given.
    levels, chunks, formats
        What it must have an entry for besides level 0.

    Raises
    ------
    TypeError, ValueError
        If it is no such mapping.
    """

    def __init__(
        self, given: Mapping[Any, Any] | None, levels: tuple[int, ...], chunks: tuple[int | None, ...], formats: Formats
    ) -> None:
        self._rates: dict[tuple[str | None, int, int | None], float] = {}
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"costs: got {given!r}, must be a mapping such as {{0: 2.0, 1: 3.76, 2: 3.88}}")
        names = [formats.name(half) for half in formats.choices]
        by_format = any(isinstance(key, str) for key in given or ())
        for key in given or ():
            if key not in (names if by_format else LEVELS):
                allowed = f"the formats {', '.join(names)}" if by_format else "levels 0, 1 and 2"
                raise ValueError(f"costs: got an entry for {key!r}, must be for {allowed}")
        for half, name in zip(formats.choices, names, strict=True):
            table, of = given, ""
            if given is not None and by_format:
                if name not in given:
                    raise ValueError(f"costs: has no entry for {name}, must have one for each of {', '.join(names)}")
                table, of = given[name], f"{name}: "
                if not isinstance(table, Mapping):
                    raise TypeError(f"costs: {of}got {table!r}, must be a mapping such as {{0: 2.0, 1: 3.76, 2: 3.88}}")
                for level in table:
                    if level not in LEVELS:
                        raise ValueError(f"costs: {of}got an entry for {level!r}, must be for levels 0, 1 and 2")
            for level in (0, *levels):
                if table is not None and level not in table:
                    raise ValueError(
                        f"costs: {of}has no entry for level {level}, must have one for each of {[0, *levels]}"
                    )
                for chunk in chunks if level else (None,):
                    self._rates[half, level, chunk] = (
                        vector_unit(level, chunk, formats.width(half))
                        if table is None
                        else _rate(table[level], level, chunk, of)
                    )

    def cycles(self, products: int, setting: Setting) -> float:
        """Return how long products take, in cycles."""
        level, chunk, half = setting
        return products / self._rates[half, level, chunk if level else None]


def _rate(entry: Any, level: int, chunk: int | None, of: str) -> float:
    if isinstance(entry, Mapping) and level:
        if chunk not in entry:
            raise ValueError(f"costs: {of}level {level} has no entry for chunk {chunk}, must have one")
        entry = entry[chunk]
    if not isinstance(entry, int | float) or isinstance(entry, bool):
        raise TypeError(f"costs: {of}got {entry!r} for level {level}, must be products per cycle")
    if not 0 < entry < float("inf"):
        raise ValueError(f"costs: {of}got {entry!r} for level {level}, must be finite and above 0")
    return float(entry)
