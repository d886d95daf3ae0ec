"""Compiled kernels on disk."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["Cubin", "Resources", "cache_folder", "read", "write"]


class Resources(NamedTuple):
    """What one thread, or one block, of a kernel takes.

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
    """A compiled variant: what the driver loads, and what each of its kernels takes."""

    image: bytes
    kernels: dict[str, Resources]


def cache_folder() -> Path:
    """Return the folder of compiled kernels: ``$XDG_CACHE_HOME/cbfloat/cuda``, or the same below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cbfloat" / "cuda"


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
