"""Paths of the repository."""

from __future__ import annotations

from pathlib import Path

__all__ = ["README", "RESULTS", "ROOT"]

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
#: Pages of measured figures.
RESULTS = ROOT / "docs" / "results"
