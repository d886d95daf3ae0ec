"""``python -m lab``: list the rooms, one line each."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tools.interrupts import ending_on_interrupt

__all__ = ["main", "rooms"]


def rooms() -> dict[str, str]:
    """Return the first sentence about every command, which is a room or a module in it, by its name."""
    listed = {}
    for room in sorted(path.parent for path in Path(__file__).parent.glob("*/__init__.py")):
        if (room / "__main__.py").is_file():
            listed[room.name] = room / "__init__.py"
        else:
            listed |= {f"{room.name}.{path.stem}": path for path in sorted(room.glob("*.py")) if _runs(path)}
    return {name: _sentence(path) for name, path in listed.items()}


def _runs(path: Path) -> bool:
    return 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")


def _sentence(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


@ending_on_interrupt("lab", "the list is not whole")
def main() -> int:
    """Print the list."""
    print("usage: python -m lab.ROOM [--help]    (most rooms have a target of make, which installs what they need)\n")
    listed = rooms()
    for name, sentence in listed.items():
        print(f"  {name:<{max(map(len, listed))}}  {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
