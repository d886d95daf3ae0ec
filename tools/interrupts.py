"""Ctrl-C and kill: a command line ends in one line, its processes with it, and no result is half written."""

from __future__ import annotations

import functools
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import ParamSpec

__all__ = [
    "end_with_parent",
    "ended_by_interrupts",
    "ending_on_interrupt",
    "unheard_interrupts",
    "whole_in_spite_of_interrupts",
]

#: The status of a command line that Ctrl-C has ended.
_STOPPED = 130
#: Seconds between looks for programs that threads have started.
_PAUSE = 0.05

Arguments = ParamSpec("Arguments")


def ending_on_interrupt(program: str, left: str) -> Callable[[Callable[Arguments, int]], Callable[Arguments, int]]:
    """Let a command line end on Ctrl-C with one line and status 130.

    Parameters
    ----------
    program : str
        The name at the start of the line.
    left : str
        The state in which the run was left.
    """

    def decorate(main: Callable[Arguments, int]) -> Callable[Arguments, int]:
        @functools.wraps(main)
        def run(*given: Arguments.args, **named: Arguments.kwargs) -> int:
            try:
                return main(*given, **named)
            except KeyboardInterrupt:
                print(f"\n{program}: stopped by Ctrl-C; {left}", file=sys.stderr)
                return _STOPPED

        return run

    return decorate


@contextmanager
def ended_by_interrupts(pool: Executor) -> Iterator[None]:
    """End a pool's work on Ctrl-C or an error, and every process below this one.

    A pool by itself would go on with the remaining jobs, and leave the programs that its processes have started.
    """
    try:
        yield
    except BaseException:
        waiting = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
        waiting.start()
        while waiting.is_alive():
            _end_descendants(but={_tracker(), _forkserver()})
            waiting.join(_PAUSE)
        # Processes that start later would miss files that this one removes at its end.
        _end_descendants(but={_tracker()})
        raise


def end_with_parent() -> None:
    """Let a process of a pool, and every process below it, end with the process that opened the pool.

    This is the initializer of such pools. A killed process would leave them waiting for jobs for ever. Their
    server ends with the last of them.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        _end_descendants(but=())
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def unheard_interrupts() -> Iterator[None]:
    """Hide Ctrl-C from the processes that are started here, and from their children.

    A terminal sends it to each of them, and each would print a traceback. `ended_by_interrupts` ends them.
    """
    # Starting it lets signals through again, so it starts first.
    multiprocessing.resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def whole_in_spite_of_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until this is done, so that files that belong together are written together."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


def _tracker() -> int | None:
    """Return the process of `multiprocessing` that removes the leftovers of others; it ends with this one."""
    process: int | None = getattr(multiprocessing.resource_tracker._resource_tracker, "_pid", None)
    return process


def _forkserver() -> int | None:
    """Return the process of `multiprocessing` that starts others."""
    process: int | None = getattr(multiprocessing.forkserver._forkserver, "_forkserver_pid", None)
    return process


def _end_descendants(but: Collection[int | None]) -> None:
    """Kill all processes below this one except `but`."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    todo = [os.getpid()]
    while todo:
        for process in children.get(todo.pop(), ()):
            todo.append(process)
            if process not in but:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def _parents() -> list[tuple[int, int]]:
    """Return every process of the machine, with its parent."""
    if os.path.isdir("/proc/self"):
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                # The second field is the program's name in brackets, which may contain anything.
                found.append((int(name), int(stat.read().rpartition(")")[2].split()[1])))
        return found
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [(int(process), int(parent)) for process, parent in map(str.split, listed.splitlines())]
