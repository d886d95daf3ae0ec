"""The protocol of the UART bridge, as data: the driver and the bridge's RTL obey this page.

The line has 8 data bits, no parity, 1 stop bit. Numbers are little-endian. The host sends one request and waits for its
answer before it sends the next.

**Request**

=====  ================================================================================================
bytes  contents
=====  ================================================================================================
1      operation, an `Operation`
4      address in bytes, a multiple of 4: of a register, or of a word of memory as the engine sees it
2      count of words of 32 bits, 1 to `MOST_WORDS`; 1 for registers, 0 for ``HELLO``
4 n    only of ``WRITE_REGISTER`` and ``WRITE_MEMORY``: the words
1      check: CRC-8 of all bytes before (polynomial x^8 + x^2 + x + 1, initial value 0, no reflection)
=====  ================================================================================================

**Answer**

=====  ================================================================================================
bytes  contents
=====  ================================================================================================
1      status, a `Status`
4 n    only with the status ``DONE``: the words of ``READ_REGISTER`` and ``READ_MEMORY``, or the `HELLO_WORDS` words of
       ``HELLO``: `MAGIC`, first address of the memory, its size in bytes (2^32 - 4 at most)
1      check: CRC-8 of all bytes before
=====  ================================================================================================

A register is written after the check has been found right, so that a damaged request does nothing. Words of memory may
be written as they come: the host sends such a request again. The host never repeats the write of a register.

Within a request the bridge waits at most `SILENCE` seconds for a byte; then it forgets the request, without an answer.
A request with an unknown operation, a count that is not allowed or an address that is no multiple of 4 is answered with
``REFUSED`` as soon as its first 7 bytes have come; the bridge then ignores what comes until there has been such a
silence. After any error the host stays silent for longer than that; then it sends ``HELLO`` until the very answer to it
comes. An error of a bus within an answer that has begun makes the check of the answer wrong.
"""

from __future__ import annotations

import enum
import struct

__all__ = ["HELLO_WORDS", "MAGIC", "MOST_WORDS", "SILENCE", "Operation", "Status", "answer", "check", "request"]

#: "CBF1" in ASCII, the first word of the answer to ``HELLO``.
MAGIC = 0x31464243
#: Words of the answer to ``HELLO``.
HELLO_WORDS = 3
#: Words of 32 bits in a request or an answer.
MOST_WORDS = 1024
#: Seconds after which the bridge forgets half a request.
SILENCE = 0.05

_HEAD = struct.Struct("<BIH")
_POLYNOMIAL = 0x07


class Operation(enum.IntEnum):
    """What the host asks for."""

    HELLO = 0x00
    READ_REGISTER = 0x10
    WRITE_REGISTER = 0x11
    READ_MEMORY = 0x20
    WRITE_MEMORY = 0x21


class Status(enum.IntEnum):
    """How a request ended."""

    DONE = 0x00
    #: A bus answered with an error, or the address is outside of registers or memory.
    BUS_ERROR = 0x01
    #: Unknown operation, or a count or an address that is not allowed.
    REFUSED = 0x02
    #: The check of the request was wrong.
    DAMAGED = 0x03


def _table() -> bytes:
    found = bytearray()
    for byte in range(256):
        for _ in range(8):
            byte = (byte << 1 ^ (_POLYNOMIAL if byte & 0x80 else 0)) & 0xFF
        found.append(byte)
    return bytes(found)


_TABLE = _table()


def check(content: bytes) -> int:
    """Return the CRC-8 of some bytes."""
    found = 0
    for byte in content:
        found = _TABLE[found ^ byte]
    return found


def request(operation: Operation, address: int = 0, count: int = 0, words: bytes = b"") -> bytes:
    """Return the bytes of a request."""
    content = _HEAD.pack(operation, address, count) + words
    return content + bytes([check(content)])


def answer(status: Status, words: bytes = b"") -> bytes:
    """Return the bytes of an answer."""
    content = bytes([status]) + words
    return content + bytes([check(content)])
