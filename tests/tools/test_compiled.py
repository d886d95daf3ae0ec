"""Libraries of C++: CXXRTL's header is read in its precompiled form, and as text where that cannot be used."""

import ctypes

import pytest

from tools import compiled
from tools.cxxrtl import headers

SOURCE = """#include <cxxrtl/cxxrtl.h>
extern "C" int sum(int x) {{ return cxxrtl::value<32>{{(uint32_t)x}}.get<int>() + {}; }}
"""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    return tmp_path


def built(number):
    return ctypes.CDLL(str(compiled.library(SOURCE.format(number), headers()))).sum(40)


def test_library_precompiles_its_header_once_and_works_without_it(folder):
    assert built(1) == 41
    (header,) = folder.glob("headers-*/cxxrtl/cxxrtl.h.gch")
    made = header.stat().st_mtime_ns
    assert built(2) == 42
    assert header.stat().st_mtime_ns == made
    header.write_bytes(b"of another compiler")
    assert built(3) == 43


def test_library_has_a_header_of_its_own_for_other_options(folder):
    compiled.library(SOURCE.format(1), headers())
    compiled.library(SOURCE.format(1), headers(), ("-O0",))
    assert len(list(folder.glob("headers-*/cxxrtl/cxxrtl.h.gch"))) == 2
