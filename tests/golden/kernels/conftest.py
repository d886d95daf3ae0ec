import ctypes

import pytest

from golden.kernels import library

from ...shared import shared_folder
from .build import PATH_UNITS, UNITS, Builder, compile_plain
from .switches import Switched, build

#: Quick to compile.
OPTIMISATION = "-O0"


@pytest.fixture(scope="session")
def builder(tmp_path_factory):
    plain = shared_folder(tmp_path_factory, "plain", lambda folder: compile_plain(folder, OPTIMISATION))
    return Builder(tmp_path_factory.mktemp("kernels"), OPTIMISATION, plain)


@pytest.fixture(scope="session")
def switched(tmp_path_factory, builder):
    """Build a library with all faults of a table, in some paths, on top of given changes; all processes share it."""

    def make(name, faults, paths, given=()):
        units = set(UNITS) - (PATH_UNITS - {f"{path}.cpp" for path in paths})
        folder = shared_folder(
            tmp_path_factory, f"switched-{name}", lambda folder: build(builder, folder, faults, units, given)
        )
        return Switched(folder / "changed.so", faults)

    return make


@pytest.fixture
def load(monkeypatch):
    """Put another library, a file or one that is loaded, in place of the installed one for the rest of the test."""

    def put(other, paths):
        loaded = other if isinstance(other, ctypes.CDLL) else ctypes.CDLL(str(other))
        replacement = library.declared(loaded)
        monkeypatch.setattr(library, "_library", lambda: replacement)
        monkeypatch.setattr(library, "paths", lambda: (*paths, "numpy"))

    return put
