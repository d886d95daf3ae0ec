"""Launches without a card: a driver that writes down what it is asked for."""

import ctypes
import sys
import threading
import types
from contextlib import contextmanager

import pytest

from golden.cuda import launching
from golden.cuda.scales import Steps
from golden.rounding import Rounding

SCALED = Steps(Rounding.NEAREST_EVEN, "scaled", "scaled")


class Driver:
    """What cuda.bindings.driver has, as far as it is used; `fails` names the function that returns an error."""

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
