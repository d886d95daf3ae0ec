"""A statement about a device."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """A statement about a device, with the sum that shows it.

    Parameters
    ----------
    statement : str
        What was found.
    products : tuple of (int, int)
        Codes of the factors of the sum; products of zeros are left out.
    result : int or None
        Code of its result.
    """

    statement: str
    products: tuple[tuple[int, int], ...] = ()
    result: int | None = None

    def __str__(self) -> str:
        if self.result is None:
            return self.statement
        shown = " + ".join(f"{a:#x}*{b:#x}" for a, b in self.products[:4]) + (
            " + ..." if len(self.products) > 4 else ""
        )
        return f"{self.statement}\n    {shown} -> {self.result:#x}"
