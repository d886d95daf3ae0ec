"""The registers of all threads, and the operands that instructions name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.cuda.ptx.memory import LOCAL, PARAMETERS
from tests.cuda.ptx.program import BITS, Kernel

__all__ = ["THREADS", "Bits", "Lanes", "Registers", "unsigned"]

THREADS = 256  # of a block

Lanes = NDArray[np.int64]
Bits = NDArray[Any]

_ADDRESS = re.compile(r"\[([%$\w]+)(?:\+(-?\d+))?\]")
_WINDOWS = {"param": PARAMETERS, "local": LOCAL, "shared": 0}


def unsigned(bits: int) -> np.dtype[Any]:
    """Return the type of NumPy that holds so many bits."""
    return np.dtype(f"u{max(bits, 8) // 8}")


class Registers:
    """The registers of the threads of some blocks.

    Parameters
    ----------
    kernel : Kernel
    lanes : array of int
        The numbers of the threads.

    Attributes
    ----------
    named : dict of str to array
        Raw bits, one element for each thread.
    """

    def __init__(self, kernel: Kernel, lanes: Lanes) -> None:
        self._kernel, self._lanes = kernel, lanes
        # Registers that nobody wrote hold something.
        self.named: dict[str, Bits] = {
            name: np.ones(len(lanes), bool) if kind == "pred" else np.full(len(lanes), 77, unsigned(BITS[kind]))
            for name, kind in kernel.registers.items()
        }
        self._special = {
            "%tid.x": (lanes % THREADS).astype(np.uint32),
            "%ntid.x": np.full(len(lanes), THREADS, np.uint32),
        }
        self.name_blocks(0, 0)

    def name_blocks(self, first: int, blocks: int) -> None:
        """Say which blocks of how many the threads are of."""
        self._special["%ctaid.x"] = (first + self._lanes // THREADS).astype(np.uint32)
        self._special["%nctaid.x"] = np.full(len(self._lanes), blocks, np.uint32)

    def read(self, text: str, bits: int) -> Callable[[Lanes], Bits]:
        """Return a function for an operand's raw bits of each thread."""
        if text.startswith("{"):
            parts = [self.read(part.strip(), 0) for part in text[1:-1].split(",")]
            return lambda lanes: np.stack([part(lanes) for part in parts], axis=1).view(unsigned(bits))[:, 0]
        register = self.named.get(text)
        if register is not None:
            narrow = bits if 1 < bits < register.itemsize * 8 else 0
            return (lambda lanes: register[lanes].astype(unsigned(narrow))) if narrow else lambda lanes: register[lanes]
        if text.startswith("%"):
            if text not in self._special:
                raise NotImplementedError(text)
            return lambda lanes: self._special[text][lanes]
        number = self._constant(text, bits)
        return lambda lanes: np.full(len(lanes), number)

    def _constant(self, text: str, bits: int) -> Any:
        if text in self._kernel.symbols:
            space, at = self._kernel.symbols[text]
            value = _WINDOWS[space] + at
        elif text.startswith(("0f", "0d")):
            value = int(text[2:], 16)
        else:
            value = int(text, 0)
        if bits == 1:
            return np.bool_(value)
        return unsigned(bits).type(value & (1 << bits) - 1)

    def write(self, text: str) -> Callable[[Lanes, Bits], None]:
        """Return a function that puts raw bits into a register, or into a vector of them."""
        if text.startswith("{"):
            names = [name.strip() for name in text[1:-1].split(",")]
            writers = [None if name == "_" else self.named[name] for name in names]

            def split(lanes: Lanes, bits: Bits) -> None:
                each = bits[:, np.newaxis].view(unsigned(bits.itemsize * 8 // len(writers)))
                for i, register in enumerate(writers):
                    if register is not None:
                        register[lanes] = each[:, i]

            return split
        register = self.named[text]

        def whole(lanes: Lanes, bits: Bits) -> None:
            register[lanes] = bits

        return whole

    def address(self, text: str) -> Callable[[Lanes], NDArray[np.uint64]]:
        found = _ADDRESS.fullmatch(text)
        if not found:
            raise NotImplementedError(f"address {text}")
        base, offset = self.read(found[1], 64), np.int64(int(found[2] or 0)).astype(np.uint64)
        return lambda lanes: base(lanes).astype(np.uint64) + offset
