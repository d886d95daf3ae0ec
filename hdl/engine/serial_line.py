"""The engine behind a UART bridge, by the protocol of `hdl.engine.frames`."""

from __future__ import annotations

import struct
import time
from typing import Protocol

from hdl.engine.frames import HELLO_WORDS, MAGIC, MOST_WORDS, SILENCE, Operation, Status, check, request
from hdl.engine.transport import Region, TransportError

__all__ = ["Line", "SerialBridge", "open_port"]

_WORD = 4
#: Requests that may be repeated are sent so many times.
_ATTEMPTS = 3
_REPEATABLE = (Operation.HELLO, Operation.READ_MEMORY, Operation.WRITE_MEMORY)
_PAUSE = 1e-3
_REASONS = {
    None: "no answer, or a damaged one; is the board on, and its speed right?",
    Status.BUS_ERROR: "the bus of the board answered with an error",
    Status.REFUSED: "the bridge refused it; do bridge and driver have the same version?",
    Status.DAMAGED: "it reached the bridge damaged",
}


class Line(Protocol):
    """A serial line: what pyserial's ``Serial`` has, and is used here."""

    def read(self, size: int) -> bytes:
        """Return so many bytes, or fewer after its timeout."""

    def write(self, content: bytes) -> object:
        """Send bytes."""

    def reset_input_buffer(self) -> None:
        """Discard all bytes received so far."""

    def close(self) -> None:
        """End the connection."""


def open_port(port: str, baud: int) -> Line:
    """Return a serial port of the system, with a timeout of a second.

    Raises
    ------
    ModuleNotFoundError
        If pyserial is not installed.
    TransportError
        If the port cannot be opened.
    """
    try:
        import serial
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Engine.serial needs pyserial: pip install 'cbfloat[serial]'", name="serial"
        ) from None
    try:
        return serial.Serial(port, baud, timeout=1.0)
    except OSError as error:
        raise TransportError(f"port: got {port!r}, which cannot be opened: {error}") from None


class SerialBridge:
    """Registers and memory over a serial line.

    Parameters
    ----------
    line : Line
    name : str

    Raises
    ------
    TransportError
        If no bridge of this kind answers.
    """

    def __init__(self, line: Line, name: str = "serial line") -> None:
        self.name, self._line = name, line
        time.sleep(2 * SILENCE)  # whatever came before is forgotten
        line.reset_input_buffer()
        magic, base, size = struct.unpack("<3I", self._ask(Operation.HELLO, wanted=HELLO_WORDS))
        if magic != MAGIC:
            raise TransportError(f"port: got {magic:#010x} from {name}, must be {MAGIC:#010x}: is it the UART bridge?")
        self.memory = Region(base, size)

    def read(self, address: int) -> int:
        return int.from_bytes(self._ask(Operation.READ_REGISTER, address, 1, wanted=1), "little")

    def write(self, address: int, value: int) -> None:
        self._ask(Operation.WRITE_REGISTER, address, 1, value.to_bytes(_WORD, "little"))

    def read_memory(self, address: int, length: int) -> bytes:
        begin, end = address - address % _WORD, -(-(address + length) // _WORD) * _WORD
        found = bytearray()
        for at in range(begin, end, MOST_WORDS * _WORD):
            count = min(MOST_WORDS, (end - at) // _WORD)
            found += self._ask(Operation.READ_MEMORY, at, count, wanted=count)
        return bytes(found[address - begin : address - begin + length])

    def write_memory(self, address: int, content: bytes | memoryview) -> None:
        begin, end = address - address % _WORD, address + len(content)
        before = self.read_memory(begin, address - begin) if begin < address else b""
        after = self.read_memory(end, -end % _WORD) if end % _WORD else b""
        words = before + bytes(content) + after
        for at in range(0, len(words), MOST_WORDS * _WORD):
            part = words[at : at + MOST_WORDS * _WORD]
            self._ask(Operation.WRITE_MEMORY, begin + at, len(part) // _WORD, part)

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, _PAUSE))

    def close(self) -> None:
        self._line.close()

    def _ask(
        self, operation: Operation, address: int = 0, count: int = 0, words: bytes = b"", wanted: int = 0
    ) -> bytes:
        """Send a request; return the words of its answer."""
        content, length = request(operation, address, count, words), _WORD * wanted
        for left in reversed(range(_ATTEMPTS if operation in _REPEATABLE else 1)):
            self._line.write(content)
            status, found = self._answer(length)
            if status is Status.DONE:
                return found
            time.sleep(2 * SILENCE)  # the bridge drops a partial request
            self._line.reset_input_buffer()
            # A damaged request may be refused: its check comes last.
            if not left or status is Status.BUS_ERROR:
                break
        reason = _REASONS[status]
        raise TransportError(f"{self.name}: {operation.name} at address {address:#x}: {reason}")

    def _answer(self, length: int) -> tuple[Status | None, bytes]:
        """Return the status of an answer, None if none came or it is damaged, and its words."""
        head = self._line.read(1)
        if not head or head[0] not in set(Status):
            return None, b""
        status = Status(head[0])
        rest = self._line.read((length if status is Status.DONE else 0) + 1)
        whole = len(rest) == (length if status is Status.DONE else 0) + 1
        return (status, rest[:-1]) if whole and check(head + rest[:-1]) == rest[-1] else (None, b"")
