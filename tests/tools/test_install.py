"""Installation: messages and repairs of `make`, the script for system packages, and the check of pinned versions."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tools import install, pins

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


def test_kernels_are_compiled_again_when_their_source_or_the_installation_changes(tmp_path):
    site, kernels = tmp_path / "site", tmp_path / "golden/kernels"
    sources = [tmp_path / "pyproject.toml", kernels / "source/step.cpp"]
    made = [site / "cbfloat-0.1.0.dist-info/RECORD", kernels / "native.cpython-311-x86_64-linux-gnu.so"]
    for time, file in enumerate([*sources, *made]):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (time, time))
    assert install.is_current(tmp_path, site)
    for source in sources:
        os.utime(source, (9, 9))
        assert not install.is_current(tmp_path, site)
        os.utime(source, (0, 0))
    for file in made:
        gone = file.rename(tmp_path / "gone")
        assert not install.is_current(tmp_path, site)
        gone.rename(file)
    assert install.is_current(tmp_path, site)


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


PROJECT = """
[project]
name = "thing"
version = "1"
requires-python = ">=3.11"
[project.optional-dependencies]
a = ["upper"]
b = ["lower{limit}"]
"""


def wheel(folder, name, version, *needs, python=">=3.11"):
    """Write an empty package."""
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Requires-Python: {python}"]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", "\n".join([*lines, *(f"Requires-Dist: {each}" for each in needs), "", ""]))
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Return uv's arguments for an index of three packages; the project is in the folder above."""
    packages = tmp_path / "packages"
    packages.mkdir()
    wheel(packages, "upper", "2", "lower>=2", "odd")
    wheel(packages, "lower", "1")
    wheel(packages, "lower", "2")
    wheel(packages, "odd", "1")
    wheel(packages, "odd", "2", python=">=3.11.5")
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(limit=""))
    monkeypatch.setattr(pins, "_HELD_BACK", ())
    monkeypatch.setattr(pins, "PYTHONS", ("3.11.2", "3.14"))
    monkeypatch.setattr(pins, "PLATFORMS", ("x86_64-manylinux_2_28", "aarch64-apple-darwin"))
    return "--no-index", "--find-links", str(packages)


def test_check_passes_what_renew_wrote_and_keeps_a_version_for_the_oldest_python(tmp_path, index):
    pins.renew(tmp_path, index=index)
    assert list(pins.check(tmp_path, index)) == []
    assert "odd==1" in (tmp_path / "constraints.txt").read_text()


def test_check_names_both_sides_of_a_contradiction_on_every_python_and_platform(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("upper==2\nlower==1\nodd==1\n")
    failures = list(pins.check(tmp_path, index))
    assert len(failures) == len(pins.PYTHONS) * len(pins.PLATFORMS)
    assert all("lower>=2" in each and "lower==1" in each for each in failures)


def test_check_sees_a_version_that_the_oldest_python_does_not_take(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("upper==2\nlower==2\nodd==2\n")
    failures = list(pins.check(tmp_path, index))
    assert {each.split(" on ")[0] for each in failures} == {"Python 3.11.2"}


def test_check_sees_a_package_without_a_pinned_version(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("upper==2\nlower==2\n")
    assert "Python 3.14 on aarch64-apple-darwin: constraints.txt lacks odd==2" in list(pins.check(tmp_path, index))


def test_check_ignores_wheels_and_indexes_that_this_machine_adds(tmp_path, index, monkeypatch):
    pins.renew(tmp_path, index=index)
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, index[-1])
    assert any("lower" in each or "upper" in each for each in pins.check(tmp_path, ("--no-index",)))


def test_renew_leaves_the_file_where_requirements_contradict_each_other(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("lower==1\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(limit="<2"))
    with pytest.raises(SystemExit, match="stays as it was"):
        pins.renew(tmp_path, index=index)
    assert (tmp_path / "constraints.txt").read_text() == "lower==1\n"
