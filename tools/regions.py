"""Regions of a page that a tool writes, between two comments that stay, and rows of the front page's conclusions."""

from __future__ import annotations

__all__ = ["CONCLUSIONS", "replace_region", "replace_row"]

#: Markers of the table of conclusions in README.md: a row for each tool that measures or judges.
CONCLUSIONS = ("<!-- conclusions:begin -->", "<!-- conclusions:end -->")


def replace_region(text: str, content: str, begin: str, end: str, page: str = "page") -> str:
    """Return a page with new content between two markers.

    Parameters
    ----------
    text : str
        The page.
    content : str
        Whole lines.
    begin, end : str
        The markers.
    page : str
        Name of the page, for the error.

    Raises
    ------
    ValueError
        If the page does not have the markers, in order.
    """
    head, has_begin, rest = text.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{page}: got no region {begin} ... {end}, must have one for the table")
    return f"{head}{begin}\n{content}{end}{tail}"


def replace_row(text: str, subject: str, conclusion: str) -> str:
    """Return a page with a new conclusion in a subject's row of the table of conclusions.

    Parameters
    ----------
    text : str
        The page.
    subject : str
        First cell of the row.
    conclusion : str
        Second cell; the third, a link, stays.

    Raises
    ------
    ValueError
        If there is no such table, or no such row.
    """
    begin, end = CONCLUSIONS
    lines, found = text.partition(begin)[2].partition(end)[0].strip("\n").splitlines(), False
    for at, line in enumerate(lines):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0] == subject:
            lines[at], found = f"| {subject} | {conclusion} | {cells[2]} |", True
    if not found:
        raise ValueError(f"README.md: got no row {subject!r} between {begin} and {end}, must have one")
    return replace_region(text, "\n".join(lines) + "\n", begin, end, "README.md")
