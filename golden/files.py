"""Files that are complete, or as they were before."""

from __future__ import annotations

import os
import threading
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once; a full disk leaves the older one, or none.

    Processes and threads may write the same file at the same time; the last one stays.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_native_id()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
