"""The cost of products: how many a unit takes per cycle at each level, in each format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golden.reduction import LEVELS
from golden.torch.instruments.advise.choosing import Setting
from golden.torch.instruments.advise.formats import Formats

__all__ = ["Costs", "vector_unit"]

_LANES = 4
_WIDTH = 16  # bits of an operand
#: Cycles that each end of a chunk takes from the lanes, by level (see `docs/pages/pace`).
_PROMOTION = {1: 0.5, 2: 0.25}


def vector_unit(level: int, chunk: int | None, width: int = _WIDTH) -> float:
    """Return the products per cycle that a vector unit sustains: of four lanes, or of more for narrower operands.

    Level 0 uses half of its lanes. At levels 1 and 2 each chunk ends with a promotion, which takes further cycles.
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
        names = [formats.name(half) for half in formats.choices]
        tables = _tables(given, names)
        self._rates: dict[tuple[str | None, int, int | None], float] = {}
        for half, name in zip(formats.choices, names, strict=True):
            for (level, chunk), rate in _rates(*tables[name], levels, chunks, formats.width(half)).items():
                self._rates[half, level, chunk] = rate

    def cycles(self, products: int, setting: Setting) -> float:
        """Return how long products take, in cycles."""
        level, chunk, half = setting
        return products / self._rates[half, level, chunk if level else None]


def _tables(given: Mapping[Any, Any] | None, names: list[str]) -> dict[str, tuple[Mapping[Any, Any] | None, str]]:
    """Return the table of each format, None where the vector unit's costs hold, and what errors call it."""
    if given is None:
        return dict.fromkeys(names, (None, ""))
    _check_mapping(given, "")
    if not any(isinstance(key, str) for key in given):
        _check_levels(given, "")
        return dict.fromkeys(names, (given, ""))
    for name in given:
        if name not in names:
            raise ValueError(f"costs: got an entry for {name!r}, must be for the formats {', '.join(names)}")
    for name in names:
        if name not in given:
            raise ValueError(f"costs: has no entry for {name}, must have one for each of {', '.join(names)}")
        _check_mapping(given[name], f"{name}: ")
        _check_levels(given[name], f"{name}: ")
    return {name: (given[name], f"{name}: ") for name in names}


def _check_mapping(table: Any, of: str) -> None:
    if not isinstance(table, Mapping):
        raise TypeError(f"costs: {of}got {table!r}, must be a mapping such as {{0: 2.0, 1: 3.76, 2: 3.88}}")


def _check_levels(table: Mapping[Any, Any], of: str) -> None:
    for level in table:
        if level not in LEVELS:
            raise ValueError(f"costs: {of}got an entry for {level!r}, must be for levels 0, 1 and 2")


def _rates(
    table: Mapping[Any, Any] | None,
    of: str,
    levels: tuple[int, ...],
    chunks: tuple[int | None, ...],
    width: int,
) -> dict[tuple[int, int | None], float]:
    """Return the products per cycle of one format by level and chunk; level 0 has none."""
    needed = [(level, chunk) for level in (0, *levels) for chunk in (chunks if level else (None,))]
    if table is None:
        return {(level, chunk): vector_unit(level, chunk, width) for level, chunk in needed}
    for level in (0, *levels):
        if level not in table:
            raise ValueError(f"costs: {of}has no entry for level {level}, must have one for each of {[0, *levels]}")
    return {(level, chunk): _rate(table[level], level, chunk, of) for level, chunk in needed}


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
