"""Regions of a page that a tool writes, between two comments that stay."""

from __future__ import annotations

__all__ = ["replace_region"]


def replace_region(text: str, content: str, begin: str, end: str) -> str:
    """Return a page with new content between two markers.

    Parameters
    ----------
    text : str
        The page.
    content : str
        Whole lines.
    begin, end : str
        The markers.

    Raises
    ------
    ValueError
        If the page does not have the markers, in order.
    """
    head, has_begin, rest = text.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"README.md: got no region {begin} ... {end}, must have one for the table")
    return f"{head}{begin}\n{content}{end}{tail}"
