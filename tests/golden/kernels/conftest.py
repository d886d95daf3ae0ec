import ctypes

import pytest

from golden.kernels import library

from ...shared import shared_folder
from .build import Builder, compile_plain

#: Quick to compile.
OPTIMISATION = "-O0"


@pytest.fixture(scope="session")
def builder(tmp_path_factory):
    plain = shared_folder(tmp_path_factory, "plain", lambda folder: compile_plain(folder, OPTIMISATION))
    return Builder(tmp_path_factory.mktemp("kernels"), OPTIMISATION, plain)


@pytest.fixture
def load(monkeypatch):
    """Put another library in place of the installed one for the rest of the test."""

    def put(file, paths):
        replacement = library.declared(ctypes.CDLL(str(file)))
        monkeypatch.setattr(library, "_library", lambda: replacement)
        monkeypatch.setattr(library, "paths", lambda: (*paths, "numpy"))

    return put
