"""The lines that the firmware must print: the same operands, and golden's products."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from golden import CBFLOAT16, matmul

__all__ = ["LEVELS", "SIZES", "expected"]

#: M, N and K of each product.
SIZES = ((1, 1, 1), (3, 5, 40), (8, 9, 33), (12, 7, 64))
#: Both have results in float32.
LEVELS = (0, 1)
_CHUNK = 32


def _noise() -> Iterator[int]:
    """Yield the words of Marsaglia's xorshift."""
    word = 0x2545F491
    while True:
        word ^= word << 13 & 0xFFFFFFFF
        word ^= word >> 17
        word ^= word << 5 & 0xFFFFFFFF
        yield word


def _codes(noise: Iterator[int], rows: int, columns: int) -> NDArray[np.uint16]:
    """Return codes of numbers around 1.0."""
    words = [next(noise) for _ in range(rows * columns)]
    codes = [word & 0x81FF | (27 + (word >> 16) % 8) << 9 for word in words]
    return np.array(codes, np.uint16).reshape(rows, columns)


def expected(sizes: Sequence[tuple[int, int, int]] = SIZES) -> list[str]:
    """Return the lines of the firmware."""
    noise, lines = _noise(), []
    for m, n, k in sizes:
        for level in LEVELS:
            a, b = _codes(noise, m, k), _codes(noise, k, n)
            product = matmul(a, b, operand=CBFLOAT16, level=level, chunk=_CHUNK)
            lines.append(f"product {0:08x} {zlib.crc32(product.astype('<u4').tobytes()):08x}")
    return [*lines, f"interrupts {len(lines):08x}", "end"]
