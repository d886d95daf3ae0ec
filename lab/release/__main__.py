"""Make an archive of the sources and a wheel, and test both in empty environments."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.release.contents import copy_sources, names, problems_of_sources, problems_of_wheel
from tools.interrupts import ending_on_interrupt, whole_in_spite_of_interrupts
from tools.paths import ROOT, folder_to_write

__all__ = ["main"]

CHECK = Path(__file__).with_name("check_installed.py")


def _run(*command: str | Path, cwd: Path) -> str:
    """Run a command, and return its output; if it fails, print the output."""
    line = [str(each) for each in command]
    result = subprocess.run(
        line, cwd=cwd, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if result.returncode:
        print(result.stdout, file=sys.stderr)
    result.check_returncode()
    return result.stdout


def _environment() -> dict[str, str]:
    """Return the environment without the variables by which Python would find the tree."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _build(folder: Path) -> list[Path]:
    """Make the archive from a copy of the sources, and the wheel from the archive."""
    copy_sources(folder / "tree")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "made", folder / "tree", cwd=folder)
    return sorted((folder / "made").iterdir())


def _try(made: Path, folder: Path) -> None:
    """Install a file into an empty environment, with NumPy alone and then with the generators, and check the bits."""
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    for requirement, options in ((str(made), ()), (f"{made}[hdl]", ("--hdl",))):
        print(f"==> Installing {Path(requirement).name}", flush=True)
        _run(
            *(python, "-m", "pip", "install", "-q", "--disable-pip-version-check"),
            *(requirement, "-c", ROOT / "constraints.txt"),
            cwd=folder,
        )
        print(_run(python, CHECK, *options, cwd=folder), end="", flush=True)


@ending_on_interrupt("lab.release", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; status 1 if an archive or a wheel lacks something, 2 if a command failed."""
    parser = argparse.ArgumentParser(prog="python -m lab.release", description=__doc__)
    default = ROOT / "build" / "dist"
    parser.add_argument("-o", "--output", type=folder_to_write, default=default, help="default: build/dist")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        try:
            print("==> Making an archive of the sources, and a wheel from it", flush=True)
            files = _build(folder)
            problems = []
            for made in files:
                judge = problems_of_wheel if made.suffix == ".whl" else problems_of_sources
                problems += [f"{made.name}: {problem}" for problem in judge(names(made), folder / "tree")]
            if problems:
                print("\n".join(problems), file=sys.stderr)
                return 1
            for made in files:
                _try(made, folder / f"with_{made.suffix.removeprefix('.')}")
        except subprocess.CalledProcessError as error:
            print(f"{parser.prog}: {' '.join(error.cmd)}: ended with status {error.returncode}", file=sys.stderr)
            return 2
        given.output.mkdir(parents=True, exist_ok=True)
        with whole_in_spite_of_interrupts():
            for made in files:
                shutil.copy(made, given.output)
                print(given.output / made.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
