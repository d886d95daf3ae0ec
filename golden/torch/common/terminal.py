"""Terminal output of a run: notices that come once, and progress bars."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)

__all__ = ["TrainingProgress", "say_once", "scale_text", "shown"]


Item = TypeVar("Item")


def scale_text(scale: float) -> str:
    """Write a loss scale, a power of two as one."""
    fraction, exponent = math.frexp(scale)
    return f"2^{exponent - 1}" if fraction == 0.5 else f"{scale:g}"


def shown(items: Iterable[Item], description: str, visible: bool) -> Iterable[Item]:
    """Give the items, with a progress bar beside it that goes when it is done."""
    return track(items, description, console=Console(stderr=True), transient=True, disable=not visible)


class TrainingProgress:
    """A progress bar with loss, loss scale and skipped steps; a context manager. `done` steps were trained before."""

    def __init__(self, total: int | None, done: int, visible: bool) -> None:
        self._bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}  scale {task.fields[scale]}  skipped {task.fields[skipped]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not visible,
        )
        self._task = self._bar.add_task("", total=total, completed=done, epoch=1, loss="-", scale="-", skipped=0)

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def show(self, *, epoch: int, loss: float, scale: float, skipped: int) -> None:
        """Move on by one step."""
        self._bar.update(
            self._task, advance=1, epoch=epoch, loss=f"{loss:.4f}", scale=scale_text(scale), skipped=skipped
        )


_log = logging.getLogger("golden.torch")
_said: set[str] = set()


def say_once(text: str) -> None:
    """Write a warning to the log ``golden.torch``, the first time that this process has it to say."""
    if text not in _said:
        _said.add(text)
        _log.warning(text)
