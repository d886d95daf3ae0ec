"""The processor time of an engine: SIGXCPU ends the engine when the time is over."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Sequence

__all__ = ["limit_processor_time", "run_within_limit"]

#: Seconds from SIGXCPU to SIGKILL, for a program that catches the former.
_GRACE = 5


def limit_processor_time(seconds: int) -> None:
    """Let this process, and each that it starts, take so many seconds of processor time at most."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE))


def run_within_limit(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program with the processor time that is left to this process; end as it does if that is too little."""
    limit, _ = resource.getrlimit(resource.RLIMIT_CPU)
    left = limit if limit == resource.RLIM_INFINITY else max(1, int(limit - time.process_time()))

    def start() -> None:
        if left != resource.RLIM_INFINITY:
            limit_processor_time(left)

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=start)
    if done.returncode == -signal.SIGXCPU:
        os.kill(os.getpid(), signal.SIGXCPU)
    return done
