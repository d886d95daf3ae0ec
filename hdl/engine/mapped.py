"""The engine behind a memory-mapped file: ``/dev/mem``, a UIO device, a BAR of a PCIe card."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

from hdl.engine.transport import Region, TransportError, closed
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
    ValueError
        If an argument is out of range.
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
        if offset < 0 or offset % 4:
            raise ValueError(f"offset: got {offset}, must be a multiple of 4 from 0")
        if memory.base < 0 or memory.size < 1:
            raise ValueError(f"memory: got {tuple(memory)}, must be an address from 0 and a size from 1, in bytes")
        if memory_offset is not None and memory_offset < 0:
            raise ValueError(f"memory_offset: got {memory_offset}, must be at least 0")
        self.name, self.memory = f"mapped {path}", memory
        begin = memory.base if memory_offset is None else memory_offset
        self._maps: list[mmap.mmap] = []
        window, at = self._map(path, offset, _WINDOW)
        # ctypes reads and writes the 32 bits of a register in one access.
        self._registers = (ctypes.c_uint32 * (_WINDOW // 4)).from_buffer(window, at)
        self._memory, self._at = self._map(path if memory_path is None else memory_path, begin, memory.size)

    def _map(self, path: str | Path, offset: int, size: int) -> tuple[mmap.mmap, int]:
        """Map a part of a file; return the map, and where the part begins in it."""
        begin = offset - offset % mmap.ALLOCATIONGRANULARITY
        try:
            file = os.open(path, os.O_RDWR | getattr(os, "O_SYNC", 0))
            try:
                mapped = mmap.mmap(file, offset - begin + size, offset=begin)
            finally:
                os.close(file)
        except (OSError, ValueError) as error:
            raise TransportError(
                f"path: got {path}, of which {size} bytes from {offset:#x} on cannot be mapped: {error}"
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
