"""Back ends compute products. Each names the requests that it refuses, and one function chooses among them.

All give the same bits. An argument, `backend` or the variable ``CBFLOAT_BACKEND`` forces one. Otherwise the compiled
kernels serve a request unless they refuse it, and NumPy serves the rest.

Other distributions bring back ends, too: as entry points of the group ``cbfloat.backends``, each a function without
arguments that returns one. They are asked for by name only, and never listed, tried or loaded otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable

from golden.arrays.by_kernels import Kernels
from golden.arrays.by_numpy import NumPy
from golden.arrays.by_reference import ExactIntegers
from golden.arrays.requests import Answer, Request
from golden.kernels import library
from golden.nearest import did_you_mean

__all__ = ["ProductBackend", "as_backend", "backend", "backends", "forced", "serve"]

_VARIABLE = "CBFLOAT_BACKEND"
_GROUP = "cbfloat.backends"


@runtime_checkable
class ProductBackend(Protocol):
    """The name and the methods of a back end. Any object with them serves as ``backend=``."""

    name: str

    def obstacle(self, request: Request) -> str | None:
        """Return the reason to refuse a request, in words; None to serve it."""

    def compute(self, request: Request) -> Answer:
        """Return the result of a request, with the flags and counts that the request wants."""


_NUMPY = NumPy()
#: By name, fastest first.
_known: dict[str, ProductBackend] = {each.name: each for each in (Kernels(), _NUMPY, ExactIntegers())}
_kernels = _known["kernels"]
#: Those of other distributions that have been asked for.
_loaded: dict[str, ProductBackend] = {}

# One setting for the process, like the kernels' path, so that threads of other libraries have it, too.
_forced: ProductBackend | None = None
_variable_is_read = False


def backends() -> tuple[str, ...]:
    """Return the names of the back ends of this machine, for ``backend=``.

    Returns
    -------
    tuple of str
        ``"kernels"`` (compiled; only with a library), ``"numpy"`` and ``"exact"`` (exact integers, very slow). Those
        that other distributions bring are not listed: they may take long, as a simulation does.
    """
    return tuple(name for name in _known if name != "kernels" or len(library.paths()) > 1)


def as_backend(given: object, argument: str = "backend") -> ProductBackend:
    """Accept a back end or the name of one.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If there is none of that name.
    """
    if isinstance(given, str):
        if given in backends():
            return _known[given]
        if given not in _loaded:
            _loaded[given] = _from_outside(given, argument)
        return _loaded[given]
    if isinstance(given, type) or not isinstance(given, ProductBackend):
        raise TypeError(
            f"{argument}: got {given!r}, must be one of {', '.join(backends())}, or an object with name, obstacle and "
            "compute"
        )
    return given


def _from_outside(name: str, argument: str) -> ProductBackend:
    """Return the back end of this name that another distribution brings."""
    from importlib import metadata  # takes longer to import than the rest of this module

    brought = {each.name: each for each in metadata.entry_points(group=_GROUP)}
    if name not in brought:
        allowed = (*backends(), *sorted(brought))
        raise ValueError(f"{argument}: got {name!r}, must be one of {', '.join(allowed)}{did_you_mean(name, allowed)}")
    place = f"the entry point {brought[name].value} of the group {_GROUP}"
    try:
        found = brought[name].load()()
    except ImportError as missing:
        raise ValueError(f"{argument}: got {name!r}, but {place} cannot be loaded: {missing}") from missing
    if isinstance(found, type) or not isinstance(found, ProductBackend):
        raise TypeError(f"{argument}: got {name!r}, but {place} gave {found!r}, must have name, obstacle and compute")
    return found


def backend(name: str | ProductBackend) -> AbstractContextManager[None]:
    """Have one back end compute all products for a while, in the whole process.

    Conversions use the compiled library within ``backend("kernels")`` alone, NumPy within others. Products of tensors
    on a card (`golden.torch`) then run on the CPU.

    Parameters
    ----------
    name : str or ProductBackend
        One of `backends`, one that another distribution brings, such as ``"simulated"`` of `hdl.engine`, or an object
        with the attributes of `golden.ProductBackend`.

    Raises
    ------
    TypeError
        If `name` is neither a string nor such an object.
    ValueError
        If there is no such back end. A product that it does not serve raises a ValueError, too, which says who could.

    Examples
    --------
    >>> import golden
    >>> with golden.backend("exact"):
    ...     hex(golden.dot([0x3E00], [0x4000], operand="cbfloat16"))
    '0x40000000'
    """
    return _forcing(as_backend(name, "name"))


@contextmanager
def _forcing(chosen: ProductBackend) -> Iterator[None]:
    global _forced
    before = forced()
    with library.use(_path_of(chosen)):
        _forced = chosen
        try:
            yield
        finally:
            _forced = before


def _path_of(chosen: ProductBackend) -> str | None:
    """Return the path of the kernels beside a back end: NumPy, so that nobody else computes, or a compiled one."""
    if chosen is not _kernels:
        return "numpy"
    return "auto" if library.kernel_info()["path"] == "numpy" else None


def forced() -> ProductBackend | None:
    """Return the back end that `backend` or the variable forces, None if none is forced."""
    global _forced, _variable_is_read
    if not _variable_is_read:
        _variable_is_read = True
        if os.environ.get(_VARIABLE):
            _forced = as_backend(os.environ[_VARIABLE], _VARIABLE)
    return _forced


def serve(request: Request, given: object = None) -> Answer:
    """Return the answer to a request: of a back end that is given or forced, else of the fastest that serves it.

    Raises
    ------
    TypeError, ValueError
        If `given` is no back end, or it does not serve the request; the error says who could.
    """
    chosen = forced() if given is None else as_backend(given)
    if chosen is None:
        chosen = _NUMPY if _kernels.obstacle(request) else _kernels
    elif not request.length:  # the initial values, whoever is asked
        chosen = _NUMPY
    else:
        obstacle = chosen.obstacle(request)
        if obstacle is not None:
            others = [name for name in backends() if _known[name].obstacle(request) is None]
            raise ValueError(f"backend: got {chosen.name!r}, but {obstacle}; {' and '.join(others)} serve this product")
    return chosen.compute(request)
