"""The tests that judge faults of Python source: collected once, run in forked processes that start with all imports."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import select
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .fault import ROOT

#: Tests that cannot answer: they compile kernels, or judge in other processes.
_LEFT_OUT = (
    "golden/kernels/test_c_interface.py", "golden/kernels/test_counting_faults.py", "golden/kernels/test_faults.py",
    "golden/kernels/test_sanitizers.py", "golden/test_hosts.py", "golden/test_import.py",
    "torch/test_grad_scaler_ranks.py", "torch/test_import.py", "torch/test_trainer_ranks.py",
)  # fmt: skip
OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0",
           # pytest says so of plugins that this process has imported itself.
           "-W", "ignore:Module already imported so cannot be rewritten")  # fmt: skip

#: Fewer random examples, and one thread: a forked process has no others.
SETTINGS = {"CBFLOAT_EXAMPLES": "20", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

#: Limit of a faulty process's memory.
_BYTES = 12 << 30

#: How a child process says that its work raised an error.
RAISES = "it raises"

Cases = dict[str, list[pytest.Item]]


@dataclass(frozen=True)
class Said:
    """The words of a child process, which may be empty, and the processor seconds it took."""

    text: str
    seconds: float


class _Loop:
    def __init__(self, work: Callable[[Cases], None]) -> None:
        self.work = work

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        cases: Cases = {}
        for item in session.items:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        self.work(cases)
        return True


class FirstFailure:
    """Remembers which test failed first."""

    said = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.said:
            self.said = report.nodeid


def forget_imports() -> None:
    """Forget the imports of `golden`, the tests and the modules that both import, so that they are imported again.

    Only this package stays: its faults go from process to process.
    """
    for name in [name for name in sys.modules if name.split(".")[0] in ("golden", "lab", "tests", "tools")]:
        if not name.startswith(__package__):
            del sys.modules[name]


def in_session(folder: str, work: Callable[[Cases], None]) -> None:
    """Collect the tests of a folder, and give their cases to `work`, by test function.

    The tests import `golden` again: the process is used for nothing else.
    """
    forget_imports()
    os.chdir(ROOT)
    os.environ |= SETTINGS
    ignored = [f"--ignore=tests/{name}" for name in _LEFT_OUT]
    status = pytest.main([*OPTIONS, *ignored, folder], [_Loop(work)])
    assert status == pytest.ExitCode.OK, f"pytest: {status}"


def run_cases(cases: Sequence[pytest.Item], folder: Path) -> str:
    """Run cases up to the first failure, and return its name; in a child process.

    Parameters
    ----------
    cases : sequence of Item
    folder : Path
        For temporary files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    failure = FirstFailure()
    cases[0].config.pluginmanager.register(failure)
    for case, following in zip(cases, [*cases[1:], None], strict=True):
        case.config.hook.pytest_runtest_protocol(item=case, nextitem=following)
        if failure.said:
            break
    shutil.rmtree(folder, ignore_errors=True)
    return failure.said


def in_child(work: Callable[[], str], seconds: float = 60.0, patience: float = 0.0) -> Said:
    """Run it in a forked process; return its answer, or how the process ended.

    Parameters
    ----------
    work : callable
    seconds : float
        Processor seconds until it counts as hanging; a faulty loop may never end.
    patience : float
        The same on the clock, for a process that waits for ever; the larger of this and 4 times `seconds` counts.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        faulthandler.disable()
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            said = work()
        except BaseException as error:
            said = f"{RAISES} {type(error).__name__}"
        os.write(writing, b"." + said.encode()[:500])
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], max(patience, 4 * seconds))
    said = os.read(reading, 4096) if ready else b""
    os.close(reading)
    # Whatever it has started ends with it.
    if not ready:
        _end(child)
    _, status, spent = os.wait4(child, 0)
    _end(child)
    code = os.waitstatus_to_exitcode(status)
    if not ready or code in (-signal.SIGXCPU, -signal.SIGKILL):
        text = "it hangs"
    else:
        crash = signal.Signals(-code).name if code < 0 else str(code)
        text = said[1:].decode(errors="replace") if said else f"it crashes, {crash}"
    return Said(text, spent.ru_utime + spent.ru_stime)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def aside(work: Callable[[], None]) -> float:
    """Run it in a forked process, with its output, and return the processor seconds that it took.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status, spent = os.wait4(child, 0)
    if status:
        raise RuntimeError("the tests cannot be collected or recorded: the lines above say why")
    return spent.ru_utime + spent.ru_stime
