"""Folders that a run writes into."""

from __future__ import annotations

from pathlib import Path

__all__ = ["make_folder"]


def make_folder(folder: Path, argument: str) -> None:
    """Make a folder and those above it; name the argument that asks for it if that fails.

    Raises
    ------
    OSError
        Of the kind that the system has raised.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"{argument}: got {folder}, where nothing can be written: {error.strerror}") from None
