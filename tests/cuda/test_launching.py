"""Launches without a card, and golden.cuda's report on the machine, with stand-ins for the drivers."""

import ctypes
import subprocess
import sys
import threading
import types
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest

from golden import cuda
from golden.cuda import compiling, launching
from golden.cuda.about import Card
from golden.cuda.scales import Steps
from golden.rounding import Rounding

SCALED = Steps(Rounding.NEAREST_EVEN, "scaled", "scaled")


class Driver:
    """The used part of cuda.bindings.driver; `fails` names the function that returns an error."""

    def __init__(self):
        self.calls, self.fails = [], None
        self.current, self.bound = threading.local(), []

    def _run(self, name, *results):
        return (700 if self.fails == name else 0, *results)

    def cuCtxGetCurrent(self):
        return self._run("cuCtxGetCurrent", getattr(self.current, "context", 0))

    def cuDeviceGet(self, number):
        return self._run("cuDeviceGet", number)

    def cuDevicePrimaryCtxRetain(self, device):
        return self._run("cuDevicePrimaryCtxRetain", 100 + device)

    def cuCtxSetCurrent(self, context):
        self.bound.append(context)
        self.current.context = context
        return self._run("cuCtxSetCurrent")

    def cuModuleLoadData(self, image):
        self.calls.append(("load", image))
        return self._run("cuModuleLoadData", f"module of {image.decode()}")

    def cuModuleGetFunction(self, module, name):
        self.calls.append(("function", module, name))
        return self._run("cuModuleGetFunction", f"{name.decode()} of {module}")

    def cuLaunchKernel(self, kernel, x, y, z, width, height, depth, shared, stream, arguments, extra):
        (address,) = (ctypes.c_void_p * 1).from_address(arguments)
        given = ctypes.string_at(address, 5)
        self.calls.append(("launch", kernel, (x, y, z), (width, height, depth), shared, stream, given, extra))
        return self._run("cuLaunchKernel")

    def cuGetErrorString(self, code):
        return 0, b"an illegal memory access was encountered"


class Runtime:
    def __init__(self):
        self.inside, self.capturing = 0, False

    @contextmanager
    def on(self, index):
        self.inside += 1
        yield
        self.inside -= 1

    def stream(self, index):
        assert self.inside
        return 0xBEEF + index

    def is_capturing(self):
        return self.capturing


@pytest.fixture
def card(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(launching, "_driver", lambda: driver)
    monkeypatch.setattr(
        launching, "cubin", lambda variant, architecture: f"{variant and variant.chain}-{architecture}".encode()
    )
    made = launching.CudaDevice(1, "a card", (8, 6), 46, Runtime())
    made.driver = driver
    return made


def test_launch_of_a_kernel_loads_its_variant_once_and_passes_the_structure(card):
    for _ in range(2):
        card.launch(card.kernel(SCALED, "multiply_64"), 12, 256, 0, b"bytes")
    assert card.driver.calls == [
        ("load", b"scaled-86"),
        ("function", "module of scaled-86", b"multiply_64"),
        *[("launch", "multiply_64 of module of scaled-86", (12, 1, 1), (256, 1, 1), 0, 0xBEF0, b"bytes", 0)] * 2,
    ]
    assert (card.native, card.processors) == ((True, True), 46)


def test_launch_that_fails_says_what_the_driver_says(card):
    card.driver.fails = "cuLaunchKernel"
    with pytest.raises(
        RuntimeError, match=r"^device: cuLaunchKernel failed on cuda:1, a card: an illegal memory access"
    ):
        card.launch(card.kernel(None, "pack"), 1, 256, 0, b"bytes")


def test_launch_in_a_thread_without_a_context_binds_that_of_the_card_once(card):
    card.driver.current.context = 7  # PyTorch's, in this thread
    kernel = card.kernel(None, "pack")

    def launches():
        for _ in range(2):
            card.launch(kernel, 1, 256, 0, b"bytes")

    launches()
    assert card.driver.bound == []
    other = threading.Thread(target=launches)
    other.start()
    other.join()
    assert card.driver.bound == [101]
    assert len(card.driver.calls) == 6


def test_kernel_in_a_capture_must_have_been_loaded_before(card):
    card.kernel(None, "pack")
    card._runtime.capturing = True
    assert card.kernel(None, "round_values").startswith("round_values")
    with pytest.raises(RuntimeError, match=r"^device: multiply_32 would be loaded while a CUDA graph is captured"):
        card.kernel(SCALED, "multiply_32")


def test_card_of_an_unknown_architecture_is_refused():
    with pytest.raises(RuntimeError, match=r"^device: got compute capability 6.1, must be one of 7.5"):
        launching.CudaDevice(0, "an old card", (6, 1), 20, Runtime())


def test_card_without_the_driver_of_python_says_what_to_install(monkeypatch):
    broken = types.ModuleType("cuda.bindings")
    monkeypatch.setitem(sys.modules, "cuda.bindings", broken)
    monkeypatch.delitem(sys.modules, "cuda.bindings.driver", raising=False)
    with pytest.raises(ImportError, match=r"^device: .*pip install 'cbfloat\[cuda\]', or move the tensors to the CPU"):
        launching.CudaDevice(0, "a card", (9, 0), 132, Runtime())


class SilentDriver:
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
    machine(SilentDriver([("Card A", (8, 7)), ("Card B", (6, 1))]), "12.9")
    found = cuda.info()
    assert found.cards == (Card("Card A", (8, 7), 86), Card("Card B", (6, 1), None))
    assert (found.nvrtc, found.driver, found.architectures) == ("12.9", "12.9", compiling.ARCHITECTURES)
    assert found.cache.endswith("cbfloat/cuda")
    assert cuda.available()


@pytest.mark.parametrize(
    ("driver", "version"),
    [
        (SilentDriver([("Card A", (8, 7))]), None),
        (SilentDriver([("Card B", (6, 1))]), "12.9"),
        (SilentDriver([]), "12.9"),
        (SilentDriver([("Card A", (8, 7))], code=100), "12.9"),
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
