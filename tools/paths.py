"""The root of the repository, and types of options: a count, a folder or a file to write."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

__all__ = ["ROOT", "at_least_one", "file_to_write", "folder_to_write"]

ROOT = Path(__file__).resolve().parents[1]


def at_least_one(text: str) -> int:
    """Return the number that an option gives; an error of argparse unless it is an integer of at least 1."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text}, must be at least 1")
    return number


def folder_to_write(text: str) -> Path:
    """Return the folder that an option names; an error of argparse if nothing can be written there. Nothing is made."""
    path = file_to_write(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"got {text}, which is no folder, must be one or not exist yet")
    return path


def file_to_write(text: str) -> Path:
    """Return the file that an option names; an error of argparse if it cannot be written. Nothing is made."""
    if not text or any(ord(character) < ord(" ") for character in text):  # programs read lists of paths by lines
        raise argparse.ArgumentTypeError(f"got {text!r}, must be a path without control characters")
    path = Path(text)
    nearest = next(each for each in path.absolute().parents if each.exists())
    if not nearest.is_dir():
        raise argparse.ArgumentTypeError(f"got {text}, but {nearest} is no folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"got {text}, but nothing can be written into {nearest}")
    return path
