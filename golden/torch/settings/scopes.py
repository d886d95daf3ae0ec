"""The precision contexts and the precision levels of this thread: two stacks, innermost last.

A `threading.local` and not a context variable: torch.compile follows and guards the one, and refuses the other. As with
torch.autocast, a new thread starts from the process-wide defaults.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Literal, Protocol

from golden.torch.settings.draws import Draws
from golden.torch.settings.half_type import HalfType
from golden.torch.settings.level_map import LevelMap, Table
from golden.torch.settings.timeline import Timeline

__all__ = ["LevelScope", "MapScope", "Process", "Settings", "Unseen", "scopes"]

#: What becomes of a product that the exact kernels cannot run.
Unseen = Literal["error", "warn", "count"]


@dataclass(frozen=True)
class Settings:
    """The settings of a `golden.torch.precision` context: the half type, the model-wide level and the chunk length.

    `unseen` is its policy, `counted` what it let pass by: (operator, place) -> how often.
    """

    half: HalfType
    level: int
    chunk: int | None
    enabled: bool
    unseen: Unseen = "error"
    counted: Counter[tuple[str, str]] = field(default_factory=Counter, compare=False, repr=False)
    draws: Draws | None = field(default=None, compare=False, repr=False)  # None where nothing is random


class LevelScope(Protocol):
    """What sets levels where it is in force: a `golden.torch.pol`, or what a level map says of a module."""

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


class _Scopes(threading.local):
    precisions: tuple[Settings, ...] = ()
    pols: tuple[LevelScope, ...] = ()
    #: The level maps in force; and the modules that run at levels of theirs, by `id`, with `pols` and `maps` before it.
    maps: tuple[MapScope, ...] = ()
    mapped: tuple[tuple[int, tuple[LevelScope, ...], tuple[MapScope, ...]], ...] = ()
    #: The initialised models (`golden.torch.amp.initialize`) that are running.
    entries: tuple[Any, ...] = ()
    #: The precisions around each backward pass that is under way, innermost last.
    backwards: tuple[tuple[Settings, ...], ...] = ()
    #: The guard of `golden.torch.guard.guard` in this thread, and how many contexts ask it to watch.
    guard: Any = None
    watchers: int = 0
    #: Whether compiled code runs, which was looked through when it was made.
    unwatched: bool = False
    #: Where the code is that is being looked through.
    place: str | None = None
    #: The errors of the guard within a call of TorchScript.
    errors: list[Exception] | None = None
    #: Who counts the products, for `golden.torch.audit`.
    recorder: Any = None
    #: The run that `golden.torch.observe` looks at, and who looks at the products of a step that it observes.
    observation: Any = None
    observer: Any = None

    def __init__(self) -> None:
        # Of the object: torch.compile's guards tell what a thread has of its own from what stands in the class.
        self.precisions, self.pols, self.maps, self.mapped, self.entries = (), (), (), (), ()
        self.timeline: Timeline[Settings] = Timeline()


scopes = _Scopes()
