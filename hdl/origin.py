"""Refuses a `golden` of another distribution before any of it runs: `hdl` depends on the parameters in this one.

`cbfloat.aliases` does the same for both packages, but `hdl` does not need `cbfloat`.
"""

from __future__ import annotations

import importlib.util
from importlib.abc import InspectLoader
from importlib.machinery import SourceFileLoader

__all__ = ["check_golden"]


def check_golden() -> None:
    """Inspect the file that ``import golden`` would run, without running it.

    Raises
    ------
    ImportError
        If it belongs to another distribution, or if there is none.
    """
    spec = importlib.util.find_spec("golden")
    loader = spec.loader if spec else None
    if spec and spec.origin and not isinstance(loader, InspectLoader):  # that of pytest, which cocotb starts
        loader = SourceFileLoader("golden", spec.origin)
    source = loader.get_source("golden") if isinstance(loader, InspectLoader) else ""
    if source is None or '__distribution__ = "cbfloat"' in source:  # None: installed without sources
        return
    places = [spec.origin or "", *(spec.submodule_search_locations or [])] if spec else []
    place = next(filter(None, places), "none")
    raise ImportError(
        f"golden: found {place}, must be the package golden of the distribution cbfloat, to which hdl belongs. "
        "Uninstall the other one, or move it out of the working directory and PYTHONPATH; then install this one again: "
        "python -m pip install --force-reinstall --no-deps, followed by cbfloat or the folder of its sources",
        name="golden",
        path=place,
    )


check_golden()
