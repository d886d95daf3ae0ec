"""Is the `golden` or `hdl` that Python finds the one of this distribution? Other distributions have such names, too."""

from __future__ import annotations

import importlib.util
from importlib.abc import InspectLoader

__all__ = ["check_origin"]

#: This line is in the ``__init__.py`` of `golden` and of `hdl`.
_MARK = '__distribution__ = "cbfloat"'


def check_origin(package: str) -> None:
    """Look at the file that an import would run, without running it.

    Parameters
    ----------
    package : str
        ``golden`` or ``hdl``.

    Raises
    ------
    ImportError
        If it belongs to another distribution, or if there is none.
    """
    spec = importlib.util.find_spec(package)
    loader = spec.loader if spec else None
    source = loader.get_source(package) if isinstance(loader, InspectLoader) else ""
    if source is None or _MARK in source:  # None: installed without sources
        return
    places = [spec.origin or "", *(spec.submodule_search_locations or [])] if spec else []
    place = next(filter(None, places), "none")
    raise ImportError(
        f"{package}: found {place}, must be the package {package} of the distribution cbfloat. "
        "Uninstall the other one, or move it out of the working directory and PYTHONPATH; then install this one again: "
        "python -m pip install --force-reinstall --no-deps, followed by cbfloat or the folder of its sources",
        name=package,
        path=place,
    )
