"""``python -m lab.equivalence BEFORE AFTER``: prove every unit equivalent to its namesake."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.equivalence.correspondence import difference
from lab.equivalence.revisions import verilog_of
from lab.equivalence.unit import unit_of_verilog
from lab.netlists.errors import ToolError
from tools.interrupts import ending_on_interrupt

__all__ = ["compare", "main"]

_COMMENT = re.compile(r"//.*$", re.MULTILINE)


def compare(before: str, after: str) -> tuple[str, str]:
    """Compare two texts of Verilog; return the proven relation, and the difference or doubt; one is empty."""
    if _COMMENT.sub("", before) == _COMMENT.sub("", after):
        return "identical but for comments", ""
    found = difference(unit_of_verilog(before), unit_of_verilog(after))
    return ("", found) if found else ("proven equivalent", "")


@ending_on_interrupt("lab.equivalence", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; status 1 if a unit is not proven equivalent, 2 if it cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.equivalence", description="Prove the Verilog of units equivalent, cycle by cycle."
    )
    parser.add_argument("before", help="a folder of Verilog, a git revision, or . for the working tree")
    parser.add_argument("after", nargs="?", default=".", help="the same (default: the working tree)")
    parser.add_argument("--units", default="*", help="names, comma-separated, * stands for anything (default: all)")
    parser.add_argument("--variants", action="store_true", help="also every depth, fewer levels, without flags, ...")
    given = parser.parse_args(arguments)
    try:
        with TemporaryDirectory() as work:
            both = [
                verilog_of(source, Path(work) / name, variants=given.variants)
                for name, source in (("before", given.before), ("after", given.after))
            ]
        names = [
            name for name in both[0] if any(fnmatchcase(name, pattern.strip()) for pattern in given.units.split(","))
        ]
        if not names:
            raise ValueError(f"units: got {given.units!r}, must be some of {', '.join(both[0])}")
        failed = 0
        for place, name in enumerate(names, start=1):
            start = time.monotonic()
            proven, different = compare(both[0][name], both[1][name]) if name in both[1] else ("", "is not there")
            failed += bool(different)
            print(
                f"[{place}/{len(names)}] {name}: {proven or f'NOT PROVEN: {different}'} "
                f"({time.monotonic() - start:.1f} s)",
                flush=True,
            )
    except (ToolError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    for name in sorted(both[1].keys() - both[0].keys()):
        print(f"{name}: only in {given.after}, compared with nothing")
    print(f"{len(names) - failed} of {len(names)} units proven equivalent")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
