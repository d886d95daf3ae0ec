"""All rules of the advice, the most urgent first: a rule that explains others comes before them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile

from golden.torch.instruments.report.advice import (
    Advice,
    Case,
    about,
    good,
    is_fixed,
    merged,
    places,
    precision,
    scale,
    where,
    wider,
)
from golden.torch.instruments.report.judging import Judged
from golden.torch.instruments.report.limits import LIMITS
from golden.torch.instruments.report.records import Histogram, Step, Trial, scale_exponent
from golden.torch.instruments.report.window import KEPT, RESERVE, Window
from golden.torch.instruments.report.words import percent, power, times

__all__ = ["RULES", "advice", "in_words"]

_NAMED = 6  # layers
_LEADING = 3  # skipped steps at the beginning of which a rule speaks
# The share of skipped steps, apart from the beginning, beyond which a rule speaks; and steps that it needs.
_SKIPPED, _FEW_STEPS = 0.05, 20
_SUBNORMAL = 0.10  # share of a tensor's values beyond which the forward pass is called too small for its format
_UNDERFLOW, _SWAMPED, _DISTANCE = LIMITS["underflow"], LIMITS["swamped"], LIMITS["distance"]


@dataclass(frozen=True)
class Rule:
    """A rule: when it speaks, in words, and the function that decides."""

    name: str
    when: str
    speak: Callable[[Case], Advice | None]


RULES: list[Rule] = []


def _rule(name: str, when: str) -> Callable[[Callable[[Case], Advice | None]], Rule]:
    """Add the function that decides to the rules, behind those above it."""

    def add(speak: Callable[[Case], Advice | None]) -> Rule:
        RULES.append(Rule(name, when, speak))
        return RULES[-1]

    return add


@_rule("run lost", f"the last {_FEW_STEPS} steps or more were all skipped")
def _lost(case: Case) -> Advice | None:
    tail = list(takewhile(lambda step: step.skipped, reversed(case.run.steps)))
    if len(tail) < _FEW_STEPS:
        return None
    return Advice(
        "The run is lost: no step of its end changed the model.",
        f"The last {len(tail):,} steps were skipped, from step {tail[-1].step:,} on.",
        "No loss scale mends that: the model or its input gives infinities by itself. Begin from an earlier "
        f"checkpoint, and mend what went bad first.{_first_bad(case)}",
    )


@_rule("not finite", "a step was made although its loss or its gradients were not finite")
def _not_finite(case: Case) -> Advice | None:
    bad = [
        step
        for step in case.run.steps
        if not step.skipped and not (step.finite and (step.loss is None or math.isfinite(step.loss)))
    ]
    if not bad:
        return None
    return Advice(
        "The loss or the gradients were not finite, and the step was made all the same.",
        f"{times(len(bad), 'step', 'steps')}, the first is step {bad[0].step:,}.",
        "Use loss scaling, which skips such steps, or mend what went bad first." + _first_bad(case),
        setting=precision(loss_scaling_factor="dynamic"),
    )


def _first_bad(case: Case) -> str:
    if not case.run.telling:
        return ""
    first = case.run.telling[0]
    return f" That is {first.module} at step {first.step:,}: {first.cause}."


def _in_chunks(each: Judged, event: str) -> float:
    """Return the share of an event in the steps that add a product in 16 bits, 0 up to its limit."""
    share = each.of_products[event] if each.layer.level else 0.0
    return share if share > LIMITS[event].share else 0.0


def _in_totals(each: Judged, event: str) -> float:
    """Return the share of an event in promotions of 16 bits, 0 up to its limit and where chunks have the event."""
    share = each.of_promotions[event] if each.layer.level == 2 else 0.0
    return share if share > LIMITS[event].share and not _in_chunks(each, event) else 0.0


@_rule("overflow in chunks", "forward, level 1 or 2: a step that adds a product overflows")
def _overflow_in_chunks(case: Case) -> Advice | None:
    return about(
        ((each, _in_chunks(each, "overflow")) for each in case.forward()),
        "Partial sums overflow within a chunk.",
        "Steps that add a product overflow {places} of these steps.",
        "Use level 0 there: its sums are fp32. Level 1 does not help, for it sums a chunk in 16 bits as level 2 does. "
        "If the output is still infinite at level 0, the result itself is too large for the format.",
        lambda level: 0,
    )


@_rule("overflow of totals", "forward, level 2: a promotion overflows, and no step that adds a product does")
def _overflow_in_totals(case: Case) -> Advice | None:
    return about(
        ((each, _in_totals(each, "overflow")) for each in case.forward()),
        "Totals overflow at level 2, while the sum of each chunk fits.",
        "Promotions overflow {places} of the promotions; no step within a chunk does.",
        "Use level 1 there: it sums a chunk in 16 bits as before, and the chunks in fp32.",
        lambda level: 1,
    )


def _zeros(case: Case) -> list[Judged]:
    return [each for each in case.backward() if each.is_all_zero]


def _named_zero(case: Case) -> str:
    """Name the layers whose gradient is all zero: those that lose it first, and not all of many."""
    found = sorted(_zeros(case), key=lambda each: not each.is_lost)
    names = list(dict.fromkeys(each.layer.module or "the model itself" for each in found))
    if not names:
        return ""
    more = f" and {times(len(names) - _NAMED, 'other', 'others')}" if len(names) > _NAMED else ""
    return f" The gradient is all zero in {', '.join(names[:_NAMED])}{more}."


def _underflowing(case: Case) -> list[tuple[Judged, float]]:
    """Return the gradients that underflow: the share of their steps, and 1 where all results have become 0."""
    shares = [(each, 1.0 if each.is_lost else each.shares["underflow"] or 0.0) for each in case.backward()]
    return [(each, share) for each, share in shares if share > _UNDERFLOW.share]


def _has_room(window: Window) -> bool:
    """Return whether a scale fits that is larger than the last by more than the reserve."""
    return window.last + RESERVE <= window.high


@_rule(
    "no loss scale",
    f"there is none, and more than {percent(1 - KEPT)} of the gradients are below normal, or all of a layer's results "
    "underflow to 0",
)
def _no_scale(case: Case) -> Advice | None:
    window = case.window
    if window is None or window.is_scaled or not window.is_open:
        return None
    if window.low <= 0 and not (_has_room(window) and any(each.is_lost for each in case.backward())):
        return None
    return Advice(
        "Gradients are too small for their format, and the loss is not scaled.",
        f"{percent(window.below_normal(0))} of the gradients are below the normal numbers of {window.format}, the "
        f"smallest of which is {power(window.format.emin)}.{_named_zero(case)}",
        f"Scale the loss. {good(window)}",
        setting=precision(loss_scaling_factor="dynamic", initial_loss_scale=scale(window.high)),
    )


@_rule(
    "scale too small",
    f"with the last scale more than {percent(1 - KEPT)} of the gradients are below normal; or more than "
    f"{_UNDERFLOW.allowed} of a layer's gradient steps underflow, or all its results underflow to 0, and a scale 4 "
    "times as large fits",
)
def _scale_low(case: Case) -> Advice | None:
    window = case.window
    if window is None or not window.is_scaled or not window.is_open:
        return None
    found = _underflowing(case) if _has_room(window) else []
    if window.place(window.last) != "below" and not found:
        return None
    because = (
        f"With the last scale, {power(window.last)}, {percent(window.below_normal(window.last))} of the gradients are "
        f"below the normal numbers of {window.format}.{_named_zero(case)}"
    )
    said, layers = places(found) if found else ("", ())
    adapting = {"loss_scaling_factor": "dynamic"} if is_fixed(case) else {}
    return Advice(
        "The loss scale is too small: gradients underflow.",
        because + (f" Steps or results underflow {said}." if found else ""),
        f"Raise the loss scale. {good(window)}",
        layers,
        setting=precision(**adapting, initial_loss_scale=scale(window.high)),
    )


@_rule(
    "underflow without room",
    f"more than {_UNDERFLOW.allowed} of a layer's gradient steps underflow, or all its results to 0, and no such scale "
    "fits",
)
def _underflow_without_room(case: Case) -> Advice | None:
    window, found = case.window, _underflowing(case)
    if window is None or not window.is_scaled or _has_room(window) or not window.is_open or not found:
        return None
    said, layers = places(found)
    return Advice(
        "Some gradients underflow, and the others leave no room for a larger loss scale.",
        f"Steps or results underflow {said}; the last scale was {power(window.last)}, the largest that fits is "
        f"{power(window.high)}.{_named_zero(case)}",
        f"Use {wider(str(window.format))} if these layers learn too slowly. The loss scale cannot help them.",
        layers,
    )


@_rule(
    "gradient all zero",
    "all gradients that a layer's products give are 0, and none of the rules above speaks of underflow",
)
def _all_zero(case: Case) -> Advice | None:
    found, others = _zeros(case), (_no_scale, _scale_low, _underflow_without_room)
    if not found or any(each.speak(case) for each in others):
        return None
    return Advice(
        "Layers do not learn: their gradient is all zero.",
        f"Every observed step gave zeros alone.{_named_zero(case)}",
        f"Look between these layers and the loss for a factor too small for {case.run.settings.half}, for dead ReLUs, "
        "masks and detach(). Weights that begin at 0 have this in the first step, too.",
        tuple(map(where, found)),
    )


def _unexplained(case: Case) -> list[Judged]:
    """Return the layers, without gradients that go wrong because they underflow, where a larger loss scale mends that.

    A sum below the normal numbers has fewer bits, so that it loses addends and is far from fp32. A step that loses its
    addend there counts as underflow as well: further swamped steps have another cause.
    """
    if _no_scale.speak(case) is None and _scale_low.speak(case) is None:
        return case.layers
    return [each for each in case.layers if not _is_explained(each)]


def _is_explained(each: Judged) -> bool:
    output = each.layer.tensors["output"]
    is_below_normal = each.is_lost or output.subnormal > (1 - KEPT) * output.finite
    if each.layer.direction == "forward" or not (is_below_normal or each.is_beyond("underflow")):
        return False
    counts = each.of_products, each.of_promotions
    return all(shares["swamped"] - shares["underflow"] <= _SWAMPED.share for shares in counts)


@_rule("swamped in chunks", f"level 1 or 2: more than {_SWAMPED.allowed} of the steps that add a product are swamped")
def _swamped_in_chunks(case: Case) -> Advice | None:
    chunk = case.run.settings.chunk
    shorter = 32 if chunk is None else max(1, chunk // 2)
    what = "a chunk length" if chunk is None else "a shorter chunk"
    return about(
        ((each, _in_chunks(each, "swamped")) for each in _unexplained(case)),
        "Addends are swamped within a chunk.",
        f"Steps lose their addend whole {{places}} of these steps; the limit is {_SWAMPED.allowed}.",
        f"Use {what}, such as {shorter}, or level 0 for these places: levels 1 and 2 both sum a chunk in 16 bits.",
        lambda level: 0,
        precision(chunk=shorter),
    )


@_rule(
    "swamped totals", f"level 2: more than {_SWAMPED.allowed} of the promotions are swamped, and not so many products"
)
def _swamped_in_totals(case: Case) -> Advice | None:
    return about(
        ((each, _in_totals(each, "swamped")) for each in _unexplained(case)),
        "Partial sums are swamped by the total at level 2.",
        f"Promotions lose a whole chunk {{places}} of the promotions; the limit is {_SWAMPED.allowed}.",
        "Use level 1 there: it sums the chunks in fp32.",
        lambda level: 1,
    )


@_rule(
    "far from fp32",
    f"level 1 or 2: the mean relative distance is beyond {_DISTANCE.allowed}, and none of the rules above "
    "speaks of that layer",
)
def _far_from_fp32(case: Case) -> Advice | None:
    def is_far(each: Judged) -> bool:
        told = (where(each, event) for where in (_in_chunks, _in_totals) for event in ("overflow", "swamped"))
        return each.is_beyond("distance") and each.layer.level > 0 and not any(told)

    return about(
        ((each, each.shares["distance"]) for each in _unexplained(case) if is_far(each)),
        "Results are far from those of fp32, though no event explains it.",
        f"The mean relative distance is beyond {_DISTANCE.allowed} {{places}}.",
        "Rounding errors add up there. Use the next lower level.",
        lambda level: level - 1,
    )


@_rule("invalid", "a step is invalid in a layer where none overflows")
def _invalid(case: Case) -> Advice | None:
    first = case.run.telling[0] if case.run.telling else None
    source = f" The earliest bad step is {first.step}, in {first.module}: {first.cause}." if first is not None else ""
    return about(
        ((each, each.shares["invalid"]) for each in case.layers if not each.shares["overflow"]),
        "Sums meet infinities that they did not make.",
        "Steps are invalid {places} of the steps, and none there overflows: the operands were infinite already.",
        f"Mend the layer that overflows first, not these.{source}",
    )


@_rule("scale too large", "a scale that never changed puts a gradient into the topmost binade")
def _scale_high(case: Case) -> Advice | None:
    window = case.window
    if window is None or not window.is_scaled or not window.is_open or not is_fixed(case):
        return None
    top = window.exponents[-1][0] + window.last
    if top < window.format.emax:
        return None
    return Advice(
        "The loss scale is too large: gradients touch the top of their format.",
        f"The scale was {power(window.last)} in every step. With it the largest gradient has the exponent {top}; the "
        f"largest number of {window.format} has {window.format.emax}.",
        f"Lower the loss scale, or let it adapt itself. {good(window)}",
        setting=precision(loss_scaling_factor="dynamic", initial_loss_scale=scale(window.high)),
    )


@_rule("no scale fits", "the smallest scale that is large enough is larger than the largest that fits")
def _no_window(case: Case) -> Advice | None:
    window = case.window
    if window is None or window.is_open:
        return None
    return Advice(
        "No loss scale fits: the gradients span more than their format holds.",
        f"To keep {percent(KEPT)} of them normal in {window.format}, the scale must be at least {power(window.low)}; "
        f"to keep the largest below overflow, at most {power(window.high)}.",
        f"Use {wider(str(window.format))}, or find the layer whose gradients are far larger than the others'.",
    )


def _after_the_first(case: Case) -> tuple[int, list[Step]]:
    """Return how many steps were skipped at the beginning, and the steps after them."""
    leading = len(list(takewhile(lambda step: step.skipped, case.run.steps)))
    return leading, case.run.steps[leading:]


@_rule("skipped at first", f"the first {_LEADING} steps or more were skipped")
def _skipped_at_first(case: Case) -> Advice | None:
    leading, rest = _after_the_first(case)
    if leading < _LEADING or not rest:
        return None
    settled = scale_exponent(rest[0].loss_scale)
    return Advice(
        "The loss scale begins too large.",
        f"The first {leading:,} steps were skipped, until the scale had come down to {power(settled)}.",
        "Begin there. A later run loses no steps at its beginning.",
        setting=precision(initial_loss_scale=scale(settled)),
    )


@_rule("skipped often", f"more than {percent(_SKIPPED)} of the later steps were skipped, of {_FEW_STEPS} or more")
def _skipped_often(case: Case) -> Advice | None:
    _, rest = _after_the_first(case)
    skipped = sum(step.skipped for step in rest)
    if len(rest) < _FEW_STEPS or skipped <= _SKIPPED * len(rest) or _lost.speak(case) is not None:
        return None
    share = f"{skipped:,} of {len(rest):,} steps were skipped, {percent(skipped / len(rest))}; the limit is "
    if is_fixed(case):
        return Advice(
            "Many steps are skipped, and the loss scale stays as it is.",
            f"{share}{percent(_SKIPPED)}.",
            "Let it adapt itself: it comes down until the gradients fit.",
            setting=precision(loss_scaling_factor="dynamic"),
        )
    kept = scale_exponent(max((step.loss_scale for step in rest if not step.skipped and step.loss_scale), default=None))
    return Advice(
        "Many steps are skipped: the loss scale climbs back too soon.",
        f"{share}{percent(_SKIPPED)}. The largest scale of a step that was made is {power(kept)}.",
        "Let it climb later (steps_per_increase), or no further than it was good (max_loss_scale).",
        setting=precision(max_loss_scale=scale(kept)),
    )


def _at_top(histogram: Histogram) -> float:
    """Return the share of a tensor's values that are infinite or in the topmost binade."""
    fmt, total = histogram.number_format, histogram.finite + histogram.infinite
    if fmt is None or not total:
        return 0.0
    at_top = sum(count for exponent, count in histogram.by_exponent if exponent >= fmt.emax)
    return (at_top + histogram.infinite) / total


def _subnormal(histogram: Histogram) -> float:
    share = histogram.subnormal / histogram.finite if histogram.finite else 0.0
    return share if share > _SUBNORMAL else 0.0


def _largest(each: Judged, measure: Callable[[Histogram], float]) -> float:
    return max((measure(histogram) for histogram in each.layer.tensors.values()), default=0.0)


@_rule("forward too large", "forward: a value is infinite or in the topmost binade of its format")
def _forward_high(case: Case) -> Advice | None:
    half = case.run.settings.half
    return about(
        ((each, _largest(each, _at_top)) for each in case.forward()),
        "Values of the forward pass touch the top of their format.",
        f"They are infinite or in the topmost binade of {half} {{places}} of a tensor's values.",
        f"The loss scale has no part in the forward pass. Use {wider(half)}, or keep these values smaller: a "
        "normalisation before the layer, smaller weights at the beginning.",
    )


@_rule("forward too small", f"forward: more than {percent(_SUBNORMAL)} of a tensor's values are subnormal")
def _forward_low(case: Case) -> Advice | None:
    return about(
        ((each, _largest(each, _subnormal)) for each in case.forward()),
        "Values of the forward pass are below the normal numbers.",
        f"They are subnormal {{places}} of a tensor's values other than 0; the limit is {percent(_SUBNORMAL)}.",
        f"The loss scale has no part in the forward pass. Use {wider(case.run.settings.half)}, or make these values "
        "larger: scale the input, or fold a factor into the layer before.",
    )


def advice(case: Case) -> list[tuple[str, Advice]]:
    """Return the advice for a run, each piece with the name of its rule.

    Advice for levels that were tried and do not help comes last, without these levels.
    """
    found = [(each.name, said) for each in RULES if (said := each.speak(case)) is not None]
    trial = case.run.trial
    if trial is None or trial.helps or trial.levels != merged(said.levels for _, said in found):
        return found
    vain = (
        (name, replace(said, change=f"Other levels do not help: {in_words(trial)}", levels={}, setting=""))
        for name, said in found
        if said.levels
    )
    return [*((name, said) for name, said in found if not said.levels), *vain]


def in_words(trial: Trial) -> str:
    """Describe the outcome of a trial of new levels."""
    without, with_it = (
        "not finite" if each is None else f"{percent(each)} away" for each in (trial.before, trial.after)
    )
    return (
        f"in a trial step after step {trial.step:,}, results and gradients, next to those of fp32, were {with_it} with "
        f"new levels and {without} without."
    )
