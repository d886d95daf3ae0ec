"""The compiled library, found and loaded at first use, and the path and threads that serve a call."""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from golden.flags import EVENTS
from golden.formats import FloatFormat
from golden.rounding import Rounding

__all__ = [
    "NAMES",
    "Active",
    "active",
    "address",
    "follow",
    "format_number",
    "keep_threads",
    "kernel_info",
    "paths",
    "use",
    "warn_of_slowness",
]

#: The numbers of the paths in the C interface, fastest path first.
_NUMBERS = {"avx512fp16": 3, "avx512": 2, "avx2": 1, "portable": 0}
#: The paths of the library, fastest first.
COMPILED_PATHS = tuple(_NUMBERS)

#: The tables of golden that names.h has, too, in its words.
NAMES = "; ".join("".join(f"{name} " for name in axis) for axis in (Rounding, EVENTS))

_VERSION, _NEWEST = 5, "cbfloat_names"
_FOLDER = Path(__file__).resolve().parent
_SLOW_SECONDS = 2.0


class Active(NamedTuple):
    """The library that serves a call, the number of its path in the C interface, and the count of threads."""

    library: ctypes.CDLL
    path: int
    threads: int


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """Return the library with the types of its functions declared.

    Raises
    ------
    ImportError
        If it is of another version than this file, from before its newest function, or has other rounding modes or
        events than golden.
    """
    version = library.cbfloat_kernels_version()
    if version != _VERSION or not hasattr(library, _NEWEST):
        raise ImportError(
            f"{library._name}: got version {version}, must be {_VERSION} with {_NEWEST}; "
            "build it again with pip install -e ."
        )
    library.cbfloat_names.argtypes, library.cbfloat_names.restype = [], ctypes.c_char_p
    if (names := library.cbfloat_names().decode()) != NAMES:
        raise ImportError(
            f"{library._name}: got modes and events {names!r}, must be {NAMES!r} as in golden; make names.h "
            "agree and build it again with pip install -e ."
        )
    number, pointer, integer = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
    library.cbfloat_encode.argtypes = [integer, integer, number, number, pointer, integer, pointer]
    library.cbfloat_quantize.argtypes = [integer, integer, number, number, pointer, integer, pointer]
    library.cbfloat_decode.argtypes = [integer, integer, number, number, pointer, pointer]
    library.cbfloat_convert.argtypes = [integer, integer, number, number, number, pointer, pointer]
    for name in ("encode", "quantize", "decode", "convert"):
        getattr(library, f"cbfloat_{name}").restype = None
    library.cbfloat_multiply.argtypes = [ctypes.c_char_p]
    library.cbfloat_multiply_indexed.argtypes = [ctypes.c_char_p] * 3
    library.cbfloat_multiply_rounded.argtypes = [ctypes.c_char_p] * 4
    library.cbfloat_multiply_counted.argtypes = [ctypes.c_char_p] * 5
    for name in ("accumulate", "slide", "overlap", "correlate"):
        getattr(library, f"cbfloat_{name}").argtypes = [ctypes.c_char_p]
    return library


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    found = next((file for suffix in EXTENSION_SUFFIXES if (file := _FOLDER / f"native{suffix}").is_file()), None)
    return None if found is None else declared(ctypes.CDLL(str(found)))


def _path_number(path: str) -> int:
    return _NUMBERS[path]


@lru_cache(maxsize=1)
def paths() -> tuple[str, ...]:
    """Return the paths that this machine runs, fastest first; ``"numpy"``, which all run, is the last."""
    library = _library()
    compiled = [path for path in COMPILED_PATHS if library and library.cbfloat_path_available(_path_number(path))]
    return (*compiled, "numpy")


def _checked_path(path: object, argument: str) -> str:
    if not isinstance(path, str) or path not in ("auto", *COMPILED_PATHS, "numpy"):
        raise ValueError(f"{argument}: got {path!r}, must be auto, {', '.join(COMPILED_PATHS)} or numpy")
    if path == "auto":
        return paths()[0]
    if path not in paths():
        missing = "" if _library() else "; there is no compiled library, pip install with a C++ compiler builds it"
        raise ValueError(f"{argument}: got {path!r}, must be one that this machine runs: {', '.join(paths())}{missing}")
    return path


def _checked_threads(threads: object, argument: str) -> int:
    if not isinstance(threads, int) or isinstance(threads, bool):
        raise TypeError(f"{argument}: got {threads!r}, must be an int of at least 1")
    if not 1 <= threads <= 1024:
        raise ValueError(f"{argument}: got {threads}, must be 1 to 1024")
    return threads


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _threads_of_environment() -> int:
    given = os.environ.get("CBFLOAT_THREADS", "")
    if not given:
        of_openmp = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # one for each nested level
        is_number = of_openmp.isdecimal() and int(of_openmp) > 0
        return min(int(of_openmp) if is_number else _processors(), 1024)
    if not given.isdecimal():
        raise ValueError(f"CBFLOAT_THREADS: got {given!r}, must be a number of threads from 1 to 1024")
    return _checked_threads(int(given), "CBFLOAT_THREADS")


class _Setting(NamedTuple):
    path: str
    threads: int
    asked_for: bool  # the path was named, not found
    threads_asked_for: bool = False

    def active(self) -> Active | None:
        library = _library()
        if library is None or self.path == "numpy":
            return None
        return Active(library, _path_number(self.path), self.threads)


# One setting for the process, so that a thread that a library starts, as automatic differentiation may, has it, too.
_setting: _Setting | None = None
_active: Active | None = None


def _current() -> _Setting:
    global _setting, _active
    if _setting is None:
        given = os.environ.get("CBFLOAT_KERNELS", "") or "auto"
        if os.environ.get("CBFLOAT_BACKEND") not in (None, "", "kernels"):
            given = "numpy"  # for calls other than products; `golden.arrays.backends` reads the name
        threads, is_given = _threads_of_environment(), bool(os.environ.get("CBFLOAT_THREADS"))
        _setting = _Setting(_checked_path(given, "CBFLOAT_KERNELS"), threads, given != "auto", is_given)
        _active = _setting.active()
    return _setting


def active() -> Active | None:
    """Return the library and path that serve a call now; None means NumPy.

    Raises
    ------
    ValueError
        If this machine or the library cannot provide the value of ``CBFLOAT_KERNELS`` or ``CBFLOAT_THREADS``.
    """
    if _setting is None:
        _current()
    return _active


def kernel_info() -> dict[str, str | int]:
    """Tell which code serves the array functions.

    Returns
    -------
    dict
        ``path``: ``"avx512fp16"``, ``"avx512"``, ``"avx2"``, ``"portable"`` or ``"numpy"``; the environment variable
        ``CBFLOAT_KERNELS`` chooses another than the fastest. ``threads``: the most that a call uses, by
        ``CBFLOAT_THREADS``, else by ``torch.set_num_threads`` once a product of `golden.torch` has run, else by
        ``OMP_NUM_THREADS``, else one per processor.

    Raises
    ------
    ValueError
        If one of the variables holds what this machine or the library has not.
    """
    setting = _current()
    return {"path": setting.path, "threads": 1 if setting.path == "numpy" else setting.threads}


@contextmanager
def use(path: str | None = None, threads: int | None = None) -> Iterator[None]:
    """Choose path and threads for a while, in the whole process; the results are the same bits on every path.

    Parameters
    ----------
    path : str, optional
        One of `paths`, or ``"auto"`` for the fastest.
    threads : int, optional
        The most threads that a call uses, 1 to 1024.

    Raises
    ------
    TypeError
        If `threads` is not an int.
    ValueError
        If this machine does not run `path`, or `threads` is out of range.
    """
    global _setting, _active
    before = _current()
    _setting = _Setting(
        before.path if path is None else _checked_path(path, "path"),
        before.threads if threads is None else _checked_threads(threads, "threads"),
        before.asked_for or path is not None,
        before.threads_asked_for or threads is not None,
    )
    _active = _setting.active()
    try:
        yield
    finally:
        _setting = before
        _active = before.active()


def follow(threads: int) -> None:
    """Use as many threads as another library, unless ``CBFLOAT_THREADS`` or `use` says how many."""
    global _setting, _active
    setting = _setting or _current()
    if setting.threads != threads and not setting.threads_asked_for:
        _setting = setting._replace(threads=min(threads, 1024))
        _active = _setting.active()


def keep_threads() -> None:
    """Have `follow` do nothing from now on."""
    global _setting
    _setting = _current()._replace(threads_asked_for=True)


_warned = False


def warn_of_slowness(seconds: float) -> None:
    """Warn once, before an operation that takes long on NumPy, that a compiled library would be faster."""
    global _warned
    setting = _current()
    # With a library, NumPy serves what returns flags, and there is nothing to install.
    if _warned or seconds < _SLOW_SECONDS or setting.asked_for or setting.path != "numpy":
        return
    _warned = True
    warnings.warn(
        f"golden runs on NumPy, about {seconds:.0f} s for this call: the compiled kernels are missing. "
        "Install a C++ compiler and run pip install again to have them; CBFLOAT_KERNELS=numpy silences this.",
        RuntimeWarning,
        stacklevel=2,
    )


def address(array: NDArray[Any]) -> int:
    """Return where an array's first element lies: what ``array.ctypes.data`` says, sooner where that is possible."""
    flags = array.flags
    if flags.c_contiguous and flags.writeable and array.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]  # an array is a buffer
    return array.ctypes.data


def format_number(fmt: FloatFormat) -> int:
    """Return the format as the C interface has it, see CBFLOAT_FORMAT in kernels.h."""
    return fmt.exponent_bits + 256 * fmt.fraction_bits + 65536 * fmt.bias
