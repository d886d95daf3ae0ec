"""Compiled kernels on disk."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["Cubin", "Resources", "cache_folder", "read", "write"]


class Resources(NamedTuple):
    """The resources of one thread, or of one block, of a kernel.

    Parameters
    ----------
    registers : int
        Of 32 bits, of a thread.
    spilled, stack : int
        Bytes that a thread stores and loads because its registers do not suffice, and bytes of its stack.
    shared : int
        Bytes of shared memory, of a block.
    """

    registers: int
    spilled: int
    stack: int
    shared: int


class Cubin(NamedTuple):
    """A compiled variant: the image that the driver loads, and the resources of each kernel."""

    image: bytes
    kernels: dict[str, Resources]


def cache_folder() -> Path:
    """Return the folder of compiled kernels: ``$XDG_CACHE_HOME/cbfloat/cuda``, or the same below ``~/.cache``.

    A user without a home folder gets a temporary one, and a warning once.
    """
    return _base() / "cbfloat" / "cuda"


def _base() -> Path:
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        return _temporary()


@cache
def _temporary() -> Path:
    """Return a temporary folder of the user, or one of this process if another user has taken its name."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"cbfloat-{user}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        # Code in this folder is run, so the folder must belong to this user.
        found = folder.lstat()
        if found.st_uid != user or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
            folder = Path(tempfile.mkdtemp(prefix="cbfloat-"))
    warnings.warn(
        f"there is no home folder: compiled kernels are kept in {folder}; set XDG_CACHE_HOME to choose a folder",
        stacklevel=4,
    )
    return folder


def read(file: Path) -> Cubin | None:
    """Read a kept variant; None if there is none, or if it is not whole."""
    try:
        head, image = file.read_bytes().split(b"\n", 1)
        about = json.loads(head)
        if about["sha256"] != hashlib.sha256(image).hexdigest():
            return None
        return Cubin(image, {name: Resources(**taken) for name, taken in about["kernels"].items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(file: Path, found: Cubin) -> None:
    """Keep a variant. Others may read or write the same file now; a folder that cannot be written keeps nothing."""
    about = {
        "sha256": hashlib.sha256(found.image).hexdigest(),
        "kernels": {name: taken._asdict() for name, taken in found.kernels.items()},
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}-", delete=False) as whole:
            whole.write(json.dumps(about).encode() + b"\n" + found.image)
        os.replace(whole.name, file)
    except OSError:
        pass
