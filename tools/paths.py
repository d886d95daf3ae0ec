"""Where things are in the repository."""

from __future__ import annotations

from pathlib import Path

__all__ = ["README", "ROOT"]

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
