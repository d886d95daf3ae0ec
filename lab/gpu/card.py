"""What the lab asks of a card, and says where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden.cuda

__all__ = ["RESULTS", "keep", "skipped"]

#: Where the results of runs on a card are kept.
RESULTS = Path("docs/results")


def skipped(what: str) -> bool:
    """Tell, in one line, whether something cannot run here: there is no card, or nothing to compile for it."""
    if golden.cuda.available():
        return False
    found = golden.cuda.info()
    missing = "NVRTC (pip install 'cbfloat[cuda]')" if found.nvrtc is None else "a CUDA device with its driver"
    print(f"{what}: skipped, for this machine lacks {missing}")
    return True


def keep(name: str, found: dict[str, Any]) -> None:
    """Write a result, with what it was found on."""
    about = golden.cuda.info()
    card = about.cards[0]._asdict() if about.cards else None
    whole = {"card": card, "driver": about.driver, "nvrtc": about.nvrtc, **found}
    (RESULTS / name).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
