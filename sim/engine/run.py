"""Building and simulating an engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hdl.matrix_engine.matrix_engine import MatrixEngine
from hdl.verilog import to_verilog
from sim.engine.units import COMPARED, UNITS
from sim.run.judge import judge
from sim.run.simulators import concatenate_plainly, get_runner
from tools.paths import ROOT
from tools.yosys import loaded_yosys

__all__ = ["results_compared", "simulate_engine"]

_TOP = "matrix_engine"
_BUILD_ARGUMENTS = {"icarus": [], "verilator": ["-Wno-fatal"]}


def simulate_engine(
    name: str, folder: Path, *, tests: str = "", seed: int = 1, effort: float = 1.0, simulator: str = "icarus",
    verilog: str | None = None, waves: bool = False, module: str = "sim.engine.tests",
) -> list[str]:  # fmt: skip
    """Run the tests of an engine; return its failures, one line for each.

    Parameters
    ----------
    name : str
        Of `UNITS`.
    folder : Path
        For all files.
    tests : str
        A regular expression on the names of tests; all if empty.
    module : str
        Of the tests.
    verilog : str, optional
        Verilog with a fault, instead of the generated one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / COMPARED).unlink(missing_ok=True)
    if verilog is None:
        with loaded_yosys():
            verilog = to_verilog(MatrixEngine(**UNITS[name]), _TOP)
    design = folder / f"{_TOP}.v"
    design.write_text(verilog)
    runner = get_runner(simulator)
    runner.build(
        sources=[design], hdl_toplevel=_TOP, build_dir=folder / "build", always=True, waves=waves,
        log_file=folder / "build.log", build_args=_BUILD_ARGUMENTS[simulator],
    )  # fmt: skip
    if simulator == "icarus":
        concatenate_plainly(folder / "build")
    status = 0
    try:
        runner.test(
            hdl_toplevel=_TOP, test_module=module, build_dir=folder / "build", test_dir=folder,
            results_xml=str(folder / "results.xml"), seed=seed, waves=waves, log_file=folder / "simulation.log",
            test_filter=tests or None,
            extra_env={
                "CBFLOAT_ENGINE": name, "CBFLOAT_ENGINE_SEED": str(seed), "CBFLOAT_ENGINE_EFFORT": str(effort),
                "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "COCOTB_REWRITE_ASSERTION_FILES": "",
            },
        )  # fmt: skip
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    return [f"the simulator ended with status {status}"] if status else _failures(folder)


def results_compared(folder: Path) -> int:
    """Return the number of command results that a run has compared with the golden model, without a difference."""
    file = folder / COMPARED
    return sum(map(int, file.read_text().split())) if file.is_file() else 0


def _failures(folder: Path) -> list[str]:
    return list(judge(folder / "results.xml", []).failures)
