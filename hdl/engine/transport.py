"""What the driver needs of a connection to an engine: registers, memory, waiting."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Region", "Transport", "TransportError", "at_least", "closed"]


class TransportError(OSError):
    """The connection to the engine failed."""


def at_least(least: int, given: int, argument: str) -> int:
    """Accept an int of at least so much."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        wrong = ValueError if isinstance(given, int) else TypeError
        raise wrong(f"{argument}: got {given!r}, must be an int of at least {least}")
    return given


def closed(name: str) -> TransportError:
    """Return the error of a transport that is used after `Transport.close`."""
    return TransportError(f"{name}: the transport is closed; make another Engine")


class Region(NamedTuple):
    """A region of memory, in byte addresses of the engine's bus.

    Parameters
    ----------
    base : int
        First address.
    size : int
        Number of bytes.
    """

    base: int
    size: int


class Transport(Protocol):
    """A connection to an engine. Any object with these members serves; several threads may call them.

    Attributes
    ----------
    name : str
        What connects, in a few words, for `Engine.info`.
    memory : Region
        Memory that belongs to the driver, seen by the engine at these addresses.
    """

    name: str
    memory: Region

    def read(self, address: int) -> int:
        """Return a register's 32 bits, by its byte address.

        Raises
        ------
        TransportError
            If nothing answers.
        """

    def write(self, address: int, value: int) -> None:
        """Write a register of 32 bits.

        Raises
        ------
        TransportError
            If nothing answers, or the bus answers with an error.
        """

    def read_memory(self, address: int, length: int) -> bytes:
        """Return bytes of the region `memory`."""

    def write_memory(self, address: int, content: bytes | memoryview) -> None:
        """Write bytes into the region `memory`."""

    def wait(self, seconds: float) -> None:
        """Return when the engine raises its interrupt, or after about so many seconds; earlier does no harm."""

    def close(self) -> None:
        """End the connection. Closing again does nothing; all other methods then raise a TransportError."""
