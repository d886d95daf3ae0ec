"""The settings in force when a node of the autograd graph was made, found by its sequence number.

PyTorch numbers the nodes that a thread makes. A timeline says from which number on a setting was in force.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Generic, TypeVar

import torch

__all__ = ["Timeline"]

State = TypeVar("State")

# Beyond this number of changes, the older half is kept at half the resolution.
_LONGEST = 1 << 16


class Timeline(Generic[State]):
    """Settings by sequence number, None where there were none."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._states: list[State | None] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def note(self, state: State | None) -> None:
        """Note the settings in force for the nodes made from now on."""
        now = torch._C._autograd._get_sequence_nr()
        if self._starts and self._starts[-1] == now:  # no node since the last change
            del self._starts[-1], self._states[-1]
        if (self._states[-1] if self._states else None) == state:
            return
        self._starts.append(now)
        self._states.append(state)
        if len(self._starts) > _LONGEST:
            self._coarsen()

    def at(self, sequence_number: int) -> State | None:
        """Return the settings in force when the node of this number was made."""
        index = bisect_right(self._starts, sequence_number) - 1
        return self._states[index] if index >= 0 else None

    def latest(self) -> State | None:
        """Return the settings that were in force most recently."""
        return next((state for state in reversed(self._states) if state is not None), None)

    def _coarsen(self) -> None:
        """Join neighbours of the older half; settings hold for a neighbour without, too, so that nothing escapes."""
        half = len(self._starts) // 4 * 2
        pairs = zip(self._states[:half:2], self._states[1:half:2], strict=True)
        self._states[:half] = [other if one is None else one for one, other in pairs]
        self._starts[:half] = self._starts[:half:2]
