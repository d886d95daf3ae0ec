"""What tools have found, put into the documentation: the kept results, the pages that show them, and the picture."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from lab.evidence.picture import draw
from tools.evidence import KEPT, collect, published, records_of
from tools.pages import refresh
from tools.paths import ROOT
from tools.results import keep

__all__ = ["PICTURE", "publish"]

PICTURE = ROOT / "docs" / "figures" / "evidence.svg"


def publish(tools: Collection[str] | None = None) -> list[Path]:
    """Publish what the last whole runs here have found, and return the pages that have changed.

    Parameters
    ----------
    tools : collection of str, optional
        Of these tools; of all if it is not given.
    """
    for name, result in collect().items():
        if tools is None or name in tools:
            keep(result, KEPT)
    pages = refresh()
    draw([record for result in published().values() for record in records_of(result)], PICTURE)
    return [*pages, PICTURE]
