"""Notices about requests that only a wafer could fulfil: they are accepted, and reported once."""

from __future__ import annotations

import logging

__all__ = ["say_once"]

_log = logging.getLogger("golden.torch")
_said: set[str] = set()


def say_once(text: str) -> None:
    """Write a warning to the log ``golden.torch``, the first time that this process has it to say."""
    if text not in _said:
        _said.add(text)
        _log.warning(text)
