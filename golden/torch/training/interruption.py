"""Ctrl-C and SIGTERM: the step under way is completed and saved, then the run ends with one line."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interruption", "RunStopped", "name_of"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# torchrun hands on a signal that the terminal has sent to its processes already.
_SAME_KEY_SECONDS = 1.0


class RunStopped(SystemExit):
    """A signal has ended a run, after its last step was saved; ``code`` is 128 plus the number of the signal.

    It is a `SystemExit`, so that a script ends without a traceback and with that status.
    """


class Interruption:
    """Waits for the signals while a run trains; a context manager.

    The first signal is noted. Another one, more than a second later, has its former effect: Ctrl-C twice ends at
    once. Outside the main thread, where Python allows no handlers, signals keep their former effect.
    """

    def __init__(self) -> None:
        self.signal = 0  # number of the signal that came, 0 for none
        self._before: dict[int, Any] = {}
        self._at = 0.0

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                # None: a handler that Python cannot put back. Ignored, as by nohup: stays ignored.
                if before not in (None, signal.SIG_IGN):
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.signal:
            self.signal, self._at = number, now
        elif now - self._at > _SAME_KEY_SECONDS:
            signal.signal(number, self._before[number])
            signal.raise_signal(number)


def name_of(number: int) -> str:
    """Return the usual name of a signal."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
