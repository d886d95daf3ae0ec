"""What the precision contexts and the precision levels of this thread are: two stacks, innermost last.

A `threading.local` and not a context variable: torch.compile follows and guards the one, and refuses the other. As with
torch.autocast, a new thread starts from the process-wide defaults.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from golden.torch.half import HalfType
    from golden.torch.levels import pol

__all__ = ["Settings", "scopes"]


@dataclass(frozen=True)
class Settings:
    """What a `golden.torch.precision` context sets: the half type, the model-wide level and the chunk length."""

    half: HalfType
    level: int
    chunk: int | None
    enabled: bool


class _Scopes(threading.local):
    precisions: tuple[Settings, ...] = ()
    pols: tuple[pol, ...] = ()


scopes = _Scopes()
