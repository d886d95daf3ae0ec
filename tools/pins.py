"""The versions in constraints.txt: ``python -m tools.pins`` checks them, ``--renew`` rewrites them.

uv resolves every extra from the public index alone. It ignores pip's and uv's settings, local wheels and further
indexes of this machine, which a person elsewhere does not have.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["PLATFORMS", "PYTHONS", "check", "main", "renew"]

ROOT = Path(__file__).parents[1]

#: Debian 12 has 3.11.2.
PYTHONS = ("3.11.2", "3.12", "3.13", "3.14")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
_MACOS = "15.0"
# Newer versions have not been tested with everything here.
_HELD_BACK = ("torch==2.13.0",)


def _resolve(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    # With an interpreter given, uv does not look for one of every version that it resolves for.
    command = (
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--python",
        sys.executable,
        "--no-config",
        "--quiet",
        "--all-extras",
    )
    return subprocess.run(
        (*command, *arguments, "pyproject.toml"),
        cwd=folder,
        env={**surroundings, "MACOSX_DEPLOYMENT_TARGET": _MACOS},
        capture_output=True,
        text=True,
    )


def _pins(text: str) -> set[str]:
    return set(re.findall(r"^[\w.-]+==[^\s;]+", text, re.M))


def check(folder: Path = ROOT, index: Sequence[str] = ()) -> Iterator[str]:
    """Resolve every extra at once for each Python on each platform, with the versions of constraints.txt.

    Every version is given, so extras that resolve together also resolve one by one.

    Parameters
    ----------
    folder : Path
        Holds pyproject.toml and constraints.txt.
    index : sequence of str
        uv's arguments that name another index than the public one.

    Yields
    ------
    str
        A failure with uv's reason, or a package without a pinned version.
    """
    pinned = _pins((folder / "constraints.txt").read_text(encoding="utf-8"))

    def failure(python: str, platform: str) -> str | None:
        where = ("--python-version", python, "--python-platform", platform)
        done = _resolve(folder, "-c", "constraints.txt", "--no-header", "--no-annotate", *where, *index)
        if done.returncode:
            return f"Python {python} on {platform}: {done.stderr.strip()}"
        if missing := _pins(done.stdout) - pinned:
            return f"Python {python} on {platform}: constraints.txt lacks {', '.join(sorted(missing))}"
        return None

    with ThreadPoolExecutor(2) as pool:
        cases = [pool.submit(failure, python, platform) for python in PYTHONS for platform in PLATFORMS]
        yield from filter(None, (case.result() for case in cases))


def renew(folder: Path = ROOT, *, upgrade: bool = False, index: Sequence[str] = ()) -> None:
    """Write constraints.txt for all Pythons and platforms, with markers; versions stay unless they must change.

    Parameters
    ----------
    folder : Path
        Holds pyproject.toml.
    upgrade : bool
        Take the newest versions instead.
    index : sequence of str
        uv's arguments that name another index than the public one.

    Raises
    ------
    SystemExit
        If the requirements contradict each other.
    """
    with tempfile.TemporaryDirectory() as temporary:
        held = Path(temporary) / "held.txt"
        held.write_text("\n".join(_HELD_BACK), encoding="utf-8")
        how = ("--universal", "--python-version", PYTHONS[0], "--fork-strategy", "fewest", "--annotation-style", "line")
        command = ("--custom-compile-command", "python -m tools.pins --renew", "-c", str(held), "-o", "constraints.txt")
        done = _resolve(folder, *how, *command, *index, *(["--upgrade"] if upgrade else []))
    if done.returncode:
        raise SystemExit(
            f"pins: constraints.txt stays as it was, for the requirements contradict each other:\n{done.stderr}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the pinned versions, or renew them."""
    parser = argparse.ArgumentParser(prog="python -m tools.pins", description=__doc__.split("\n")[0])
    parser.add_argument("--renew", action="store_true", help="write constraints.txt; versions change only if they must")
    parser.add_argument("--upgrade", action="store_true", help="with --renew: take the newest versions")
    given = parser.parse_args(arguments)
    if given.upgrade and not given.renew:
        parser.error("--upgrade: goes with --renew alone")
    if given.renew:
        renew(upgrade=given.upgrade)
    failures = list(check())
    if failures:
        raise SystemExit("\n".join(failures) + "\npins: change pyproject.toml, or run python -m tools.pins --renew")
    print(f"all extras resolve for Python {', '.join(PYTHONS)} on {', '.join(PLATFORMS)}")


if __name__ == "__main__":
    main()
