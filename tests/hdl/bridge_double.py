"""A double of the UART bridge, in front of any transport: it reads requests as `hdl.engine.frames` says."""

from __future__ import annotations

import struct

from hdl.engine import TransportError
from hdl.engine.frames import MAGIC, MOST_WORDS, Operation, Status, answer, check

WRITES = (Operation.WRITE_REGISTER, Operation.WRITE_MEMORY)


class BridgeDouble:
    """Bytes in, bytes out; as a line it is what pyserial's ``Serial`` is for the driver.

    Parameters
    ----------
    transport : hdl.engine.Transport
        What lies behind the bridge.
    damage : callable, optional
        Changes an answer on its way; it gets the number of the answer and its bytes.
    """

    def __init__(self, transport, damage=lambda number, content: content):
        self.transport, self.damage = transport, damage
        self.pending, self.sent, self.operations, self.closed = b"", b"", [], False

    def write(self, content):
        self.pending += bytes(content)
        while (whole := self.length()) is not None and len(self.pending) >= whole:
            request, self.pending = self.pending[:whole], self.pending[whole:]
            self.sent += self.damage(len(self.operations), self.serve(request))

    def read(self, size):
        found, self.sent = self.sent[:size], self.sent[size:]
        return found

    def reset_input_buffer(self):
        self.sent = b""

    def close(self):
        self.closed = True

    def length(self):
        """Return the bytes of the request that has begun, None if its head is not there."""
        if len(self.pending) < 7:
            return None
        operation, address, count = struct.unpack("<BIH", self.pending[:7])
        if not allowed(operation, address, count):
            return 7
        return 8 + 4 * count * (operation in WRITES)

    def serve(self, request):
        operation, address, count = struct.unpack("<BIH", request[:7])
        self.operations.append((operation, address, count))
        if not allowed(operation, address, count):
            return answer(Status.REFUSED)
        if check(request[:-1]) != request[-1]:
            return answer(Status.DAMAGED)
        words = request[7:-1]
        try:
            match operation:
                case Operation.HELLO:
                    return answer(Status.DONE, struct.pack("<3I", MAGIC, *self.transport.memory))
                case Operation.READ_REGISTER:
                    return answer(Status.DONE, struct.pack("<I", self.transport.read(address)))
                case Operation.READ_MEMORY:
                    return answer(Status.DONE, self.transport.read_memory(address, 4 * count))
                case Operation.WRITE_REGISTER:
                    self.transport.write(address, int.from_bytes(words, "little"))
                case Operation.WRITE_MEMORY:
                    self.transport.write_memory(address, words)
        except TransportError:
            return answer(Status.BUS_ERROR)
        return answer(Status.DONE)


def allowed(operation, address, count):
    if address % 4:
        return False
    if operation == Operation.HELLO:
        return count == 0
    if operation in (Operation.READ_REGISTER, Operation.WRITE_REGISTER):
        return count == 1
    return operation in set(Operation) and 1 <= count <= MOST_WORDS
