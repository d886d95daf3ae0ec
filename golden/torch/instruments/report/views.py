"""The views of a run on the page, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from golden.torch.instruments.report.advice import Advice, Case, LevelMap, merged
from golden.torch.instruments.report.curves import Axis, Tick, power_ticks
from golden.torch.instruments.report.glance import Fact, results_of, settings_of
from golden.torch.instruments.report.histograms import Bars, Frame, bars, frames
from golden.torch.instruments.report.judging import Judged, share_of_steps, worst_first
from golden.torch.instruments.report.records import PASSES, TENSORS, Histogram, Run
from golden.torch.instruments.report.rules import advice, in_words
from golden.torch.instruments.report.timeline import Timeline, sparkline, timeline
from golden.torch.instruments.report.window import Window
from golden.torch.instruments.report.words import power

__all__ = ["Card", "Gauge", "HeatRow", "RunView", "advice_text", "levels_text", "run_view"]

#: Rows of the table of the worst layers, cards that are open, and modules whose cards are folded away.
WORST, AT_LEAST, OPEN, FOLDED = 12, 6, 4, 120


@dataclass(frozen=True)
class HeatRow:
    """A row of the heat map: an operation of a module, and how it fared in each pass (None: it has none)."""

    module: str
    operation: str
    passes: list[Judged | None]

    @property
    def score(self) -> float:
        """The worst score of its passes."""
        return max((each.score for each in self.passes if each is not None), default=0.0)


@dataclass(frozen=True)
class Card:
    """A layer in one pass with the exponents of its tensors, and its worst event over the steps."""

    judged: Judged
    tensors: list[tuple[str, Histogram, Bars]]
    spark: str


@dataclass(frozen=True)
class Gauge:
    """The window of loss scales on an axis of exponents, and the gradients at the last scale."""

    window: Window
    ticks: list[Tick]
    low: float
    high: float
    used: tuple[float, float]
    last: float
    histogram: Histogram
    frame: Frame
    bars: Bars


@dataclass(frozen=True)
class RunView:
    """All parts of a run's page."""

    run: Run
    settings: list[Fact]
    results: list[Fact]
    advice: list[tuple[str, Advice]]
    levels: str
    trial: str
    worst: list[Judged]
    heat: list[HeatRow]
    cards: list[Card]
    folded: list[tuple[str, list[Card]]]
    left_over: int
    timeline: Timeline
    gauge: Gauge | None
    frames: dict[str, Frame]


def run_view(case: Case) -> RunView:
    """Prepare a run for the template."""
    said = advice(case)
    ordered = worst_first(case.layers)
    known = frames(histogram for each in case.layers for histogram in each.layer.tensors.values())
    heat = list(_heat(case.layers))
    folded = sorted(heat, key=lambda row: -row.score)[:FOLDED]
    return RunView(
        case.run,
        settings_of(case.run),
        results_of(case),
        said,
        *_offer(case, said),
        _worst(ordered),
        heat,
        [_card(each, known) for each in ordered[:OPEN]],
        [
            (row.module, [_card(each, known) for each in row.passes if each is not None])
            for row in sorted(folded, key=heat.index)
        ],
        len(heat) - len(folded),
        timeline([case.run]),
        _gauge(case.window),
        known,
    )


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
    for number, (_, each) in enumerate(said, 1):
        lines += [f"{number}. {each.title} {each.because}", f"   {each.change}"]
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


def _card(each: Judged, known: dict[str, Frame]) -> Card:
    layer = each.layer
    tensors = [
        (name, layer.tensors[name], bars(layer.tensors[name], known[layer.tensors[name].format])) for name in TENSORS
    ]
    return Card(each, tensors, sparkline(layer.steps, share_of_steps(layer, each.worst)) if each.worst else "")


def _gauge(window: Window | None) -> Gauge | None:
    if window is None:
        return None
    exponents = (window.low, window.high, window.used_low, window.used_high, window.last)
    axis = Axis(min(exponents) - 6, max(exponents) + 6, 20, 940)
    scaled = {str(exponent + window.last): count for exponent, count in window.exponents}
    histogram = Histogram(str(window.format), sum(scaled.values()), window.zero, exponents=scaled)
    frame = frames([histogram])[histogram.format]
    return Gauge(
        window,
        power_ticks(axis, power, 14),
        axis(window.low),
        axis(window.high),
        (axis(window.used_low), axis(window.used_high)),
        axis(window.last),
        histogram,
        frame,
        bars(histogram, frame),
    )
