import ctypes

import pytest

from golden.kernels import library

from .build import Builder


@pytest.fixture(scope="session")
def builder(tmp_path_factory):
    return Builder(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def load(monkeypatch):
    """Put another library in place of the installed one for the rest of the test."""

    def put(file, paths):
        replacement = library.declared(ctypes.CDLL(str(file)))
        monkeypatch.setattr(library, "_library", lambda: replacement)
        monkeypatch.setattr(library, "paths", lambda: (*paths, "numpy"))

    return put
