"""Messages and repairs of an installation: `make`, and the script that installs system packages."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import install

ROOT = Path(__file__).parents[2]

PIP = """\
Collecting torch==2.13.0 (from -c constraints.txt)
  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (29 kB)
  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (530.1 MB)
  Using cached https://a.host/wheels/typing_extensions-4.16.0-py3-none-any.whl (44 kB)
  Downloading python-dateutil-4.0.0.tar.gz (1.2 MB)
  Building editable for cbfloat (pyproject.toml): started
Installing collected packages: torch, typing-extensions, cbfloat
"""
CONFLICT = """\
INFO: pip is looking at multiple versions
ERROR: Cannot install cbfloat and cbfloat[cuda]==0.1.0 because these package versions have conflicting dependencies.

The conflict is caused by:
    cbfloat[cuda] 0.1.0 depends on cuda-bindings==12.9.*
    torch 2.13.0 depends on cuda-bindings<14 and >=13.0.3

To fix this you could try to:
ERROR: ResolutionImpossible: for help visit a page
"""


def test_progress_of_an_installation_shows_sizes_and_slow_steps():
    assert list(install.progress(PIP.splitlines())) == [
        "    torch 2.13.0, 530.1 MB",
        "    typing_extensions 4.16.0, 44 kB",
        "    python-dateutil 4.0.0, 1.2 MB",
        "    compiling the kernels",
        "    unpacking 3 packages",
    ]


def test_reason_of_a_conflict_names_who_wants_what():
    told = install.reason(CONFLICT)
    assert "cbfloat[cuda] 0.1.0 depends on cuda-bindings==12.9.*" in told
    assert "torch 2.13.0 depends on cuda-bindings<14" in told
    assert "multiple versions" not in told
    assert "PIP_CONFIG_FILE=/dev/null" in install.advice(CONFLICT)


def test_reason_of_a_failed_build_names_the_package_and_its_last_line():
    told = install.reason(
        "  × Running setup.py install for wavedrom did not run successfully.\n  │ exit code: 1\n"
        "      File setup.py\n      ModuleNotFoundError: No module named 'vcs_versioning'\n      [end of output]\n"
    )
    assert "install for wavedrom did not run" in told
    assert told.endswith("No module named 'vcs_versioning'")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("WARNING: Retrying after connection broken by 'NewConnectionError(...)'", "cannot be reached"),
        ("error: command 'c++' failed", "in the log"),
    ],
)
def test_advice_on_a_failure_fits_it(line, words):
    assert words in install.advice(line)


def test_half_installed_packages_are_removed_and_whole_ones_stay(tmp_path):
    for name, files in {
        "whole": ("INSTALLER", "RECORD"),
        "cut": ("METADATA",),
        "early": ("METADATA", "RECORD"),
    }.items():
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        for file in files:
            (tmp_path / f"{name}-1.0.dist-info" / file).write_text("x")
    assert install.remove_half_installed(tmp_path) == ["cut-1.0.dist-info", "early-1.0.dist-info"]
    assert [each.name for each in tmp_path.iterdir()] == ["whole-1.0.dist-info"]


def test_cpu_build_is_wanted_by_what_trains_alone():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanting = {extra for extra in table if "train" in install.extras_within(extra, table)}
    assert {"train", "test", "lint", "docs"} <= wanting
    assert not wanting & {"hdl", "sim", "fpga", "formal", "exhaustive"}


def test_cpu_build_comes_from_a_folder_or_an_index_and_nowhere_else(tmp_path):
    constraints = ROOT / "constraints.txt"
    assert install.cpu_build(str(tmp_path), constraints)[1:] == [
        "--no-deps",
        "--no-index",
        "--find-links",
        str(tmp_path),
    ]
    assert install.cpu_build("~", constraints)[-1] == str(Path.home())
    assert install.cpu_build("https://a.host/cpu", constraints)[2:] == ["--index-url", "https://a.host/cpu"]
    with pytest.raises(SystemExit, match=r"TORCH_WHEELS: got nosuch, must be a folder with a wheel of torch==2"):
        install.cpu_build("nosuch", constraints)


def test_failure_of_pip_ends_with_its_reason_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(install, "_PIP", (sys.executable, "-c", f"print({CONFLICT!r}); raise SystemExit(1)"))
    with pytest.raises(SystemExit) as caught:
        install._install([], tmp_path / "install.log")
    assert "torch 2.13.0 depends on cuda-bindings<14" in str(caught.value)
    assert str(caught.value).endswith(f"try PIP_CONFIG_FILE=/dev/null ({tmp_path / 'install.log'})")
    assert "multiple versions" in (tmp_path / "install.log").read_text()


@pytest.mark.parametrize(("answer", "works"), [("echo 0", True), ("exit 1", False), (None, False)])
def test_environment_that_does_not_work_is_made_anew_by_the_next_make(tmp_path, answer, works):
    shutil.copy(ROOT / "Makefile", tmp_path)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    if answer:
        python.write_text(f"#!/bin/sh\n{answer}\n")
        python.chmod(0o755)
    done = subprocess.run(["make", "--no-print-directory", "help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("usage:" if works else "==> .venv does not work: making it anew\n")
    assert (tmp_path / ".venv").exists() == works


PREPARE = Path(__file__).parents[2] / "tools" / "prepare.sh"


def prepare(folder, **programs):
    """Run prepare.sh where nothing but these shell programs and the shell's own commands exist; return its output."""
    for name, script in {
        "tr": '/usr/bin/tr "$@"',
        "sed": '/usr/bin/sed "$@"',
        "python3": "exit 0",
    }.items() | programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", PREPARE, "compiler", "iverilog"],
        cwd=folder,
        env={**os.environ, "PATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    return done.stderr


def test_prepare_without_a_package_manager_names_the_packages_of_each_system(tmp_path):
    told = prepare(tmp_path, id="echo 1000")
    assert told.startswith(
        "prepare: missing: compiler iverilog. Install with one of: apt-get install g++ perl iverilog"
    )
    assert "brew install gcc icarus-verilog (macOS)" in told


@pytest.mark.parametrize(
    ("fails", "words"), [("update", "check the network"), ("install", "could not install g++ perl")]
)
def test_prepare_whose_package_manager_fails_says_so_in_one_line(tmp_path, fails, words):
    told = prepare(
        tmp_path, id="echo 0", env="exit 100" if fails == "install" else "exit 0", **{"apt-get": f"[ $1 != {fails} ]"}
    )
    assert words in told
    assert len(told.splitlines()) == 1
