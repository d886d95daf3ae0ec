"""Pictures of the tutorials."""

from __future__ import annotations

from typing import Any

from sphinx_gallery.scrapers import matplotlib_scraper

__all__ = ["scraper"]


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Keep the pictures of a tutorial as SVG, which stays sharp on any screen."""
    return matplotlib_scraper(block, block_vars, gallery_conf, format="svg", bbox_inches="tight")
