"""Citations of the numeric contract, such as "NUMERICS section 5", become links to the section."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes

__all__ = ["link", "parts"]

_PAGE = "numerics"
_CITATION = re.compile(r"\bNUMERICS sections? \d+")
_HEADING = re.compile(r"^## ((\d+)\. .+?) *$", re.MULTILINE)


@cache
def _anchors() -> dict[str, str]:
    """Return the anchor of each section, by its number."""
    text = (Path(__file__).parents[1] / f"{_PAGE}.md").read_text(encoding="utf-8")
    return {
        number: re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading, number in _HEADING.findall(text)
    }


def parts(text: str) -> list[tuple[str, str]]:
    """Cut a text into pieces, each with the number of the section that it cites, or with nothing."""
    pieces, end = [], 0
    for found in _CITATION.finditer(text):
        pieces += [(text[end : found.start()], ""), (found.group(), found.group().split()[-1])]
        end = found.end()
    return [piece for piece in [*pieces, (text[end:], "")] if piece[0]]


def link(app: Any, document: nodes.document, name: str) -> None:
    """Put the links into a page that has been read."""
    if app.builder.format != "html":
        return
    for text in list(document.findall(nodes.Text)):
        if "NUMERICS" not in text or isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.reference)):
            continue
        new: list[nodes.Node] = []
        for piece, number in parts(text.astext()):
            if number in _anchors():
                place = f"{app.builder.get_relative_uri(name, _PAGE)}#{_anchors()[number]}"
                new.append(nodes.reference("", piece, refuri=place, internal=True))
            else:
                new.append(nodes.Text(piece))
        text.parent.replace(text, new)
