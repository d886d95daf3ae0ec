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
    """Limit the processor time of this process, and of each that it starts, to `seconds`."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE))


def run_within_limit(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program within the rest of this process's processor time; if it exceeds that, end in the same way."""
    limit, _ = resource.getrlimit(resource.RLIMIT_CPU)
    left = limit if limit == resource.RLIM_INFINITY else max(1, int(limit - time.process_time()))

    def start() -> None:
        if left != resource.RLIM_INFINITY:
            limit_processor_time(left)

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=start)
    if done.returncode == -signal.SIGXCPU:
        os.kill(os.getpid(), signal.SIGXCPU)
    return done
