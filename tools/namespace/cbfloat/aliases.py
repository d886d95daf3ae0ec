"""How ``cbfloat.golden`` becomes another name of `golden`, and ``cbfloat.hdl`` of `hdl`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

__all__ = ["Aliases", "check_origin"]

_PREFIX = "cbfloat."
_PACKAGES = ("golden", "hdl")
#: This line is in the ``__init__.py`` of both, by which they differ from packages of other distributions.
_MARK = '__distribution__ = "cbfloat"'


class Aliases(MetaPathFinder):
    """Finds every module below ``cbfloat.golden`` and ``cbfloat.hdl``, by its name without ``cbfloat.``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the place of a module, None for a name outside of both.

        Raises
        ------
        ImportError
            If Python finds another package of its name.
        """
        name = fullname.removeprefix(_PREFIX)
        package = name.partition(".")[0]
        if name == fullname or package not in _PACKAGES:
            return None
        check_origin(package)
        found = importlib.util.find_spec(name)
        if found is None:
            return None
        return ModuleSpec(
            fullname, _Loader(found), origin=found.origin, is_package=found.submodule_search_locations is not None
        )


class _Loader(InspectLoader):
    """Loads a module under its name without ``cbfloat.``, and enters it under both."""

    def __init__(self, found: ModuleSpec) -> None:
        self._found = found

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes this module instead of the empty one that it made.
        sys.modules[module.__name__] = importlib.import_module(self._found.name)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module, which ``python -m`` runs."""
        loader = self._found.loader
        return loader.get_code(self._found.name) if isinstance(loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        """Return the text of a module."""
        loader = self._found.loader
        return loader.get_source(self._found.name) if isinstance(loader, InspectLoader) else None

    def is_package(self, fullname: str) -> bool:
        """Return whether a module is a package."""
        return self._found.submodule_search_locations is not None


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
    if spec and spec.origin and not isinstance(loader, InspectLoader):  # that of pytest, which cocotb starts
        loader = SourceFileLoader(package, spec.origin)
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
