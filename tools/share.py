"""An equal share of a long list of checks, for runs that have no time for all of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Share", "add_share"]

Item = TypeVar("Item")


@dataclass(frozen=True)
class Share:
    """One of `count` shares that together hold every item once.

    Parameters
    ----------
    number : int
        From 1 to `count`.
    count : int
    """

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """Return the share that a text such as ``2/3`` names.

        Raises
        ------
        argparse.ArgumentTypeError
            If the text names none.
        """
        found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
        if not found or int(found[1]) > int(found[2]):
            raise argparse.ArgumentTypeError(f"got {text!r}, must be K/N with K from 1 to N, such as 2/3")
        return cls(int(found[1]), int(found[2]))

    @property
    def is_whole(self) -> bool:
        """Whether it leaves nothing out."""
        return self.count == 1

    def of(self, items: Sequence[Item]) -> list[Item]:
        """Return one of each `count` neighbours, which are often alike; its position varies, in case they recur."""
        return [each for at, each in enumerate(items) if (at + at // self.count) % self.count == self.number - 1]


def add_share(parser: argparse.ArgumentParser, items: str) -> None:
    """Add the option ``--share K/N`` to a command line.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    items : str
        The plural name of the shared items, for the help.
    """
    parser.add_argument(
        "--share",
        type=Share.parse,
        default=Share(),
        metavar="K/N",
        help=f"the K-th of N shares of the {items}, which together are all of them (default: all)",
    )
