import ctypes

import pytest

from golden import kernels
from golden.kernels import library as kernel_library

from ...shared import shared_arrays, shared_folder
from .build import PATH_UNITS, UNITS, Builder, compile_plain
from .switches import RUN, Switched, build, is_seen

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
    """Replace the installed library by another, a file or a loaded one, for the rest of the test."""

    def put(other, paths):
        loaded = other if isinstance(other, ctypes.CDLL) else ctypes.CDLL(str(other))
        replacement = kernel_library.declared(loaded)
        monkeypatch.setattr(kernel_library, "_library", lambda: replacement)
        monkeypatch.setattr(kernel_library, "paths", lambda: (*paths, "numpy"))

    return put


@pytest.fixture(scope="module")
def wanted(tmp_path_factory, request):
    """NumPy's answers to what `results` of the module that asks computes."""
    module = request.module
    with kernels.use("numpy"):
        return shared_arrays(tmp_path_factory, f"wanted-{module.__name__}", module.results)


@pytest.fixture(scope="module")
def library(switched, request):
    """A library with the `FAULTS` of the module that asks, all switched off."""
    faults = {name: [fault] for name, fault in request.module.FAULTS.items() if fault.by in RUN}
    return switched(request.module.__name__, faults, RUN)


@pytest.fixture
def sees(library, load, tmp_path, wanted, request):
    """Tell whether the `results` of the module that asks differ from NumPy's on a path, with a fault or with None."""

    def differ(fault, path):
        if path not in RUN:
            pytest.skip(f"this machine does not run {path}")
        load(library.loaded(fault, tmp_path), [path])
        with kernels.use(path):
            return is_seen(request.module.results, wanted)

    return differ
