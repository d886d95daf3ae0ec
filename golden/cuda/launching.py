"""Kernels on a card: loaded from cubins, launched on PyTorch's current stream by NVIDIA's driver."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Protocol

from golden.cuda.scales import Steps

__all__ = ["CudaDevice", "Device"]

_WITH_NATIVE_BFLOAT16 = (8, 0)


class Device(Protocol):
    """What runs kernels: a card, or the tests' build of them for this machine.

    Attributes
    ----------
    processors : int
        Its multiprocessors, for which tiles are chosen.
    native : tuple of bool
        Whether it has fused steps of its own in float16 and in bfloat16.
    """

    processors: int
    native: tuple[bool, bool]

    def kernel(self, variant: Steps | None, name: str) -> Any:
        """Return a kernel of a variant, ready to be launched; None is what all variants have in common."""

    def launch(self, kernel: Any, grid: int, block: int, shared_bytes: int, arguments: bytes) -> None:
        """Launch a kernel of one argument, a structure by value, with blocks along x alone; do not wait for it."""


class CudaDevice:
    """A card of NVIDIA's.

    Parameters
    ----------
    index : int
        Its number, as PyTorch counts.

    Raises
    ------
    ImportError
        If cuda-bindings or NVRTC is not installed.
    RuntimeError
        If the card is of an architecture that kernels are not compiled for, or the driver fails.
    """

    def __init__(self, index: int) -> None:
        import torch

        from golden.cuda import compiling

        self._driver, self._cubin = _driver(), compiling.cubin
        self._index, self._torch = index, torch
        about = torch.cuda.get_device_properties(index)
        self.name, capability = about.name, (about.major, about.minor)
        self.architecture = compiling.architecture_for(capability)
        self.processors: int = about.multi_processor_count
        self.native = True, capability >= _WITH_NATIVE_BFLOAT16
        self._modules: dict[Steps | None, Any] = {}
        self._kernels: dict[tuple[Steps | None, str], Any] = {}
        self._lock = threading.Lock()

    def kernel(self, variant: Steps | None, name: str) -> Any:
        """Return a kernel; its variant is compiled, or read from the cache on disk, when it is first asked for."""
        found = self._kernels.get((variant, name))
        if found is None:
            with self._lock, self._torch.cuda.device(self._index):
                if variant not in self._modules:
                    if self._torch.cuda.is_current_stream_capturing():
                        raise RuntimeError(
                            f"device: {name} would be loaded while a CUDA graph is captured, must be before; run the "
                            "step once before the capture"
                        )
                    self._modules[variant] = self._call("cuModuleLoadData", self._cubin(variant, self.architecture))
                found = self._call("cuModuleGetFunction", self._modules[variant], name.encode())
                self._kernels[variant, name] = found
        return found

    def launch(self, kernel: Any, grid: int, block: int, shared_bytes: int, arguments: bytes) -> None:
        """Launch a kernel on PyTorch's current stream of the card."""
        stream = self._torch.cuda.current_stream(self._index).cuda_stream
        # The driver copies the argument before it returns.
        argument = ctypes.create_string_buffer(arguments, len(arguments))
        places = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        with self._torch.cuda.device(self._index):
            self._call(
                "cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, shared_bytes, stream, ctypes.addressof(places), 0
            )

    def _call(self, function: str, *given: Any) -> Any:
        """Call the driver; return what it returns beside the code of an error."""
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
