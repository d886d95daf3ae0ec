"""The views of runs on the page, in its order; several runs side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import yaml

from golden.counts import COUNTED
from golden.torch.instruments.report.advice import Advice, Case, LevelMap, merged, where
from golden.torch.instruments.report.curves import Axis, power_ticks
from golden.torch.instruments.report.histograms import Bars, bars, frames
from golden.torch.instruments.report.judging import Judged, share_of_steps, worst_first
from golden.torch.instruments.report.limits import LIMITS, RARE
from golden.torch.instruments.report.records import PASSES, Histogram, Run
from golden.torch.instruments.report.rules import advice, in_words
from golden.torch.instruments.report.timeline import sparkline, timeline
from golden.torch.instruments.report.window import Window
from golden.torch.instruments.report.words import count, number, percent, power, short_power

__all__ = ["RunView", "advice_text", "comparison", "levels_text"]

#: Rows of the table of the worst layers, cards that are open, modules whose cards are folded away, and layers that are
#: shown for differing between runs.
WORST, AT_LEAST, OPEN, FOLDED, DIFFERENT = 12, 6, 4, 120, 20


class Fact(NamedTuple):
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
        *([Fact("products", settings.reduction)] if settings.reduction else []),
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
    bad = sum(each.is_bad for each in case.layers)
    products = sum(int(layer.products[:, COUNTED.index("steps")].sum()) for layer in run.layers)
    worst = next((each for each in worst_first(case.layers) if each.worst), None)
    return [
        Fact("steps", f"{len(run.steps):,}", f"{len(run.observed):,} observed"),
        Fact(
            "last loss",
            number(losses[-1], 4) if losses else "–",
            f"first {number(losses[0], 4)}" if losses else "none was written",
            bool(losses) and not math.isfinite(losses[-1]),
        ),
        Fact("last loss scale", short_power(scales[-1] if scales else None), _range(scales)),
        Fact(
            "skipped steps",
            f"{skipped:,}",
            percent(skipped / len(run.steps)) if run.steps else "",
            bool(run.steps) and skipped > 0.05 * len(run.steps),
        ),
        Fact("products counted", count(products), "steps that add one"),
        Fact("beyond a limit", str(bad), f"of {len(case.layers):,} layers × passes", bad > 0),
        Fact("worst", "nothing")
        if worst is None
        else Fact("worst", LIMITS[worst.worst].label, where(worst), worst.is_bad),
    ]


class HeatRow(NamedTuple):
    """A row of the heat map: an operation of a module, and how it fared in each pass (None: it has none)."""

    module: str
    operation: str
    passes: list[Judged | None]

    @property
    def score(self) -> float:
        """The worst score of its passes."""
        return max((each.score for each in self.passes if each is not None), default=0.0)


class Card(NamedTuple):
    """A layer in one pass with the exponents of its tensors, and its worst event over the steps."""

    judged: Judged
    tensors: list[tuple[str, Histogram, Bars]]
    spark: str


class Gauge:
    """The window of loss scales on an axis of exponents, and the gradients at the last scale."""

    def __init__(self, window: Window) -> None:
        exponents = (window.low, window.high, window.used_low, window.used_high, window.last)
        axis = Axis(min(exponents) - 6, max(exponents) + 6, 20, 940)
        self.window, self.ticks = window, power_ticks(axis, power, 14)
        self.low, self.high, *self.used, self.last = map(axis, exponents)
        scaled = {str(exponent + window.last): count for exponent, count in window.exponents}
        self.histogram = Histogram(str(window.format), sum(scaled.values()), window.zero, exponents=scaled)
        self.frame = frames([self.histogram])[self.histogram.format]
        self.bars = bars(self.histogram, self.frame)


class RunView:
    """All parts of a run's page."""

    def __init__(self, case: Case) -> None:
        ordered, heat = worst_first(case.layers), list(_heat(case.layers))
        folded = sorted(heat, key=lambda row: -row.score)[:FOLDED]
        self.run, self.settings, self.results = case.run, settings_of(case.run), results_of(case)
        self.advice = advice(case)
        self.levels, self.trial = _offer(case, self.advice)
        self.worst, self.heat, self.left_over = _worst(ordered), heat, len(heat) - len(folded)
        self.timeline = timeline([case.run])
        self.gauge = None if case.window is None else Gauge(case.window)
        self.frames = frames(histogram for each in case.layers for histogram in each.layer.tensors.values())
        self.cards = [self._card(each) for each in ordered[:OPEN]]
        self.folded = [
            (row.module, [self._card(each) for each in row.passes if each is not None])
            for row in sorted(folded, key=heat.index)
        ]

    def _card(self, each: Judged) -> Card:
        layer = each.layer
        tensors = [(name, it, bars(it, self.frames[it.format])) for name, it in layer.tensors.items()]
        return Card(each, tensors, sparkline(layer.steps, share_of_steps(layer, each.worst)) if each.worst else "")


def _offer(case: Case, said: list[tuple[str, Advice]]) -> tuple[str, str]:
    """Return the map of all new levels, and the outcome of its trial."""
    levels, trial = merged(each.levels for _, each in said), case.run.trial
    if trial is not None and trial.levels == levels:
        return levels_text(levels), f"It helps: {in_words(trial)}"
    return levels_text(levels), (
        "It is untried. The end of an observation tries it where the model ran eagerly in one process, in a precision "
        "around its call, and the run was not broken off."
    )


def advice_text(case: Case) -> str:
    """Return the advice as text."""
    said = advice(case)
    if not said:
        return "What to change: nothing, no rule speaks."
    lines = ["What to change:"]
    for place, (_, each) in enumerate(said, 1):
        lines += [f"{place}. {each.title} {each.because}", f"   {each.change}"]
        lines += [f"   {each.setting}"] if each.setting else []
    levels, trial = _offer(case, said)
    return "\n".join([*lines, f"New levels, for precision(levels=...). {trial}", levels] if levels else lines)


def levels_text(levels: LevelMap) -> str:
    """Write a level map as the file of a run has it; nothing for none."""
    if not levels:
        return ""
    return str(yaml.safe_dump({"levels": levels}, sort_keys=False, default_flow_style=None, width=110)).rstrip()


def _worst(ordered: list[Judged]) -> list[Judged]:
    """Return those beyond a limit, and a few of the others."""
    bad = sum(each.is_bad for each in ordered)
    return [each for each in ordered[: min(WORST, max(AT_LEAST, bad))] if each.score]


def _heat(layers: list[Judged]) -> Iterator[HeatRow]:
    by_place: dict[tuple[str, str], dict[str, Judged]] = {}
    for each in layers:
        by_place.setdefault((each.layer.module, each.layer.operation), {})[each.layer.direction] = each
    for (module, operation), passes in by_place.items():
        yield HeatRow(module, operation, [passes.get(direction) for direction in PASSES])


class Difference(NamedTuple):
    """A layer and pass, the event in which the runs differ most there, and what each run has (None: no such layer)."""

    module: str
    direction: str
    event: str
    runs: list[Judged | None]
    ratio: float


class Comparison(NamedTuple):
    """Facts by label, one for each run, and whether they differ; layers in common; the layers that differ most."""

    facts: list[tuple[str, list[Fact], bool]]
    in_common: int
    differences: list[Difference]


def comparison(cases: Sequence[Case]) -> Comparison:
    """Compare some runs."""
    columns = [[*settings_of(case.run), *results_of(case)] for case in cases]
    facts = [(row[0].label, list(row), len({fact.value for fact in row}) > 1) for row in zip(*columns, strict=True)]
    by_key = [
        {(each.layer.module, each.layer.direction, each.layer.operation): each for each in case.layers}
        for case in cases
    ]
    keys = dict.fromkeys(key for layers in by_key for key in layers)
    found = [_difference(key, [layers.get(key) for layers in by_key]) for key in keys]
    differing = sorted((each for each in found if each is not None), key=lambda each: -each.ratio)
    in_common = sum(all(key in layers for layers in by_key) for key in keys)
    return Comparison(facts, in_common, differing[:DIFFERENT])


def _difference(key: tuple[str, str, str], runs: list[Judged | None]) -> Difference | None:
    """Return the event whose shares lie farthest apart, as a ratio; None if all are far below their limits."""
    ratios = {}
    for name, limit in LIMITS.items():
        shares = [each.shares[name] for each in runs if each is not None]
        known = [max(share, RARE / 10) for share in shares if share is not None]
        if len(known) > 1 and max(known) > limit.unit / 10:
            ratios[name] = math.log10(max(known) / min(known))
    if not ratios or max(ratios.values()) < math.log10(1.2):
        return None
    event = max(ratios, key=lambda name: ratios[name])
    return Difference(key[0], key[1], event, runs, 10.0 ** ratios[event])
