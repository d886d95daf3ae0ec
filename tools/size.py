"""``python -m tools.size`` or ``make size``: lines and files of each room, product and evidence apart."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.pages import replace_region
from tools.paths import ROOT
from tools.results import Table

__all__ = ["MARKERS", "PAGE", "main", "room_of", "table"]

PAGE = ROOT / "CONTRIBUTING.md"
MARKERS = ("<!-- size:begin -->", "<!-- size:end -->")
#: The top-level folders, and how deep a room lies in them.
_PARTS = {
    "product": {"golden": 2, "golden/torch": 3, "hdl": 2},
    "evidence": {"lab": 1, "sim": 1, "tests": 1, "tools": 1},
}


def room_of(path: str) -> tuple[str, str]:
    """Return part and room of a file, such as (``product``, ``golden/arrays``); both empty outside of the parts."""
    for part, depths in _PARTS.items():
        depth = max((depth for folder, depth in depths.items() if path.startswith(f"{folder}/")), default=0)
        if depth:
            return part, "/".join(path.split("/")[:-1][:depth])
    return "", ""


def table() -> Table:
    """Return lines and files of each part and each of its rooms, as git tracks them."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines, files = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for path in filter(Path.is_file, (ROOT / name for name in told.split("\0") if name)):
        part, room = room_of(path.relative_to(ROOT).as_posix())
        for key in ((part, ""), (part, room)) if part else ():
            lines[key] += path.read_bytes().count(b"\n")
            files[key] += 1
    order = sorted(files, key=lambda key: ([*_PARTS].index(key[0]), key[1]))
    names = [f"`{room}`" if room else f"**{part}**" for part, room in order]
    rows = [(name, f"{lines[key]:,}", f"{files[key]:,}") for name, key in zip(names, order, strict=True)]
    return Table(("room", "lines", "files"), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.size", description=__doc__)
    parser.add_argument("--update-docs", action="store_true", help=f"put the table into {PAGE.name}")
    given = parser.parse_args(arguments)
    text = table().markdown()
    print(text, end="")
    if given.update_docs:
        page = replace_region(PAGE.read_text(encoding="utf-8"), text, *MARKERS, PAGE.name)
        PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
