"""Probes as a file that is run elsewhere, and the file with its results: npz, or CSV for programs without NumPy."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import as_codes
from golden.files import write_whole
from golden.formats import FloatFormat
from golden.identification.device import unsigned_codes
from golden.identification.probes import Probe

__all__ = ["kinds", "read_results", "write_probes", "write_results"]

_KINDS = (".npz", ".csv")


def _kind(path: Path, argument: str) -> str:
    if path.suffix not in _KINDS:
        raise ValueError(f"{argument}: got {path}, must be a file of type {' or '.join(_KINDS)}")
    return path.suffix


def _write(path: Path, arrays: dict[str, NDArray[Any]], argument: str) -> None:
    if _kind(path, argument) == ".npz":
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]  # the stubs take names for options
        write_whole(path, packed.getvalue())
        return
    text = io.StringIO()
    writer = csv.writer(text)
    # A line for each row of a matrix: a spreadsheet's cell has at most 32,767 characters, csv's field 131,072.
    writer.writerow(["matrix", "rows", "columns", "codes of a row in hexadecimal"])
    for name, codes in arrays.items():
        for row in codes.tolist() if codes.size else [[]]:
            writer.writerow([name, *codes.shape, *(f"{code:x}" for code in row)])
    write_whole(path, text.getvalue().encode())


def kinds(asked: Sequence[Probe]) -> dict[str, str]:
    """Return the numbers of the products of each kind, as ranges."""
    found: dict[str, list[list[int]]] = {}
    for number, probe in enumerate(asked):
        ranges = found.setdefault(probe.name, [])
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return {
        name: ", ".join(f"{low}-{high}" if low != high else f"{low}" for low, high in ranges)
        for name, ranges in found.items()
    }


def write_probes(path: str | Path, asked: Sequence[Probe]) -> None:
    """Write the factors of every product: matrices ``a0``, ``b0``, ``a1``, ``b1`` and so on; initial values as ``c``.

    Raises
    ------
    ValueError
        If the file is neither .npz nor .csv.
    OSError
        If it cannot be written.
    """
    arrays = {}
    for number, probe in enumerate(asked):
        arrays[f"a{number}"], arrays[f"b{number}"] = probe.a, probe.b
        if probe.initial is not None:
            arrays[f"c{number}"] = probe.initial
    _write(Path(path), arrays, "path")


def write_results(path: str | Path, results: Sequence[NDArray[Any]]) -> None:
    """Write the products as matrices ``r0``, ``r1`` and so on, as a program on the device does.

    Raises
    ------
    ValueError, OSError
        As `write_probes`.
    """
    _write(Path(path), {f"r{number}": result for number, result in enumerate(results)}, "path")


def _read_npz(path: Path, wanted: Container[str]) -> dict[str, NDArray[Any] | None]:
    """Return the arrays of the file; None for those that are not wanted."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(
                f"path: got {path}, which is no .npz file, or only a part of one; write it with numpy.savez"
            )
        file.seek(0)
        where = str(path)
        found: dict[str, NDArray[Any] | None] = {}
        try:
            with np.load(file) as stored:
                for name in stored.files:
                    where = f"{path}, {name}"
                    found[name] = np.asarray(stored[name]) if name in wanted else None
        except Exception as error:  # zipfile, zlib and NumPy each have their own for damage
            raise ValueError(
                f"path: {where}: cannot be read ({str(error) or type(error).__name__}); "
                "write it anew with numpy.savez, from arrays of integers"
            ) from None
    return found


def _read_csv(path: Path, wanted: Container[str], out: FloatFormat) -> dict[str, NDArray[Any] | None]:
    """Return the matrices of the file, also of one that a spreadsheet has saved; None for those that are not wanted."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"path: got {path}, which is no text in UTF-8 ({error}); save it as CSV in UTF-8") from None
    separator = max(",;\t", key=text.count)  # csv.Sniffer fails where not all rows end in empty cells
    found: dict[str, tuple[str, list[str], list[str]] | None] = {}
    for number, row in enumerate(_rows(text, separator), 1):
        name, *cells = (cell.strip() for cell in row or [""])
        sizes, codes = cells[:2], " ".join(cells[2:]).split()
        where = f"path: {path}, row {number}, {name}"
        if name not in wanted:
            found[name] = None
        elif begun := found.get(name):
            if sizes != begun[1]:
                raise ValueError(f"{where}: got {sizes} behind the name, must be {begun[1]} as in the row before")
            if len(begun[2]) >= _places(sizes, where):
                raise ValueError(f"{where}: got {name} for the second time, must have every matrix once")
            begun[2].extend(codes)
        else:
            found[name] = where, sizes, codes
    return {name: None if begun is None else _matrix(*begun, out) for name, begun in found.items()}


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    """Read cells of any length, as the whole matrix may be in one."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield from csv.reader(text.splitlines(keepends=True), delimiter=separator)
    finally:
        csv.field_size_limit(before)


def _places(sizes: Sequence[str], where: str) -> int:
    if len(sizes) < 2 or not all(size.isdecimal() for size in sizes):
        raise ValueError(f"{where}: got {sizes} behind the name, must be the numbers of rows and of columns")
    return int(sizes[0]) * int(sizes[1])


def _matrix(where: str, sizes: Sequence[str], codes: Sequence[str], out: FloatFormat) -> NDArray[Any]:
    """Return a matrix from its numbers of rows and of columns, and its codes."""
    if len(codes) != _places(sizes, where):
        raise ValueError(f"{where}: got {len(codes)} codes, must be {sizes[0]} x {sizes[1]}")
    return np.array([_code(text, out, where) for text in codes], np.uint32).reshape(*map(int, sizes))


def _code(text: str, out: FloatFormat, where: str) -> int:
    most = (1 << out.width) - 1
    code = int(text, 16) if re.fullmatch("(0[xX])?[0-9a-fA-F]+", text) else -1
    if not 0 <= code <= most:
        raise ValueError(
            f"{where}: got the code {text!r}, must be in hexadecimal without a sign, 0 to {most:x} for {out}"
        )
    return code


def read_results(path: str | Path, asked: Sequence[Probe], out: FloatFormat) -> list[NDArray[Any]]:
    """Return the results of all probes, as codes of the format of the results.

    Signed integers of the width of the codes are taken as the same bits. A CSV file may have semicolons or tabs for
    commas, and empty cells at the end of its rows. The codes of a matrix may be in one cell or several, on one line or
    several.

    Raises
    ------
    TypeError
        If an array has no codes, or signed integers of another width.
    ValueError
        If the file is damaged or of another type, or a product is missing, has another shape, or holds a number that is
        no code.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    shapes = {f"r{number}": (probe.a.shape[0], probe.b.shape[1]) for number, probe in enumerate(asked)}
    is_npz = _kind(path, "path") == ".npz"
    found = _read_npz(path, shapes) if is_npz else _read_csv(path, shapes, out)
    results = []
    for name, shape in shapes.items():
        given, where = found.get(name), f"path: {path}, {name}"
        if given is None:
            first = ", ".join(each[:20] for each in list(found)[:4] if each) or "nothing"
            raise ValueError(
                f"path: got {path} without {name}, must have r0 to r{len(asked) - 1}; the file begins with {first}"
            )
        codes = unsigned_codes(given, out, where, "golden.encode makes codes of values")
        if given.shape != shape:
            raise ValueError(
                f"{where}: got codes of shape {given.shape}, must be {shape}: a{name[1:]} times b{name[1:]}"
            )
        results.append(as_codes(codes, out, where))
    return results
