"""Ctrl-C ends a command line with one line, and every process that it has started."""

import ast
import fcntl
import inspect
import multiprocessing.forkserver
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType

import pytest

from tests.tools.interrupted import pool_of
from tools import interrupts
from tools.paths import ROOT

PATIENCE = 30.0
LAB = ROOT / "lab"
#: Not a command line of this tree: a script that lab.release runs where nothing of the tree is found.
OUTSIDE = "lab.release.check_installed"


def command_lines() -> list[str]:
    """Return every module of the laboratory that runs by its name and has a public ``main``."""
    found = []
    for file in sorted(LAB.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if 'if __name__ == "__main__":' in text and "main(" in text.replace("_main(", ""):
            found.append(".".join(file.relative_to(ROOT).with_suffix("").parts))
    return [name for name in found if name != OUTSIDE]


def opens_pool(item: ast.withitem) -> bool:
    """Tell whether a ``with`` opens a pool of threads or processes."""
    return isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func).endswith("PoolExecutor")


def wait_for(condition: Callable[[], bool]) -> bool:
    """Tell whether something comes true in time."""
    until = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


def is_free(file: Path) -> bool:
    """Tell whether no process holds the lock of a file."""
    with file.open() as opened, suppress(BlockingIOError):
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def running_jobs(kind: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command whose pool has two jobs under way."""
    command = [sys.executable, "-m", "tests.tools.interrupted", kind, str(folder)]
    # Its processes form a group, all of which a terminal would interrupt.
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as running:
        assert wait_for(lambda: len(list(folder.glob("*.runs"))) == 2), running.poll()
        yield running


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_command_that_is_killed_leaves_no_process(tmp_path: Path, kind: str) -> None:
    with running_jobs(kind, tmp_path) as running:
        running.kill()
        # Its output ends with the last process that holds it: the server of the others, and what keeps their traces.
        running.communicate(timeout=PATIENCE)
    assert wait_for(lambda: all(map(is_free, tmp_path.iterdir())))


@pytest.mark.parametrize("kind", ["threads", "spawn", "forkserver"])
def test_command_stopped_by_ctrl_c_says_one_line_and_leaves_no_process(tmp_path: Path, kind: str) -> None:
    with running_jobs(kind, tmp_path) as running:
        os.killpg(running.pid, signal.SIGINT)
        try:
            said = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert said == ("", "\nprogram: stopped by Ctrl-C; nothing is kept\n")
    assert running.returncode == 130
    assert wait_for(lambda: all(map(is_free, tmp_path.iterdir())))


def test_interrupt_waits_for_files_that_belong_together(tmp_path: Path) -> None:
    def write() -> None:
        with interrupts.whole_in_spite_of_interrupts():
            with interrupts.whole_in_spite_of_interrupts():
                signal.raise_signal(signal.SIGINT)
                (tmp_path / "first").touch()
            (tmp_path / "second").touch()

    with pytest.raises(KeyboardInterrupt):
        write()
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("kind", ["spawn", "forkserver"])
def test_process_of_a_pool_and_its_programs_hear_nothing_of_ctrl_c(kind: str) -> None:
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined] # an earlier test's hears of it
    with pool_of(kind) as pool:
        with interrupts.unheard_interrupts():
            future = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ())
        assert signal.SIGINT in future.result()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize(
    ("module", "inside", "arguments"),
    [
        ("lab.mutants.judge", "check_simulator", ()),
        ("lab.proofs.__main__", "as_completed", ("--tier", "fast", "control/*")),
        ("lab.faults.__main__", "batches", ()),
        ("lab.exhaustive.__main__", "_run_all", ()),
        ("lab.fpga.__main__", "_run", ()),
        ("lab.speed.__main__", "contestants", ()),
    ],
)
def test_laboratory_stopped_by_ctrl_c_returns_130_and_says_one_line(
    module: str,
    inside: str,
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{module}.{inside}", interrupted)
    assert import_module(module).main(arguments) == 130
    said = capsys.readouterr().err
    assert "stopped by Ctrl-C; " in said
    assert said.strip().count("\n") == 0


def test_command_lines_of_the_laboratory_are_all_found() -> None:
    found = set(command_lines())
    assert {"lab.__main__", "lab.mutants.__main__", "lab.suites.accumulators.keep", "lab.gpu.sanitized"} <= found
    rooms = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in LAB.glob("*/__main__.py")}
    assert rooms <= found


@pytest.mark.parametrize("module", command_lines())
def test_command_line_of_the_laboratory_interrupted_in_its_main_returns_130_and_says_one_line(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main = import_module(module).main
    body = inspect.unwrap(main).__code__

    def interrupts_the_body(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is body:
            raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(interrupts_the_body)
    try:
        status = main()
    except KeyboardInterrupt:  # it would end the tests
        status = "interrupted"
    finally:
        sys.setprofile(before)
    assert status == 130
    said = capsys.readouterr().err
    assert said.startswith(f"\n{module.removesuffix('.__main__')}: stopped by Ctrl-C; ")
    assert said.strip().count("\n") == 0


def test_pool_of_the_laboratory_is_ended_by_ctrl_c() -> None:
    opened, forgotten = 0, []
    for file in sorted(LAB.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        called = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        ended = 0
        for node in ast.walk(tree):
            if isinstance(node, ast.With) and any(map(opens_pool, node.items)):
                ended += ast.unparse(node.items[-1].context_expr) == "ended_by_interrupts(pool)"
        pools = sum(name.endswith("PoolExecutor") for name in called)
        opened += pools
        if ended != pools:
            forgotten.append(str(file.relative_to(ROOT)))
    assert opened >= 6
    assert not forgotten
