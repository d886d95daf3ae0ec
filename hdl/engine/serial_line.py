"""The engine behind a UART bridge, by the protocol of `hdl.engine.frames`."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from hdl.engine.frames import HELLO_WORDS, MAGIC, MOST_WORDS, SILENCE, Operation, Status, check, request
from hdl.engine.transport import Region, TransportError, at_least, closed

__all__ = ["Line", "SerialBridge", "open_port"]

_WORD = 4
#: Requests that may be repeated are sent so many times.
_ATTEMPTS = 3
_REPEATABLE = (Operation.READ_MEMORY, Operation.WRITE_MEMORY)
_PAUSE = 1e-3
#: Seconds that the board and the system take at most, besides the time of the bytes on the line.
_PATIENCE = 1.0
#: Bits of a byte on the line, and bytes of the longest request and its answer, or more.
_BITS, _LONGEST = 10, _WORD * MOST_WORDS + 16
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
    """Return a serial port of the system. Its timeout lets the longest request and its answer pass.

    Raises
    ------
    ModuleNotFoundError
        If pyserial is not installed.
    TypeError, ValueError
        If `port` is no name, or `baud` no int of at least 1.
    TransportError
        If the port cannot be opened, or somebody else has it open.
    """
    if not isinstance(port, str):
        raise TypeError(f"port: got {port!r}, must be the name of a serial port")
    at_least(1, baud, "baud")
    try:
        import serial
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Engine.serial needs pyserial: pip install 'cbfloat[serial]'", name="serial"
        ) from None
    try:
        return serial.Serial(port, baud, timeout=_PATIENCE + _BITS * _LONGEST / baud, exclusive=True)
    except (OSError, OverflowError) as error:
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
        self._is_closed, self._is_unsure, self._greeting = False, True, b""
        self._lock = threading.Lock()  # a request and its answer belong together
        try:
            self._synchronise()
            self.memory = self._memory()
        except BaseException:  # whoever tries again finds the port free
            line.close()
            raise

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
        with self._lock:
            self._is_closed = True
            self._line.close()

    def _ask(self, operation: Operation, address: int, count: int, words: bytes = b"", wanted: int = 0) -> bytes:
        """Send a request; return the words of its answer."""
        content = request(operation, address, count, words)
        with self._lock:
            return self._answered(operation, address, content, wanted)

    def _answered(self, operation: Operation, address: int, content: bytes, wanted: int) -> bytes:
        if self._is_closed:
            raise closed(self.name)
        for _ in range(_ATTEMPTS if operation in _REPEATABLE else 1):
            if self._is_unsure:
                self._synchronise()
            status, found = self._exchange(content, wanted)
            if status is Status.DONE:
                self._is_unsure = False
                return found
            # A damaged request may be refused: its check comes last.
            if status is Status.BUS_ERROR:
                break
        raise self._failure(operation, address, status)

    def _memory(self) -> Region:
        magic, base, size = struct.unpack("<3I", self._greeting)
        if magic != MAGIC:
            raise TransportError(
                f"port: got {magic:#010x} from {self.name}, must be {MAGIC:#010x}: is it the UART bridge?"
            )
        return Region(base, size)

    def _synchronise(self) -> None:
        """Discard what may still come in answer to an earlier request.

        Answers keep the order of their requests: nothing comes after the answer to ``HELLO``.
        """
        for left in reversed(range(_ATTEMPTS)):
            time.sleep(2 * SILENCE)  # the bridge drops a partial request
            with self._failing():
                self._line.reset_input_buffer()
            status, found = self._exchange(request(Operation.HELLO), HELLO_WORDS)
            if status is Status.DONE and found == (self._greeting or found):
                self._greeting, self._is_unsure = found, False
                return
            if left:
                with self._failing():
                    self._line.read(_LONGEST)
        raise self._failure(Operation.HELLO, 0, None if status is Status.DONE else status)

    def _failure(self, operation: Operation, address: int, status: Status | None) -> TransportError:
        return TransportError(f"{self.name}: {operation.name} at address {address:#x}: {_REASONS[status]}")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise whatever the port raises, of pyserial or of the system, as a TransportError."""
        try:
            yield
        except Exception as error:
            raise TransportError(f"{self.name}: {error}; check the cable, then make another Engine") from error

    def _exchange(self, content: bytes, wanted: int) -> tuple[Status | None, bytes]:
        """Send a request once; return what `_answer` returns."""
        self._is_unsure = True  # also if Ctrl-C ends this: then the answer is still to come
        with self._failing():
            self._line.write(content)
            return self._answer(_WORD * wanted)

    def _answer(self, length: int) -> tuple[Status | None, bytes]:
        """Return the status of an answer, None if none came or it is damaged, and its words."""
        head = self._line.read(1)
        if not head or head[0] not in set(Status):
            return None, b""
        status = Status(head[0])
        rest = self._line.read((length if status is Status.DONE else 0) + 1)
        whole = len(rest) == (length if status is Status.DONE else 0) + 1
        return (status, rest[:-1]) if whole and check(head + rest[:-1]) == rest[-1] else (None, b"")
