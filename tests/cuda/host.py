"""The kernels' own source, built for this machine: loops over blocks and threads take the place of a card."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import golden.cuda
from golden.cuda.scales import Steps
from golden.cuda.variants import defines
from lab.mutants.table import Edit
from tests.golden.kernels.build import HEADER, compiler, read_once, system_headers
from tests.golden.kernels.build import SOURCE as STEPS
from tests.golden.kernels.switches import DEFINITION, choose, put_into
from tests.shared import locked

SOURCE = Path(golden.cuda.__file__).parent / "source"
#: In which order threads run the phases of a block, and whether blocks run from the last to the first and copies land
#: when they are waited for.
ORDERS = ((0, 0, 1), (1, 1, 1), (2, 0, 1), (2, 1, 0))

#: Of the compiler.
HOW = ["-std=c++17", "-O1", "-ffp-contract=off", "-w", "-fPIC"]

#: Chains that have one kernel, in no tiles of several sides, and its header.
ALONE = {"counted": "counted.h", "machine": "accumulation.h"}

Kernel = Callable[[int, bytes], None]


def definitions(variant: Steps | None, kernel: str) -> list[str]:
    """Return the definitions for the preprocessor and one kernel; of a product, tiles of one size are enough."""
    is_tile = variant is not None and variant.chain not in ALONE
    return defines(variant) + ([f"-DCBFLOAT_TILE={kernel.rpartition('_')[2]}"] if is_tile else [])


def files_of(variant: Steps | None) -> set[str]:
    """Return the headers of a variant."""
    found: set[str] = set()
    waiting = ["blocks.h", "elementwise.h", "exponents.h", "packing.h", "softmax.h"]
    if variant:
        waiting = [ALONE.get(variant.chain, "gemm.h")]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            folder = SOURCE if (SOURCE / file).is_file() else STEPS
            waiting += re.findall(r'^#include "([^"]+)"', (folder / file).read_text(encoding="utf-8"), re.M)
    return found


class HostDevice:
    """Runs kernels on this machine, as `golden.cuda.launching.Device` has it.

    Parameters
    ----------
    folder : Path
        Where kernels are built, each at its first use; several processes may share it.
    changes : Edit
        Faults that are put into a copy of the source first.
    order : tuple of int
        One of `ORDERS`.
    plain : HostDevice, optional
        A device without faults; it runs the kernels that the changes do not reach.
    """

    processors = 1
    native = (True, True)

    def __init__(
        self,
        folder: Path,
        *changes: Edit,
        order: tuple[int, int, int] = ORDERS[0],
        plain: HostDevice | None = None,
    ) -> None:
        self._folder, self._changes, self.order, self._plain = folder, changes, order, plain
        self._libraries: dict[tuple[str, ...], ctypes.CDLL] = {}

    def kernel(self, variant: Steps | None, name: str) -> Kernel:
        """Return a kernel, which is built if it is not there yet."""
        library = self.library(variant, name)
        function = getattr(library, f"{name}_on_host")
        function.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_char_p]
        function.restype = None

        def run(blocks: int, arguments: bytes) -> None:
            library.choose_host_order(*self.order)
            function(blocks, 1, 1, arguments)

        return run

    def library(self, variant: Steps | None, name: str) -> ctypes.CDLL:
        """Return the library of a kernel."""
        if self._plain and not {change.file_name for change in self._changes} & files_of(variant):
            return self._plain.library(variant, name)
        options = tuple(definitions(variant, name))
        if options not in self._libraries:
            self._libraries[options] = ctypes.CDLL(str(self._built(options)))
        return self._libraries[options]

    def launch(self, kernel: Any, grid: int, block: int, shared_bytes: int, arguments: bytes) -> None:
        """Run a kernel to its end."""
        assert (block, shared_bytes) == (256, 0)
        kernel(grid, arguments)

    def _built(self, options: tuple[str, ...]) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        library = self._folder / ("".join(option.rpartition("CBFLOAT")[2] for option in options) + ".so")
        with locked(self._folder / "lock"):
            source, steps = self._sources()
            if not library.is_file():
                part = library.with_suffix(".part")
                command = [compiler(), *HOW, *self._header(), "-x", "c++", "-shared", *options]
                folders = [f"-I{source}", f"-I{steps}"]
                done = subprocess.run(
                    [*command, *folders, str(source / "kernels.cu"), "-o", str(part)],
                    capture_output=True,
                    text=True,
                    timeout=300,
                )
                if done.returncode:  # never a difference to a check of a fault
                    raise RuntimeError(done.stderr)
                part.rename(library)
        return library

    def _header(self) -> list[str]:
        """Return the options that include the system's headers, which a device without faults reads once."""
        if self._plain:
            with locked(self._plain._folder / "lock"):
                return self._plain._header()
        if self._changes:
            return []
        header = self._folder / HEADER
        if not header.with_suffix(".h.gch").is_file():
            names = sorted(system_headers(SOURCE) | {"cfloat", "cmath"})
            read_once(self._folder, "".join(f"#include <{name}>\n" for name in names), [compiler(), *HOW])
        return ["-include", str(header)]

    def _sources(self) -> tuple[Path, Path]:
        """Return the folders of the kernels and of the steps."""
        return self._changed_copy() if self._changes else (SOURCE, STEPS)

    def _changed_copy(self) -> tuple[Path, Path]:
        """Return the folders of a copy that has the changes, which is made at the first use."""
        copy = self._folder / "source", self._folder / "steps"
        if not (self._folder / "changed").is_file():
            for given, folder in zip((SOURCE, STEPS), copy, strict=True):
                shutil.copytree(given, folder, dirs_exist_ok=True)
            self._change(*copy)
            (self._folder / "changed").touch()
        return copy

    def _change(self, source: Path, steps: Path) -> None:
        for change in self._changes:
            change.apply(source if (source / change.file_name).is_file() else steps)


class SwitchedDevice(HostDevice):
    """Runs kernels that have many faults, with at most one of them on.

    Parameters
    ----------
    folder : Path
        The folder for kernels, each built at its first use; several processes may share it.
    faults : mapping of str to sequence of Edit
    plain : HostDevice
        A device without faults.
    """

    def __init__(self, folder: Path, faults: Mapping[str, Sequence[Edit]], plain: HostDevice) -> None:
        super().__init__(folder, *chain.from_iterable(faults.values()), plain=plain)
        self._faults = faults
        self._numbers = {name: number for number, name in enumerate(faults, 1)}
        self.fault: str | None = None

    def kernel(self, variant: Steps | None, name: str) -> Kernel:
        """Return a kernel with the fault that is on."""
        run = super().kernel(variant, name)
        choose(self.library(variant, name), self._numbers[self.fault] if self.fault else 0)
        return run

    def _change(self, source: Path, steps: Path) -> None:
        put_into([source, steps], self._faults)
        kernels = source / "kernels.cu"
        kernels.write_text(DEFINITION + kernels.read_text(encoding="utf-8"), encoding="utf-8")
