"""The card of this machine, and results that were found on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import golden.cuda
from tools import results
from tools.results import Table, measured

__all__ = ["about", "architecture", "earlier", "keep", "name_of", "skipped"]


def skipped(what: str) -> bool:
    """Return whether this machine lacks a card, or a compiler for it, so that `what` cannot run; print the reason."""
    found = golden.cuda.info()
    missing = []
    if found.nvrtc is None:
        missing.append("NVRTC (pip install 'cbfloat[cuda]')")
    if not any(card.architecture for card in found.cards):
        missing.append("a CUDA device with its driver")
    elif not torch.cuda.is_available():
        missing.append(f"a PyTorch for CUDA (this is {torch.__version__})")
    if missing:
        print(f"{what}: skipped, for this machine lacks {' and '.join(missing)}")
    return bool(missing)


def architecture() -> int:
    """Return the architecture of the first card that has kernels."""
    return next(card.architecture for card in golden.cuda.info().cards if card.architecture)


def about() -> dict[str, Any]:
    """Return the card, its driver and the versions of the software."""
    found = golden.cuda.info()
    card = next((each._asdict() for each in found.cards if each.architecture), None)
    cuda = torch.version.cuda
    return {"card": card, "driver": found.driver, "nvrtc": found.nvrtc, "torch": torch.__version__, "cuda": cuda}


def name_of(on: dict[str, Any]) -> str:
    """Return the name of the card in a result of `about`."""
    return str(on["card"]["name"]) if on["card"] else "no card"


def keep(
    tool: str,
    source: str,
    data: dict[str, Any],
    tables: Sequence[Table],
    folder: Path | None = None,
    *,
    note: str = "",
    **more: str,
) -> Path:
    """Write a result with the card's description, and further fields, into docs/results or another folder."""
    on = about()
    note = f"{name_of(on)}, driver {on['driver']}, NVRTC {on['nvrtc']}, PyTorch {on['torch']}. {note}".rstrip()
    result = measured(tool, [source], note=note, tables=tables, data={"about": on, **data}, **more)
    return results.keep(result, folder)


def earlier(tool: str, folder: Path | None = None) -> dict[str, Any]:
    """Return the data of a result with the same source on the same machine; empty if there is none."""
    data = results.earlier(tool, folder)
    same = data.pop("about", None) == json.loads(json.dumps(about()))
    return data if same else {}
