"""Install an extra of the project with the pinned versions: ``.venv/bin/python tools/install.py EXTRA``.

This runs before anything is installed, so it needs nothing but the standard library. ``TORCH_WHEELS`` names a folder or
an index that holds a CPU build of PyTorch. The environment keeps the whole output of pip in ``install.log``.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

__all__ = ["advice", "cpu_build", "extras_within", "is_current", "main", "progress", "reason", "remove_half_installed"]

# Builds in isolation: older pips would use the packages that happen to be installed.
_PIP = (
    sys.executable,
    "-m",
    "pip",
    "install",
    "--disable-pip-version-check",
    "--no-compile",
    "--progress-bar",
    "off",
    "--use-pep517",
)
_FULL = "the disk is full: free some space (an environment for the tests takes 6 GB), then run make again"
_FETCHED = re.compile(r"\s*(?:Downloading|Using cached) (?:\S*/)?([\w.-]+?)-(\d[\w.!+]*)\S*\.(?:whl|tar\.gz) \((.+)\)")


def remove_half_installed(site: Path) -> list[str]:
    """Remove the records of packages whose installation was cut short, so that pip installs them again.

    pip writes INSTALLER and RECORD last, and yet regards a package without them as installed.

    Parameters
    ----------
    site : Path
        The folder ``site-packages``.

    Returns
    -------
    list of str
        Names of the folders that were removed.
    """
    half = [
        each
        for each in sorted(site.glob("*.dist-info"))
        if not all((each / name).is_file() and (each / name).stat().st_size for name in ("INSTALLER", "RECORD"))
    ]
    for each in half:
        shutil.rmtree(each)
    return [each.name for each in half]


def extras_within(extra: str, table: dict[str, list[str]]) -> set[str]:
    """Return an extra and all extras of the project that it includes."""
    found, waiting = set(), [extra]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            inner = [re.fullmatch(r"cbfloat\[(.+)\]", each) for each in table[name]]
            waiting += [each for match in inner if match for each in match[1].split(",")]
    return found


def is_current(root: Path, site: Path) -> bool:
    """Return whether the project itself is installed, its kernels compiled from the sources that are there now.

    Parameters
    ----------
    root : Path
        The folder of the project.
    site : Path
        The folder ``site-packages``.
    """
    made = [*site.glob("cbfloat-*.dist-info/RECORD"), *(root / "golden" / "kernels").glob("native.*")]
    sources = [root / "pyproject.toml", *(root / "golden" / "kernels" / "source").iterdir()]
    return len(made) == 2 and min(map(_changed, made)) > max(map(_changed, sources))


def _changed(file: Path) -> float:
    return file.stat().st_mtime


def cpu_build(wheels: str, constraints: Path) -> list[str]:
    """Return pip's arguments that install PyTorch alone, from a folder or an index of CPU builds.

    Raises
    ------
    SystemExit
        If `wheels` is neither a folder nor the address of an index.
    """
    pin = next(line.split(";")[0].split("#")[0].strip() for line in _lines(constraints) if line.startswith("torch=="))
    folder = Path(wheels).expanduser()  # not every shell does it behind an equals sign
    if folder.is_dir():
        return [pin, "--no-deps", "--no-index", "--find-links", str(folder)]
    if "://" in wheels:
        return [pin, "--no-deps", "--index-url", wheels]
    raise SystemExit(
        f"install: TORCH_WHEELS: got {wheels}, must be a folder with a wheel of {pin}, or the address of an index"
    )


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def progress(lines: Iterable[str]) -> Iterator[str]:
    """Pick the progress from pip's output: each download with its size, and the slow steps."""
    for line in lines:
        if match := _FETCHED.match(line):
            yield f"    {match[1]} {match[2]}, {match[3]}"
        elif re.match(r"\s*Building editable for cbfloat.*started", line):
            yield "    compiling the kernels"
        elif line.startswith("Installing collected packages"):
            yield f"    unpacking {line.count(',') + 1} packages"


def reason(log: str) -> str:
    """Return pip's errors, with the conflict or the failed build behind them; without errors, the end of the log."""
    errors = [line for line in log.splitlines() if line.lstrip().startswith(("ERROR:", "error:", "×", "╰─> "))]
    conflict = re.search(r"^The conflict is caused by:\n(?:.+\n)+", log, re.M)
    build = re.search(r"^(.+)\n\s*\[end of output\]", log, re.M)
    found = [
        *dict.fromkeys(errors),
        *(each for match in (conflict, build) if match for each in match[match.re.groups].splitlines()),
    ]
    return "\n".join(found or log.splitlines()[-15:])


def advice(log: str) -> str:
    """Return advice to a person about a failure of pip."""
    if "No space left on device" in log:
        return _FULL
    if re.search(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|after connection broken by", log):
        return "the package index cannot be reached: check the network, or HTTPS_PROXY, then run make again"
    if re.search(r"ResolutionImpossible|No matching distribution|Could not find a version", log):
        return (
            "pip does not find the pinned versions, which the public index has for Python 3.11 to 3.14 on Linux and "
            "macOS 15; if your pip has indexes or wheels of its own, try PIP_CONFIG_FILE=/dev/null"
        )
    return "the whole output of pip is in the log"


def _install(arguments: list[str], log: Path) -> None:
    command = [*_PIP, *arguments]
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip,
    ):
        for told in progress(_copied(pip.stdout or (), kept)):
            print(told, flush=True)
    if pip.returncode:
        text = log.read_text(encoding="utf-8")
        raise SystemExit(f"{reason(text)}\ninstall: {advice(text)} ({log})")


def _copied(lines: Iterable[str], file: TextIO) -> Iterator[str]:
    for line in lines:
        file.write(line)
        yield line


def main(extra: str) -> None:
    """Install an extra into the environment of this interpreter."""
    root, environment = Path(__file__).parents[1], Path(sys.prefix)
    log, constraints = environment / "install.log", root / "constraints.txt"
    site = next((environment / "lib").glob("python3*/site-packages"))
    for name in remove_half_installed(site):
        print(f"    {name.removesuffix('.dist-info')} was cut short, and is installed again")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheels = os.environ.get("TORCH_WHEELS")
    table = project["optional-dependencies"]
    extras = extras_within(extra, table)
    if wheels and "train" in extras:
        _install(cpu_build(wheels, constraints), log)
    wanted = ["-e", f"{root}[{extra}]"]
    if is_current(root, site):  # pip would compile the kernels again
        wanted = [each for name in sorted(extras) for each in table[name] if not each.startswith("cbfloat[")]
    _install([*wanted, "-c", str(constraints)], log)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise SystemExit(f"install: {_FULL}") from None
