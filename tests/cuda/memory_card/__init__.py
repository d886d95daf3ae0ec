"""A simulated card: tensors say that they are on cuda:0, and live in this machine's memory.

PyTorch's dispatcher, autograd and optimizers treat them like tensors on a card: an operator that gets operands on two
devices raises. `waits` counts the calls that make the program wait for the card. A process must set this card up before
it imports PyTorch.
"""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from pathlib import Path

__all__ = ["build", "insert"]

_SOURCE = Path(__file__).parent / "card.cpp"


def _torch() -> Path:
    found = importlib.util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def build(library: Path) -> None:
    """Compile the card."""
    torch = _torch()
    includes = [f"-I{torch / 'include'}", f"-I{torch / 'include/torch/csrc/api/include'}"]
    links = [f"-L{torch / 'lib'}", "-lc10", "-ltorch_cpu"]
    command = [
        "c++",
        "-std=c++20",
        "-O0",
        "-w",
        "-shared",
        "-fPIC",
        *includes,
        str(_SOURCE),
        "-o",
        str(library),
        *links,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def insert(library: Path) -> None:
    """Put the card into this process, which must not have imported PyTorch yet."""
    # A PyTorch for CUDA registers its own kernels when it is loaded, and whoever registers last is called.
    for each in ("libc10.so", "libtorch_cpu.so", "libtorch_cuda.so"):
        if (_torch() / "lib" / each).is_file():
            ctypes.CDLL(str(_torch() / "lib" / each), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(library))
    import torch

    histc = torch.histc

    def histc_of_integers(input, *given, **named):  # which the CPU does not have
        return (
            histc(input, *given, **named) if input.is_floating_point() else histc(input.float(), *given, **named).int()
        )

    torch.histc = histc_of_integers
    torch.backends.cudnn.enabled = False
    torch.cuda._lazy_init = lambda: None
    torch.cuda.is_available = lambda: True
    torch.cuda.is_initialized = lambda: False  # its random numbers equal the CPU's
    torch.cuda.get_rng_state = lambda *_: torch.get_rng_state()
    torch.cuda.set_rng_state = lambda *_: None
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.device_count = lambda: 1
    torch.cuda.is_current_stream_capturing = lambda: False
