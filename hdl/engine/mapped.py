"""The engine behind a memory-mapped file: ``/dev/mem``, a UIO device, a BAR of a PCIe card."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

from hdl.engine.transport import Region, TransportError, at_least, closed
from hdl.matrix_engine.registers import ADDRESS_BITS

__all__ = ["Mapped"]

_WINDOW = 1 << ADDRESS_BITS
_PAUSE = 50e-6


class Mapped:
    """Registers and memory in files that are mapped.

    Parameters
    ----------
    path : str or Path
        File with the registers.
    offset : int
        Where they begin in it, in bytes: a multiple of 4.
    memory : Region
        The memory as the engine sees it: its address and its bytes.
    memory_path : str or Path, optional
        File with the memory; that of the registers unless given.
    memory_offset : int, optional
        Where the memory begins in its file; at the engine's own address unless given, as in ``/dev/mem``.

    Raises
    ------
    TypeError, ValueError
        If an argument is no int or out of range, or if the memory overlaps the registers.
    TransportError
        If a file cannot be mapped.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        memory: Region,
        offset: int = 0,
        memory_path: str | Path | None = None,
        memory_offset: int | None = None,
    ) -> None:
        if at_least(0, offset, "offset") % 4:
            raise ValueError(f"offset: got {offset}, must be a multiple of 4 from 0")
        at_least(0, memory.base, "memory, its address")
        at_least(1, memory.size, "memory, its bytes")
        begin = at_least(0, memory.base if memory_offset is None else memory_offset, "memory_offset")
        self.name, self.memory = f"mapped {path}", memory
        self._maps: list[mmap.mmap] = []
        window, at = self._map("path", path, offset, _WINDOW)
        # ctypes reads and writes the 32 bits of a register in one access.
        self._registers = (ctypes.c_uint32 * (_WINDOW // 4)).from_buffer(window, at)
        argument, its_path = ("path", path) if memory_path is None else ("memory_path", memory_path)
        try:
            if its_path == path and begin < offset + _WINDOW and offset < begin + memory.size:
                raise ValueError(
                    f"memory: got {tuple(memory)}, at {begin:#x} in the file of the registers, must lie apart from "
                    f"their {_WINDOW} bytes at {offset:#x}; memory_path and memory_offset say where it is"
                )
            self._memory, self._at = self._map(argument, its_path, begin, memory.size)
        except BaseException:
            self.close()
            raise

    def _map(self, argument: str, path: str | Path, offset: int, size: int) -> tuple[mmap.mmap, int]:
        """Map a part of a file; return the map, and where the part begins in it."""
        begin = offset - offset % mmap.ALLOCATIONGRANULARITY
        try:
            file = os.open(path, os.O_RDWR | getattr(os, "O_SYNC", 0))
            try:
                mapped = mmap.mmap(file, offset - begin + size, offset=begin)
            finally:
                os.close(file)
        except (OSError, ValueError, OverflowError) as error:
            raise TransportError(
                f"{argument}: got {path}, of which {size} bytes from {offset:#x} on cannot be mapped: {error}"
            ) from None
        self._maps.append(mapped)
        return mapped, offset - begin

    def read(self, address: int) -> int:
        self._check_open()
        return int(self._registers[address // 4])

    def write(self, address: int, value: int) -> None:
        self._check_open()
        self._registers[address // 4] = value

    def read_memory(self, address: int, length: int) -> bytes:
        self._check_open()
        begin = self._at + address - self.memory.base
        return self._memory[begin : begin + length]

    def write_memory(self, address: int, content: bytes | memoryview) -> None:
        self._check_open()
        begin = self._at + address - self.memory.base
        self._memory[begin : begin + len(content)] = content

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, _PAUSE))

    def close(self) -> None:
        if self._maps:
            del self._registers  # a map with a view on it cannot be closed
        while self._maps:
            self._maps.pop().close()

    def _check_open(self) -> None:
        if not self._maps:
            raise closed(self.name)
