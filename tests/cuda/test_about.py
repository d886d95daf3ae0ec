"""What `golden.cuda` says of the machine, with drivers that are stood in for."""

import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from golden import cuda
from golden.cuda import compiling
from golden.cuda.about import Card


class Driver:
    """A driver with cards of these names and capabilities."""

    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=1
    )

    def __init__(self, cards, code=0):
        self.cards, self.code = cards, code

    def cuDriverGetVersion(self):
        return 0, 12090

    def cuInit(self, flags):
        return (self.code,)

    def cuDeviceGetCount(self):
        return 0, len(self.cards)

    def cuDeviceGet(self, index):
        return 0, index

    def cuDeviceGetName(self, size, device):
        return 0, self.cards[device][0].encode() + b"\0\0"

    def cuDeviceGetAttribute(self, attribute, device):
        return 0, self.cards[device][1][attribute]


@pytest.fixture
def machine(monkeypatch):
    """Stand in for the driver and the compiler's version."""

    def put(driver, version):
        bindings = ModuleType("cuda.bindings")
        bindings.driver = driver
        monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
        monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
        monkeypatch.setattr("golden.cuda.about.nvrtc_version", lambda: version)

    return put


def test_info_names_the_cards_and_what_their_kernels_are_compiled_for(machine):
    machine(Driver([("Card A", (8, 7)), ("Card B", (6, 1))]), "12.9")
    found = cuda.info()
    assert found.cards == (Card("Card A", (8, 7), 86), Card("Card B", (6, 1), None))
    assert (found.nvrtc, found.driver, found.architectures) == ("12.9", "12.9", compiling.ARCHITECTURES)
    assert found.cache.endswith("cbfloat/cuda")
    assert cuda.available()


@pytest.mark.parametrize(
    ("driver", "version"),
    [
        (Driver([("Card A", (8, 7))]), None),
        (Driver([("Card B", (6, 1))]), "12.9"),
        (Driver([]), "12.9"),
        (Driver([("Card A", (8, 7))], code=100), "12.9"),
    ],
    ids=["without_a_compiler", "old_card", "no_card", "driver_that_fails"],
)
def test_available_is_false_where_something_is_missing(machine, driver, version):
    machine(driver, version)
    assert not cuda.available()


def test_info_without_the_bindings_says_that_all_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    compiling._nvrtc.cache_clear()
    assert cuda.info()[:3] == (None, None, ())
    assert not cuda.available()


def test_import_of_the_package_takes_neither_pytorch_nor_cuda():
    command = "import sys, golden.cuda; print(sorted({'torch', 'cuda.bindings'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", command], capture_output=True, text=True).stdout == "[]\n"
