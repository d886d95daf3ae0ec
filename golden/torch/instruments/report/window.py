"""The loss scales that a run's gradients allow: with them few are subnormal, and none overflows."""

from __future__ import annotations

from dataclasses import dataclass

from golden.formats import FloatFormat
from golden.torch.instruments.report.records import Run, known_format, scale_exponent

__all__ = ["KEPT", "RESERVE", "Window", "window_of"]

#: The share of the gradients that a good scale keeps among the normal numbers.
KEPT = 0.99
#: Binades that a good scale leaves free below the largest number: gradients grow between observed steps.
RESERVE = 2


@dataclass(frozen=True)
class Window:
    """Exponents of loss scales, and the gradients that decide about them.

    Parameters
    ----------
    format : FloatFormat
        What the gradients are rounded to.
    low, high : int
        The exponents of the smallest and the largest scale that is good; if `low` is above `high`, none is.
    used_low, used_high, last : int
        The exponents of the smallest, the largest and the last scale of the run.
    exponents : list of tuple of int
        Exponents of the gradients without the scale, and how many have them.
    zero : int
        Gradients that were 0.
    is_scaled : bool
        False if the run has no loss scale.
    """

    format: FloatFormat
    low: int
    high: int
    used_low: int
    used_high: int
    last: int
    exponents: list[tuple[int, int]]
    zero: int
    is_scaled: bool

    @property
    def is_open(self) -> bool:
        """Whether a scale is good."""
        return self.low <= self.high

    def place(self, exponent: int) -> str:
        """Tell where a scale lies: ``below``, ``inside`` or ``above``."""
        if exponent > self.high:
            return "above"
        return "below" if exponent < self.low else "inside"

    def below_normal(self, scale: int) -> float:
        """Return the share of the gradients that are below the normal numbers with a scale of that exponent."""
        total = sum(count for _, count in self.exponents)
        return sum(count for exponent, count in self.exponents if exponent + scale < self.format.emin) / total


def _largest_kept(run: Run) -> int | None:
    """Return the exponent of the largest scale at which a step was made, if larger ones were tried; else None.

    Steps that were not observed may have larger gradients than those that were. A skipped step tells.
    """
    kept = max((step.loss_scale for step in run.steps if step.loss_scale and not step.skipped), default=None)
    tried = max((step.loss_scale for step in run.steps if step.loss_scale), default=None)
    return scale_exponent(kept) if kept is not None and kept != tried else None


def window_of(run: Run) -> Window | None:
    """Find the window of a run; None if it has no gradients or their format is not known."""
    unscaled: dict[int, int] = {}
    for scale, histogram in run.gradients.items():
        for exponent, count in histogram.by_exponent:
            unscaled[exponent - scale] = unscaled.get(exponent - scale, 0) + count
    fmt = next((known_format(each.format) for each in run.gradients.values()), None)
    if not unscaled or fmt is None:
        return None
    exponents = sorted(unscaled.items())
    allowed, lost = (1 - KEPT) * sum(unscaled.values()), 0
    smallest = exponents[0][0]  # the smallest exponent that must be normal
    for exponent, count in exponents:
        smallest = exponent
        lost += count
        if lost > allowed:
            break
    high, kept = fmt.emax - RESERVE - exponents[-1][0], _largest_kept(run)
    return Window(
        fmt,
        fmt.emin - smallest,
        high if kept is None else min(high, kept),
        min(run.gradients),
        max(run.gradients),
        scale_exponent(next((step.loss_scale for step in reversed(run.steps) if step.loss_scale), None)),
        exponents,
        sum(each.zero for each in run.gradients.values()),
        any(step.loss_scale is not None for step in run.steps),
    )
