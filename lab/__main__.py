"""``python -m lab``: list the rooms, one line each."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

__all__ = ["main", "rooms"]


def rooms() -> dict[str, str]:
    """Return the first sentence that each room says of itself, by the room's name."""
    packages = sorted(Path(__file__).parent.glob("*/__main__.py"))
    described = ((path.parent.name, path.with_name("__init__.py").read_text(encoding="utf-8")) for path in packages)
    return {name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0] for name, text in described}


def main() -> int:
    """Print the list."""
    print("usage: python -m lab.ROOM [--help]\n")
    listed = rooms()
    for name, sentence in listed.items():
        print(f"  {name:<{max(map(len, listed))}}  {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
