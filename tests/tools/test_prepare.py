"""What prepare.sh says where it cannot install what is missing."""

import os
import subprocess
from pathlib import Path

import pytest

PREPARE = Path(__file__).parents[2] / "tools" / "prepare.sh"


def prepare(folder, **programs):
    """Run prepare.sh where nothing but these shell programs and the shell's own commands exist; return what it says."""
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
