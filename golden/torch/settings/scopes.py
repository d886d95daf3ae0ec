"""The precision contexts and the precision levels of this thread: two stacks, innermost last; and their timeline.

A `threading.local` and not a context variable: torch.compile follows and guards the one, and refuses the other. As with
torch.autocast, a new thread starts from the process-wide defaults.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Generic, Literal, Protocol, TypeVar

import torch

from golden.reduction import Reduction
from golden.torch.settings.draws import Draws
from golden.torch.settings.half_type import HalfType
from golden.torch.settings.level_map import LevelMap, Table

__all__ = ["NEAREST_EVEN", "LevelScope", "MapScope", "Process", "Settings", "Timeline", "Unseen", "scopes"]

#: The rule of products outside of a precision.
NEAREST_EVEN = str(Reduction())

#: How to treat a product that the exact kernels cannot run.
Unseen = Literal["error", "warn", "count"]


@dataclass(frozen=True)
class Settings:
    """The settings of a `golden.torch.precision` context: the half type, the model-wide level and the chunk length.

    `rule` is the line of a `golden.Reduction` with the modes of every product, and the accumulator of another machine
    in place of levels. `unseen` is the policy for products that the exact kernels cannot run; `counted` counts those it
    let pass, by (operator, place).
    """

    half: HalfType
    level: int
    chunk: int | None
    enabled: bool
    unseen: Unseen = "error"
    rule: str = NEAREST_EVEN
    counted: Counter[tuple[str, str]] = field(default_factory=Counter, compare=False, repr=False)
    draws: Draws | None = field(default=None, compare=False, repr=False)  # None where nothing is random


class LevelScope(Protocol):
    """A source of levels while it is in force: a `golden.torch.pol`, or a level map's entry for a module."""

    @property
    def fwd(self) -> int | None:
        """The level of forward passes; None leaves the surrounding one."""

    @property
    def bwd(self) -> int | None:
        """The level of backward passes, likewise."""

    @property
    def chunk(self) -> int | EllipsisType | None:
        """Products in a chunk; ... leaves the surrounding number."""

    @property
    def half(self) -> HalfType | None:
        """The half type; None leaves the surrounding one."""


@dataclass(frozen=True)
class MapScope:
    """A map in force: who entered it, and its table once the model is known."""

    owner: object
    map: LevelMap
    text: str
    depth: int  # mapped modules that ran around it
    table: Table | None = None


class Process:
    """The settings of the whole process."""

    #: Whether any thread has ever entered a precision context that is enabled.
    entered = False
    #: The settings of the one that was entered last.
    latest: Settings | None = None
    #: How many exact products have run.
    products = 0
    #: How many backward passes have begun.
    backwards = 0


State = TypeVar("State")

# Beyond this number of changes, the older half is kept at half the resolution.
_LONGEST = 1 << 16


class Timeline(Generic[State]):
    """The settings in force when a node of the autograd graph was made, None where there were none.

    PyTorch numbers the nodes that a thread makes. A timeline says from which number on a setting was in force.
    """

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


class _Scopes(threading.local):
    precisions: tuple[Settings, ...] = ()
    pols: tuple[LevelScope, ...] = ()
    #: The level maps in force; and the modules that run at their levels, by `id`, with `pols` and `maps` before each.
    maps: tuple[MapScope, ...] = ()
    mapped: tuple[tuple[int, tuple[LevelScope, ...], tuple[MapScope, ...]], ...] = ()
    #: The initialised models (`golden.torch.amp.initialize`) that are running.
    entries: tuple[Any, ...] = ()
    #: The precisions around each backward pass that is under way, innermost last.
    backwards: tuple[tuple[Settings, ...], ...] = ()
    #: The guard of `golden.torch.guard.guard` in this thread, and how many contexts ask it to watch.
    guard: Any = None
    watchers: int = 0
    #: Whether compiled code runs, which the guard examined when it was compiled.
    unwatched: bool = False
    #: Where the code is that the guard is examining.
    place: str | None = None
    #: The errors of the guard within a call of TorchScript.
    errors: list[Exception] | None = None
    #: Who counts the products, for `golden.torch.audit`.
    recorder: Any = None
    #: The run that `golden.torch.observe` looks at, and who looks at the products of a step that it observes.
    observation: Any = None
    observer: Any = None

    def __init__(self) -> None:
        # On the instance: torch.compile's guards treat attributes of a thread and of the class differently.
        self.precisions, self.pols, self.maps, self.mapped, self.entries = (), (), (), (), ()
        self.timeline: Timeline[Settings] = Timeline()


scopes = _Scopes()
