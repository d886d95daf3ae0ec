"""The speed of a run, in samples per second."""

from __future__ import annotations

import time

__all__ = ["Profiler"]


class Profiler:
    """Samples and seconds since the beginning of a run; ``executor.profiler``, and ``.rate_tracker`` of it."""

    def __init__(self) -> None:
        self.total_samples = 0
        self._latest = 0
        self.start()

    def start(self) -> None:
        """Count from now on."""
        self.total_samples = self._latest = 0
        self._begun = self._before = self._now = time.monotonic()

    def step(self, samples: int) -> None:
        """Note a step."""
        self.total_samples += samples
        self._latest = samples
        self._before, self._now = self._now, time.monotonic()

    @property
    def rate_tracker(self) -> Profiler:
        """The same object: the original has the numbers one level below."""
        return self

    @property
    def total_time(self) -> float:
        """Seconds of the steps so far."""
        return self._now - self._begun

    @property
    def rate(self) -> float:
        """Samples a second in the latest step, 0 before it."""
        return self._latest / max(self._now - self._before, 1e-9)

    @property
    def global_rate(self) -> float:
        """Samples a second in all steps so far, 0 before the first."""
        return self.total_samples / max(self.total_time, 1e-9)

    samples_per_sec = global_rate
