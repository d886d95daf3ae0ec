"""A run at a glance: its settings, and how it went, each as a label with a value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from golden.counts import COUNTED
from golden.torch.instruments.report.advice import Case
from golden.torch.instruments.report.judging import worst_first
from golden.torch.instruments.report.limits import LIMITS
from golden.torch.instruments.report.records import Run
from golden.torch.instruments.report.words import count, number, pass_in_words, percent, short_power

__all__ = ["Fact", "results_of", "settings_of"]


@dataclass(frozen=True)
class Fact:
    """A value with its label, a note below it, and whether it deserves a look."""

    label: str
    value: str
    note: str = ""
    is_bad: bool = False


def settings_of(run: Run) -> list[Fact]:
    """Return how the run was made."""
    settings = run.settings
    return [
        Fact("model", settings.model),
        Fact("half format", settings.half),
        Fact("level", str(settings.level)),
        Fact("chunk", "one" if settings.chunk is None else str(settings.chunk)),
        Fact("rounding", settings.rounding.replace("_", " ")),
        Fact("observed", f"every {settings.every} steps" if settings.every > 1 else "every step"),
        Fact("started", settings.started),
        Fact("versions", f"cbfloat {settings.cbfloat}, PyTorch {settings.torch}"),
    ]


def _range(scales: list[float]) -> str:
    if not scales:
        return "the loss was not scaled"
    low, high = min(scales), max(scales)
    return "in every step" if low == high else f"from {short_power(low)} to {short_power(high)}"


def results_of(case: Case) -> list[Fact]:
    """Return how the run went."""
    run = case.run
    losses = [step.loss for step in run.steps if step.loss is not None]
    scales = [step.loss_scale for step in run.steps if step.loss_scale is not None]
    skipped = sum(step.skipped for step in run.steps)
    bad = [each for each in case.layers if each.is_bad]
    products = sum(int(layer.products[:, COUNTED.index("steps")].sum()) for layer in run.layers)
    worst = worst_first(case.layers)[:1]
    return [
        Fact("steps", f"{len(run.steps):,}", f"{len(run.observed):,} observed"),
        Fact(
            "last loss",
            number(losses[-1], 4) if losses else "–",
            f"first {number(losses[0], 4)}" if losses else "none was written",
            bool(losses) and not math.isfinite(losses[-1]),
        ),
        Fact(
            "last loss scale",
            short_power(scales[-1] if scales else None),
            _range(scales),
        ),
        Fact(
            "skipped steps",
            f"{skipped:,}",
            percent(skipped / len(run.steps)) if run.steps else "",
            bool(run.steps) and skipped > 0.05 * len(run.steps),
        ),
        Fact("products counted", count(products), "steps that add one"),
        Fact("beyond a limit", str(len(bad)), f"of {len(case.layers):,} layers × passes", bool(bad)),
        Fact(
            "worst",
            LIMITS[worst[0].worst].label if worst and worst[0].worst else "nothing",
            f"{worst[0].layer.module}, {pass_in_words(worst[0].layer.direction)}" if worst and worst[0].worst else "",
            bool(worst) and worst[0].is_bad,
        ),
    ]
