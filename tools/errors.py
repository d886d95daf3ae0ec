"""Errors of a measurement, one class for each kind."""

from __future__ import annotations

from pathlib import Path

__all__ = ["MeasurementError", "PlacementFailed", "SynthesisFailed", "ToolFailed", "ToolMissing"]

_SHOWN_LINES = 12


class MeasurementError(Exception):
    """A unit could not be measured."""


class ToolMissing(MeasurementError):
    """A tool is not installed."""


class ToolFailed(MeasurementError):
    """A tool ran and reported an error.

    Parameters
    ----------
    reason : str
        What happened, in a few words.
    log : Path
        All output of the tool; its last lines become part of the message.
    """

    step = "tool failed"

    def __init__(self, reason: str, log: Path) -> None:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
        said = [f"    {line}" for line in lines if line.strip()][-_SHOWN_LINES:]
        super().__init__("\n".join([f"{self.step}: {reason}; log: {log}", *said]))
        self.log = log


class SynthesisFailed(ToolFailed):
    """Yosys failed."""

    step = "synthesis failed"


class PlacementFailed(ToolFailed):
    """nextpnr failed."""

    step = "placement failed"
