"""The state spaces of a launch, and who may touch what in them.

An address is a number of 64 bits. The parameters, the shared and the local memory have windows of their own in it, far
from any address of this machine, whose memory stands for the card's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOCAL", "PARAMETERS", "Fault", "GlobalMemory", "LocalMemory", "SharedMemory"]

#: Where the windows of the parameters and of local memory begin. Shared memory begins at 0.
PARAMETERS, LOCAL = 1 << 60, 1 << 61

Lanes = NDArray[np.int64]
_GRANULE = 2  # bytes, of which memory is watched
_FIRST = 4096  # address of this machine's memory: NumPy has no array at 0
_READ, _WRITTEN, _ADDED = 1, 2, 4
_MANY, _ATOMIC = 1 << 40, 1 << 41  # in the place of one thread: several, or any by atomic instructions


class Fault(AssertionError):
    """An access that no kernel may make."""


def _joined(view: NDArray[Any], places: NDArray[np.int64], values: NDArray[Any], how: np.ufunc) -> NDArray[Any]:
    """Join values to those at places one after the other, and return what each found there."""
    before = np.empty_like(values)
    for i, place in enumerate(places):
        before[i] = view[place]
        view[place] = how(before[i], values[i])
    return before


class GlobalMemory:
    """This machine's own memory, of which a launch may touch some regions.

    Parameters
    ----------
    regions : sequence of tuple of int
        First address of each and the first behind it.
    """

    def __init__(self, regions: Sequence[tuple[int, int]]) -> None:
        ordered = sorted(region for region in regions if region[0] < region[1])
        self._starts = np.array([start for start, _ in ordered], np.uint64)
        # Regions may overlap, as views of one array do.
        self._ends = np.maximum.accumulate(np.array([end for _, end in ordered], np.uint64))
        self._all = np.frombuffer((ctypes.c_ubyte * ((1 << 47) - _FIRST)).from_address(_FIRST), np.uint8)
        self._touched: list[tuple[NDArray[np.uint64], Lanes, int]] = []

    def _touch(self, addresses: NDArray[np.uint64], lanes: Lanes, size: int, how: int) -> None:
        if size < _GRANULE:
            raise NotImplementedError(f"{size} byte of global memory")
        region = np.searchsorted(self._starts, addresses, side="right").astype(np.int64) - 1
        inside = region >= 0
        inside[inside] = addresses[inside] + np.uint64(size) <= self._ends[region[inside]]
        if not inside.all():
            at = int(np.argmin(inside))
            raise Fault(f"thread {lanes[at]}: {size} bytes at {addresses[at]:#x}, which is not the launch's memory")
        if (addresses % np.uint64(size)).any():
            raise Fault(f"{size} bytes at {addresses[addresses % np.uint64(size) != 0][0]:#x}, which is not aligned")
        granules = np.arange(size // _GRANULE) + (addresses // np.uint64(_GRANULE)).astype(np.int64)[:, np.newaxis]
        self._touched.append((granules.ravel(), np.repeat(lanes, size // _GRANULE), how))

    def _places(self, addresses: NDArray[np.uint64], size: int, count: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        first = ((addresses - np.uint64(_FIRST)) // np.uint64(size)).astype(np.int64)
        return self._all.view(f"u{size}"), first[:, np.newaxis] + np.arange(count)

    def load(self, addresses: NDArray[np.uint64], lanes: Lanes, size: int, count: int) -> NDArray[Any]:
        """Return `count` elements of `size` bytes from each address, one row for each thread."""
        self._touch(addresses, lanes, size * count, _READ)
        view, places = self._places(addresses, size, count)
        return view[places]

    def store(self, addresses: NDArray[np.uint64], lanes: Lanes, values: NDArray[Any]) -> None:
        """Write the elements of each row behind each other to each address."""
        size, count = values.itemsize, values.shape[1]
        self._touch(addresses, lanes, size * count, _WRITTEN)
        view, places = self._places(addresses, size, count)
        view[places] = values

    def update(self, addresses: NDArray[np.uint64], lanes: Lanes, values: NDArray[Any], how: np.ufunc) -> NDArray[Any]:
        """Join values to those at each address, one thread after the other, and return the earlier values."""
        self._touch(addresses, lanes, values.itemsize, _ADDED)
        view, places = self._places(addresses, values.itemsize, 1)
        return _joined(view, places[:, 0], values, how)

    def finish(self) -> None:
        """Complain of memory that one thread of the launch wrote and another one used."""
        if not self._touched:
            return
        places, owners = (np.concatenate([each[i] for each in self._touched]) for i in (0, 1))
        how = np.repeat([each[2] for each in self._touched], [each[0].size for each in self._touched])
        order = np.argsort(places, kind="stable")
        places, owners, how = places[order], owners[order], how[order]
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        first, last = np.minimum.reduceat(owners, starts), np.maximum.reduceat(owners, starts)
        kinds = np.bitwise_or.reduceat(how, starts)
        wrong = (first != last) & ((kinds & _WRITTEN != 0) | (kinds == _READ | _ADDED))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise Fault(
                f"threads {first[at]} and {last[at]}: one wrote what the other one used, at "
                f"{places[starts[at]] * _GRANULE:#x}"
            )


class SharedMemory:
    """The shared memory of some thread blocks, and who used each part of it since the last barrier.

    Parameters
    ----------
    blocks, threads, size : int
        Thread blocks, threads of each, bytes of each.
    """

    def __init__(self, blocks: int, threads: int, size: int) -> None:
        self._size, self._threads = size, threads
        self._bytes = np.full(blocks * max(8, -(-size // 16) * 16), 0xCD, np.uint8)
        self._pitch = len(self._bytes) // blocks
        granules = len(self._bytes) // _GRANULE
        self._filled = np.zeros(granules, bool)
        self._writer, self._reader, self._copier = (np.full(granules, -1, np.int64) for _ in range(3))
        self._copies: list[tuple[Lanes, NDArray[np.uint64], NDArray[np.uint64]]] = []

    def barrier(self) -> None:
        """All threads have met: earlier accesses come before later ones."""
        self._writer.fill(-1)
        self._reader.fill(-1)

    def _granules(self, addresses: NDArray[np.uint64], lanes: Lanes, size: int, what: str) -> NDArray[np.int64]:
        at = addresses.astype(np.int64)
        if size < _GRANULE:
            raise NotImplementedError(f"{size} bytes of shared memory")
        if ((at < 0) | (at + size > self._size)).any():
            raise Fault(f"{size} bytes of shared memory {what} at {at.max()} of {self._size}")
        if (at % size).any():
            raise Fault(f"{size} bytes of shared memory {what} at {at[at % size != 0][0]}, which is not aligned")
        first = (at + lanes // self._threads * self._pitch) // _GRANULE
        return first[:, np.newaxis] + np.arange(size // _GRANULE)

    def _complain(self, wrong: NDArray[np.bool_], lanes: Lanes, others: NDArray[np.int64], what: str) -> None:
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise Fault(f"thread {lanes[row]} {what}" + (f" thread {others[row, column]}" if others.size else ""))

    def _reading(self, granules: NDArray[np.int64], lanes: Lanes) -> None:
        mine = lanes[:, np.newaxis]
        copier, writer, reader = self._copier[granules], self._writer[granules], self._reader[granules]
        self._complain(copier >= 0, lanes, copier, "reads shared memory while a copy is on its way, of")
        self._complain((writer >= 0) & (writer != mine), lanes, writer, "reads, without a barrier, what was written by")
        self._complain(~self._filled[granules], lanes, writer[:0], "reads shared memory that nobody wrote")
        self._reader[granules] = np.where((reader < 0) | (reader == mine), mine, _MANY)
        # Of several threads that read a granule by this instruction the last one is left: there are many.
        again = self._reader[granules]
        self._reader[granules[(again != mine) & (again != _MANY)]] = _MANY

    def _writing(self, granules: NDArray[np.int64], lanes: Lanes) -> None:
        mine = lanes[:, np.newaxis]
        copier, writer, reader = self._copier[granules], self._writer[granules], self._reader[granules]
        self._complain(copier >= 0, lanes, copier, "writes shared memory while a copy is on its way, of")
        self._complain(
            (writer >= 0) & (writer != mine), lanes, writer, "writes, without a barrier, what was written by"
        )
        self._complain((reader >= 0) & (reader != mine), lanes, reader, "writes, without a barrier, what was read by")
        self._writer[granules] = mine
        left = self._writer[granules]
        self._complain(left != mine, lanes, left, "writes at once with")
        self._filled[granules] = True

    def _view(self, addresses: NDArray[np.uint64], lanes: Lanes, size: int, count: int) -> tuple[NDArray[Any], Any]:
        first = (addresses.astype(np.int64) + lanes // self._threads * self._pitch) // size
        return self._bytes.view(f"u{size}"), first[:, np.newaxis] + np.arange(count)

    def load(self, addresses: NDArray[np.uint64], lanes: Lanes, size: int, count: int) -> NDArray[Any]:
        """Return `count` elements of `size` bytes from each address, one row for each thread."""
        self._reading(self._granules(addresses, lanes, size * count, "read"), lanes)
        view, places = self._view(addresses, lanes, size, count)
        return view[places]

    def store(self, addresses: NDArray[np.uint64], lanes: Lanes, values: NDArray[Any]) -> None:
        """Write the elements of each row behind each other to each address."""
        size, count = values.itemsize, values.shape[1]
        self._writing(self._granules(addresses, lanes, size * count, "written"), lanes)
        view, places = self._view(addresses, lanes, size, count)
        view[places] = values

    def update(self, addresses: NDArray[np.uint64], lanes: Lanes, values: NDArray[Any], how: np.ufunc) -> NDArray[Any]:
        """Join values to those at each address, one thread after the other, and return the earlier values."""
        granules = self._granules(addresses, lanes, values.itemsize, "added to")
        copier, writer, reader = self._copier[granules], self._writer[granules], self._reader[granules]
        self._complain(copier >= 0, lanes, copier, "adds to shared memory while a copy is on its way, of")
        mine = lanes[:, np.newaxis]
        written = (writer >= 0) & (writer != mine) & (writer != _ATOMIC)
        self._complain(written, lanes, writer, "adds, without a barrier, to what was written by")
        self._complain((reader >= 0) & (reader != mine), lanes, reader, "adds, without a barrier, to what was read by")
        self._complain(~self._filled[granules], lanes, writer[:0], "adds to shared memory that nobody wrote")
        self._writer[granules] = _ATOMIC
        view, places = self._view(addresses, lanes, values.itemsize, 1)
        return _joined(view, places[:, 0], values, how)

    def start_copy(self, to: NDArray[np.uint64], source: NDArray[np.uint64], lanes: Lanes) -> None:
        """Begin to copy 16 bytes for each thread, which may land at any time until it waits."""
        granules = self._granules(to, lanes, 16, "written by a copy")
        self._writing(granules, lanes)
        self._filled[granules] = False
        self._copier[granules] = lanes[:, np.newaxis]
        self._copies.append((lanes, to, source))

    def finish_copies(self, memory: GlobalMemory, lanes: Lanes, thread: int) -> None:
        """Let the copies of some threads land; in the launch `thread` is the first one here."""
        left = []
        for owners, to, source in self._copies:
            now = np.isin(owners, lanes)
            if now.any():
                granules = self._granules(to[now], owners[now], 16, "written by a copy")
                self._copier[granules] = -1
                self._writing(granules, owners[now])
                view, places = self._view(to[now], owners[now], 8, 2)
                view[places] = memory.load(source[now], owners[now] + thread, 8, 2)
            if not now.all():
                left.append((owners[~now], to[~now], source[~now]))
        self._copies = left

    def finish(self) -> None:
        """Complain of copies that nobody waited for."""
        if self._copies:
            raise Fault(f"thread {self._copies[0][0][0]} ends before its copy has landed")


class LocalMemory:
    """The memory of each single thread. Reading before writing is allowed: compilers copy members that are not set.

    Parameters
    ----------
    threads, size : int
        Threads of all blocks, bytes of each.
    """

    def __init__(self, threads: int, size: int) -> None:
        self._size = size
        self._bytes = np.full((threads, max(16, -(-size // 16) * 16)), 0xCD, np.uint8)

    def _places(self, addresses: NDArray[np.uint64], size: int, count: int) -> NDArray[np.int64]:
        at = addresses.astype(np.int64) - LOCAL
        if ((at < 0) | (at + size * count > self._size) | (at % (size * count) != 0)).any():
            raise Fault(f"{size * count} bytes of local memory at {at.max()} of {self._size}")
        return at[:, np.newaxis] // size + np.arange(count)

    def load(self, addresses: NDArray[np.uint64], lanes: Lanes, size: int, count: int) -> NDArray[Any]:
        """Return `count` elements of `size` bytes from each address, one row for each thread."""
        places = self._places(addresses, size, count)
        return self._bytes.view(f"u{size}")[lanes[:, np.newaxis], places]

    def store(self, addresses: NDArray[np.uint64], lanes: Lanes, values: NDArray[Any]) -> None:
        """Write the elements of each row behind each other to each address."""
        size, count = values.itemsize, values.shape[1]
        places = self._places(addresses, size, count)
        self._bytes.view(f"u{size}")[lanes[:, np.newaxis], places] = values
