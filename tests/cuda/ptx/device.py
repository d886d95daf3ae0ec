"""A card whose instructions are run one after the other, for the tests of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from golden.cuda.compiling import ptx
from golden.cuda.scales import Steps
from golden.cuda.variants import WITH_NATIVE_BFLOAT16
from tests.cuda.host import definitions
from tests.cuda.ptx.machine import run
from tests.cuda.ptx.memory import GlobalMemory
from tests.cuda.ptx.program import Kernel, kernels_of

__all__ = ["PtxDevice"]


@cache
def _text(variant: Steps | None, architecture: int, tile: str) -> str:
    return ptx(variant, architecture, *filter(None, [tile]))


class PtxDevice:
    """Runs kernels as `golden.cuda.launching.Device` has it, by the instructions that NVRTC makes of them.

    Parameters
    ----------
    architecture : int
        Whose instructions: one of `golden.cuda.compiling.ARCHITECTURES`.
    change : Callable, optional
        From the text of a module to another one: a fault.
    """

    processors = 1

    def __init__(self, architecture: int, change: Callable[[str], str] = lambda text: text) -> None:
        self._architecture, self._change = architecture, change
        self.native = True, architecture >= WITH_NATIVE_BFLOAT16
        self._kernels: dict[tuple[Steps | None, str], Kernel] = {}
        self._regions: list[tuple[int, int]] | None = None

    def kernel(self, variant: Steps | None, name: str) -> Kernel:
        """Return a kernel, which is compiled if it was not asked for before."""
        if (variant, name) not in self._kernels:
            tile = next((word for word in definitions(variant, name) if "TILE" in word), "")
            text = self._change(_text(variant, self._architecture, tile))
            self._kernels.update({(variant, each): kernel for each, kernel in kernels_of(text).items()})
        return self._kernels[variant, name]

    @contextmanager
    def memory(self, arrays: Sequence[NDArray[Any]]) -> Iterator[None]:
        """Let launches touch the memory of some arrays alone; without any, all of this machine's."""
        before, self._regions = self._regions, [byte_bounds(array) for array in arrays] or None
        try:
            yield
        finally:
            self._regions = before

    def launch(self, kernel: Any, grid: int, block: int, shared_bytes: int, arguments: bytes) -> None:
        """Run a kernel to its end."""
        assert (block, shared_bytes) == (256, 0)
        run(kernel, grid, arguments, GlobalMemory(_mapped() if self._regions is None else self._regions))


def _mapped() -> list[tuple[int, int]]:
    """Return the memory that this process may read and write."""
    found = []
    with open("/proc/self/maps", encoding="ascii") as lines:
        for line in lines:
            addresses, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(number, 16) for number in addresses.split("-"))
                found.append((start, min(end, 1 << 47)))
    return found
