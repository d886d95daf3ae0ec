"""Run by the tests of Ctrl-C and kill: jobs in a pool that sleep for ever, each with a program in another session."""

import fcntl
import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from pathlib import Path

from sim.run.pool import fresh_processes
from tools.interrupts import end_with_parent, ended_by_interrupts, ending_on_interrupt, unheard_interrupts


def sleeps(folder: Path) -> None:
    """Start a program; this process and the program hold a lock as long as they are there."""
    handle, name = tempfile.mkstemp(dir=folder)
    fcntl.flock(handle, fcntl.LOCK_EX)
    program = [sys.executable, "-c", "import time; time.sleep(300)"]
    with subprocess.Popen(program, start_new_session=True, pass_fds=[handle]):
        os.rename(name, f"{name}.runs")


def pool_of(kind: str) -> Executor:
    """Return a pool of one of three kinds."""
    if kind == "threads":
        return ThreadPoolExecutor(2)
    fork = fresh_processes("sim.run.pool") if kind == "forkserver" else multiprocessing.get_context(kind)
    return ProcessPoolExecutor(2, fork, end_with_parent)


@ending_on_interrupt("program", "nothing is kept")
def main(arguments: object = None) -> int:
    """Run five jobs, two at a time."""
    kind, folder = sys.argv[1:]
    with pool_of(kind) as pool, ended_by_interrupts(pool):
        with unheard_interrupts():
            futures = [pool.submit(sleeps, Path(folder)) for _ in range(5)]
        for future in as_completed(futures):
            future.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
