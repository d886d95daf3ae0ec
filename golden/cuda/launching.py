"""Kernels on a card: loaded from cubins, launched on the current stream by NVIDIA's driver."""

from __future__ import annotations

import ctypes
import threading
from contextlib import AbstractContextManager
from typing import Any, Protocol

from golden.cuda.compiling import architecture_for, cubin
from golden.cuda.scales import Steps
from golden.cuda.variants import WITH_NATIVE_BFLOAT16

__all__ = ["CudaDevice", "Device", "Runtime"]


class Device(Protocol):
    """A device that runs kernels: a card, or the tests' build of them for this machine.

    Attributes
    ----------
    processors : int
        Its multiprocessors, for which tiles are chosen.
    native : tuple of bool
        Whether it has native fused steps in float16 and in bfloat16.
    """

    processors: int
    native: tuple[bool, bool]

    def kernel(self, variant: Steps | None, name: str) -> Any:
        """Return a kernel of a variant, ready to be launched; None is what all variants have in common."""

    def launch(self, kernel: Any, grid: int, block: int, shared_bytes: int, arguments: bytes) -> None:
        """Launch a kernel of one argument, a structure by value, with blocks along x alone; do not wait for it."""


class Runtime(Protocol):
    """Who has a context on a card, and streams: PyTorch."""

    def on(self, index: int) -> AbstractContextManager[Any]:
        """Return a context in which the card is the current one."""

    def stream(self, index: int) -> int:
        """Return the handle of the card's current stream."""

    def is_capturing(self) -> bool:
        """Tell whether a CUDA graph is captured on it."""


class CudaDevice:
    """A card of NVIDIA's.

    Parameters
    ----------
    index : int
        Its number.
    name : str
    capability : tuple of int
        Its compute capability, such as (9, 0).
    processors : int
        Its multiprocessors.
    runtime : Runtime
        Who has a context on the card, and streams.

    Raises
    ------
    ImportError
        If cuda-bindings or NVRTC is not installed.
    RuntimeError
        If the card is of an architecture that kernels are not compiled for, or the driver fails.
    """

    def __init__(self, index: int, name: str, capability: tuple[int, int], processors: int, runtime: Runtime) -> None:
        self.name, self.processors, self._index, self._runtime = name, processors, index, runtime
        self.architecture = architecture_for(capability)
        self._driver = _driver()
        self.native = True, self.architecture >= WITH_NATIVE_BFLOAT16
        #: The kernels that have been compared with the CPU.
        self.checked: set[Any] = set()
        self._modules: dict[Steps | None, Any] = {}
        self._kernels: dict[tuple[Steps | None, str], Any] = {}
        self._lock = threading.Lock()
        self._thread = threading.local()

    def kernel(self, variant: Steps | None, name: str) -> Any:
        """Return a kernel; its variant is compiled, or read from the cache on disk, when it is first asked for."""
        found = self._kernels.get((variant, name))
        if found is None:
            with self._lock, self._runtime.on(self._index):
                if variant not in self._modules:
                    if self._runtime.is_capturing():
                        raise RuntimeError(
                            f"device: {name} would be loaded while a CUDA graph is captured, must be before; run the "
                            "step once before the capture"
                        )
                    image = cubin(variant, self.architecture)
                    self._have_context()
                    self._modules[variant] = self._call("cuModuleLoadData", image)
                found = self._call("cuModuleGetFunction", self._modules[variant], name.encode())
                self._kernels[variant, name] = found
        return found

    def launch(self, kernel: Any, grid: int, block: int, shared_bytes: int, arguments: bytes) -> None:
        """Launch a kernel on the current stream of the card."""
        # The driver copies the argument before it returns.
        argument = ctypes.create_string_buffer(arguments, len(arguments))
        places = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        with self._runtime.on(self._index):
            self._have_context()
            stream = self._runtime.stream(self._index)
            self._call(
                "cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, shared_bytes, stream, ctypes.addressof(places), 0
            )

    def _have_context(self) -> None:
        """Make the card's context current in a thread that has none, such as one in which PyTorch only reuses memory.

        PyTorch takes card 0 for the current one of a new thread, and makes no call there that would bind its context.
        """
        if not getattr(self._thread, "has_context", False):
            if not int(self._call("cuCtxGetCurrent")):
                device = self._call("cuDeviceGet", self._index)
                self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", device))
            self._thread.has_context = True

    def _call(self, function: str, *given: Any) -> Any:
        """Call the driver; return its results without the error code."""
        code, *results = getattr(self._driver, function)(*given)
        if int(code):
            _, text = self._driver.cuGetErrorString(code)
            raise RuntimeError(f"device: {function} failed on cuda:{self._index}, {self.name}: {_text(text) or code}")
        return results[0] if results else None


def _text(given: Any) -> str:
    return given.decode() if isinstance(given, bytes) else str(given or "")


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ImportError(
            "device: exact products on a CUDA device need cuda-bindings and NVRTC; install them with "
            "pip install 'cbfloat[cuda]', or move the tensors to the CPU with .to('cpu')"
        ) from error
    return driver
