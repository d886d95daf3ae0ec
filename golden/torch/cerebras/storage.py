"""`save` and `load` of a state dictionary in one file."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["load", "read", "save", "telling_of_a_full_disk"]

#: Globals in pickles of NumPy's numbers and arrays. A learning rate easily becomes a number of NumPy, as in a LambdaLR.
_OF_NUMPY: list[Any] = [
    np.float64(0).__reduce__()[0],
    np.empty(0).__reduce__()[0],
    np.ndarray,
    np.dtype,
    *{type(np.dtype(code)) for code in np.typecodes["All"] if code not in "OV"},
]
_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of this disk is used up",
    errno.EFBIG: "the file is larger than is allowed here",
}
_HDF5 = b"\x89HDF\r\n\x1a\n"


def save(state_dict: Any, ckpt_path: str | Path) -> None:
    """Write a structure of tensors and plain values into a file.

    The file appears under its name when everything is written: a process that dies before leaves the old file.

    Parameters
    ----------
    state_dict : object
        Dictionaries, lists, tuples and sets of tensors, arrays, numbers, strings and None.
    ckpt_path : path
        The file; an older one is replaced.

    Raises
    ------
    TypeError
        If `ckpt_path` is no path, or something in the structure cannot be written.
    OSError
        If the file cannot be written, for example because its folder does not exist, or the disk is full.
    """
    path = _path(ckpt_path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"ckpt_path: got {path}, must be in a folder that exists")
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with telling_of_a_full_disk(path):
            with partial.open("wb") as file:
                _write(state_dict, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def telling_of_a_full_disk(path: Path) -> Iterator[None]:
    """Raise an OSError with the path where a disk is full, of which some writers tell in other words, or nothing."""
    try:
        yield
    except Exception as error:
        number = _number_of(error)
        if number not in _FULL:
            raise
        raise OSError(number, f"{_FULL[number]}, so this was not written; what was there stays", str(path)) from error


def _number_of(error: BaseException | None) -> int | None:
    """Return the operating system's error number behind an exception; None if it comes from elsewhere."""
    while error is not None:
        found = re.search(r"\(os error (\d+)\)", str(error))  # of safetensors
        number = int(found[1]) if found else getattr(error, "errno", None)
        if number is not None:
            return number
        error = error.__cause__ or error.__context__
    return None


def _write(state_dict: Any, file: Any) -> None:
    try:
        torch.save(state_dict, file)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise TypeError(f"state_dict: cannot be written, must be tensors and plain values: {error}") from error


def load(ckpt_path: str | Path, map_location: Any = None, **kwargs: Any) -> Any:
    """Read what `save`, or ``torch.save``, has written.

    Parameters
    ----------
    ckpt_path : path
        The file.
    map_location : object, optional
        As for ``torch.load``; ``"cache"``, of the original, has no effect.
    **kwargs
        For ``torch.load``. Nothing but tensors, arrays and plain values is read unless ``weights_only=False`` is given,
        which runs what the file says: only for files that you trust.

    Raises
    ------
    TypeError
        If `ckpt_path` is no path.
    OSError
        If there is no such file, or it cannot be read.
    ValueError
        If the file is damaged, or of another kind.
    """
    path = _path(ckpt_path)
    with path.open("rb") as file:
        if file.read(len(_HDF5)) == _HDF5:
            raise ValueError(
                f"ckpt_path: {path} is an HDF5 file, as cerebras.pytorch writes; load it there and write it with "
                "torch.save"
            )
        file.seek(0)
        try:
            return read(file, map_location=None if map_location == "cache" else map_location, **kwargs)
        except (RuntimeError, EOFError, ValueError, KeyError) as error:
            raise ValueError(f"ckpt_path: {path} is damaged, or was not written by save") from error
        except Exception as error:  # pickle.UnpicklingError, whose own text advises to switch the check off
            raise ValueError(
                f"ckpt_path: {path} is damaged, or holds objects other than tensors, arrays and plain values"
            ) from error


def read(file: Any, **kwargs: Any) -> Any:
    """Read by ``torch.load``, which runs nothing of the file: tensors, plain values, NumPy's numbers and arrays."""
    with torch.serialization.safe_globals(_OF_NUMPY):
        return torch.load(file, **kwargs)


def _path(given: Any) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"ckpt_path: got {given!r}, must be a path")
    path = Path(given)
    if not path.name or "\0" in str(path):
        raise ValueError(f"ckpt_path: got {given!r}, must be the path of a file")
    return path
