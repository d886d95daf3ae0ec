"""Files as Berkeley TestFloat's `testfloat_gen` writes them: ``87FF E850 E850 01``, operands, result, flags.

A file does not name its function, rounding mode and definition of tininess; only the command that wrote it did. Its
flags have the bit order of RISC-V, as ours. Every line has the same length, so a block of lines is an array of
characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from lab.suites.functions import Codes, Function, VectorError, Vectors

__all__ = ["read_testfloat"]

BLOCK = 1 << 16
_NOT_HEX = 255
_NIBBLES = np.full(256, _NOT_HEX, np.uint8)
_NIBBLES[list(b"0123456789ABCDEF")] = np.arange(16)
_NIBBLES[list(b"abcdef")] = np.arange(10, 16)


def read_testfloat(stream: BinaryIO, name: str, function: Function) -> Iterator[Vectors]:
    """Yield the vectors of a file, block by block.

    Parameters
    ----------
    stream : binary file
    name : str
        Of the file, for messages.
    function : Function
        The function that the file tests.

    Raises
    ------
    VectorError
        If a line does not consist of the function's operands, result and flags.
    """
    digits = [fmt.width // 4 for fmt in (*function.given, function.unit.result)] + [2]
    length = sum(digits) + len(digits)
    first = 1
    while text := stream.read(BLOCK * length):
        if not text.endswith(b"\n") and len(text) < BLOCK * length:
            text += b"\n"
        columns = _columns(text, digits, length)
        if columns is None:
            raise _malformed(text, name, first, function, digits)
        *given, results, flags = columns
        yield Vectors(function, given, results, flags.astype(np.uint8), np.arange(first, first + len(flags)))
        first += len(flags)


def _columns(text: bytes, digits: list[int], length: int) -> list[Codes] | None:
    """Return the numbers of a block, an array for each column, or None if a line differs in form from the others."""
    if len(text) % length:
        return None
    characters = np.frombuffer(text, np.uint8).reshape(-1, length)
    ends = np.cumsum([width + 1 for width in digits]) - 1
    if (characters[:, ends[:-1]] != ord(" ")).any() or (characters[:, ends[-1]] != ord("\n")).any():
        return None
    columns = []
    for end, width in zip(ends, digits, strict=True):
        nibbles = _NIBBLES[characters[:, end - width : end]]
        if (nibbles == _NOT_HEX).any():
            return None
        code: Codes = np.zeros(len(nibbles), np.uint16 if width <= 4 else np.uint32)
        for column in nibbles.T:
            code = code << 4 | column
        columns.append(code)
    return columns


def _malformed(text: bytes, name: str, first: int, function: Function, digits: list[int]) -> VectorError:
    form = re.compile(" ".join(f"[0-9A-Fa-f]{{{width}}}" for width in digits))
    lines = text.decode("ascii", "backslashreplace").split("\n")
    at = next(at for at, line in enumerate(lines) if not form.fullmatch(line))
    widths = ", ".join(map(str, digits))
    must = f"operands, result and flags of {function.name}: hexadecimal numbers of {widths} digits"
    return VectorError(name, first + at, lines[at], must)
