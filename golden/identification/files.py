"""Probes as a file that is run elsewhere, and the file with its results: npz, or CSV for programs without NumPy."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.code_arrays import code_dtype
from golden.files import write_whole
from golden.formats import FloatFormat
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
    writer.writerow(["matrix", "rows", "columns", "codes in hexadecimal, row by row"])
    for name, codes in arrays.items():
        writer.writerow([name, *codes.shape, " ".join(f"{code:x}" for code in codes.ravel().tolist())])
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


def _matrices(path: Path) -> dict[str, NDArray[Any]]:
    if _kind(path, "path") == ".npz":
        with np.load(path) as stored:
            return {name: stored[name] for name in stored.files}
    with path.open(newline="") as lines:
        csv.field_size_limit(2**31 - 1)
        rows = [row for row in csv.reader(lines) if row and row[0] != "matrix"]
    made = {}
    for name, height, width, codes in rows:
        made[name] = np.array([int(code, 16) for code in codes.split()], np.uint32).reshape(int(height), int(width))
    return made


def read_results(path: str | Path, asked: Sequence[Probe], out: FloatFormat) -> list[NDArray[Any]]:
    """Return the results of all probes, as codes of the format of the results.

    Raises
    ------
    ValueError
        If a product is missing, has another shape, or holds a number that is no code.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    try:
        matrices = _matrices(path)
    except ValueError as error:
        raise ValueError(f"path: got {path}, which cannot be read: {error}") from None
    results = []
    for number, probe in enumerate(asked):
        given = matrices.get(f"r{number}")
        wanted = (probe.a.shape[0], probe.b.shape[1])
        if given is None:
            raise ValueError(f"path: got {path} without r{number}, must have r0 to r{len(asked) - 1}")
        if given.shape != wanted or given.dtype.kind not in "ui":
            raise ValueError(
                f"path: got r{number} of shape {given.shape} in {given.dtype}, must be codes of shape {wanted}"
            )
        if given.size and int(given.max()) >> out.width:
            raise ValueError(f"path: got {int(given.max()):#x} in r{number}, must be codes of {out}")
        results.append(given.astype(code_dtype(out)))
    return results
