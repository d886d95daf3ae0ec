"""The boards that the self-test is built for: another one with an ECP5 is a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tools.errors import ToolMissing

__all__ = ["BOARDS", "platform_of"]

#: Module and class in amaranth_boards, by the board's name on the command line.
BOARDS = {
    "ulx3s": "ulx3s:ULX3S_85F_Platform",
    "ulx3s-12f": "ulx3s:ULX3S_12F_Platform",
    "ulx3s-25f": "ulx3s:ULX3S_25F_Platform",
    "ulx3s-45f": "ulx3s:ULX3S_45F_Platform",
    "ulx3s-85f": "ulx3s:ULX3S_85F_Platform",
    "icepi-zero": "icepi_zero:IcepiZero1_3Platform",
}


def platform_of(board: str) -> Any:
    """Return a new platform for a board.

    Raises
    ------
    ValueError
        If there is no board of that name; the message lists them.
    ToolMissing
        If amaranth-boards is not installed.
    """
    if board not in BOARDS:
        raise ValueError(f"board: got {board!r}, must be one of {', '.join(BOARDS)}")
    module, _, name = BOARDS[board].partition(":")
    try:
        return getattr(import_module(f"amaranth_boards.{module}"), name)()
    except ModuleNotFoundError:
        raise ToolMissing(
            "amaranth-boards is not installed: run `make bitstream`, which installs it, "
            "or pip install -e '.[board]' -c constraints.txt"
        ) from None
