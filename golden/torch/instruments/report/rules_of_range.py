"""Rules about range: the loss scale and the gradients, and the forward pass, which no scale reaches."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import takewhile

from golden.torch.instruments.report.advice import Advice, Case, Rule, good, is_fixed, places, precision, scale, wider
from golden.torch.instruments.report.judging import Judged
from golden.torch.instruments.report.records import Histogram, scale_exponent
from golden.torch.instruments.report.window import KEPT
from golden.torch.instruments.report.words import percent, power, times

__all__ = ["FEW_STEPS", "LEADING", "RULES", "SKIPPED", "SUBNORMAL"]

#: Skipped steps at the beginning of which a rule speaks.
LEADING = 3
#: The share of skipped steps, apart from the beginning, beyond which a rule speaks; and steps that it needs.
SKIPPED, FEW_STEPS = 0.05, 20
#: The share of subnormal values beyond which the forward pass is called too small for its format.
SUBNORMAL = 0.10


def _lost(case: Case) -> Advice | None:
    """Every step of the end was skipped: no scale helps any more."""
    tail = list(takewhile(lambda step: step.skipped, reversed(case.run.steps)))
    if len(tail) < FEW_STEPS:
        return None
    return Advice(
        "The run is lost: no step of its end changed the model.",
        f"The last {len(tail):,} steps were skipped, from step {tail[-1].step:,} on.",
        "No loss scale mends that: the model or its input gives infinities by itself. Begin from an earlier "
        f"checkpoint, and mend what went bad first.{_first_bad(case)}",
    )


def _not_finite(case: Case) -> Advice | None:
    bad = [step for step in case.run.steps if not step.skipped and not (step.finite and _is_finite(step.loss))]
    if not bad:
        return None
    return Advice(
        "The loss or the gradients were not finite, and the step was made all the same.",
        f"{times(len(bad), 'step', 'steps')}, the first is step {bad[0].step:,}.",
        "Use loss scaling, which skips such steps, or mend what went bad first." + _first_bad(case),
        setting=precision(loss_scaling_factor="dynamic"),
    )


def _is_finite(loss: float | None) -> bool:
    return loss is None or math.isfinite(loss)


def _first_bad(case: Case) -> str:
    if not case.run.telling:
        return ""
    first = case.run.telling[0]
    return f" That is {first.module} at step {first.step:,}: {first.cause}."


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


def _skipped_at_first(case: Case) -> Advice | None:
    leading = list(takewhile(lambda step: step.skipped, case.run.steps))
    rest = case.run.steps[len(leading) :]
    if len(leading) < LEADING or not rest:
        return None
    settled = scale_exponent(rest[0].loss_scale)
    return Advice(
        "The loss scale begins too large.",
        f"The first {len(leading):,} steps were skipped, until the scale had come down to {power(settled)}.",
        "Begin there. A later run loses no steps at its beginning.",
        setting=precision(initial_loss_scale=scale(settled)),
    )


def _skipped_often(case: Case) -> Advice | None:
    leading = len(list(takewhile(lambda step: step.skipped, case.run.steps)))
    rest = case.run.steps[leading:]
    skipped = sum(step.skipped for step in rest)
    if len(rest) < FEW_STEPS or skipped <= SKIPPED * len(rest) or _lost(case) is not None:
        return None
    share = f"{skipped:,} of {len(rest):,} steps were skipped, {percent(skipped / len(rest))}; the limit is "
    if is_fixed(case):
        return Advice(
            "Many steps are skipped, and the loss scale stays as it is.",
            f"{share}{percent(SKIPPED)}.",
            "Let it adapt itself: it comes down until the gradients fit.",
            setting=precision(loss_scaling_factor="dynamic"),
        )
    kept = scale_exponent(max((step.loss_scale for step in rest if not step.skipped and step.loss_scale), default=None))
    return Advice(
        "Many steps are skipped: the loss scale climbs back too soon.",
        f"{share}{percent(SKIPPED)}. The largest scale of a step that was made is {power(kept)}.",
        "Let it climb later (steps_per_increase), or no further than it was good (max_loss_scale).",
        setting=precision(max_loss_scale=scale(kept)),
    )


def _at_top(histogram: Histogram) -> float:
    """Return the share of a tensor's values that are infinite or in the topmost binade."""
    fmt, total = histogram.number_format, histogram.finite + histogram.infinite
    if fmt is None or not total:
        return 0.0
    return (
        sum(count for exponent, count in histogram.by_exponent if exponent >= fmt.emax) + histogram.infinite
    ) / total


def _subnormal(histogram: Histogram) -> float:
    return histogram.subnormal / histogram.finite if histogram.finite else 0.0


def _forward_high(case: Case) -> Advice | None:
    found = [(each, share) for each in case.forward() if (share := _largest(each, _at_top))]
    if not found:
        return None
    said, layers = places(found)
    half = case.run.settings.half
    return Advice(
        "Values of the forward pass touch the top of their format.",
        f"They are infinite or in the topmost binade of {half} {said} of a tensor's values.",
        f"The loss scale has no part in the forward pass. Use {wider(half)}, or keep these values smaller: a "
        "normalisation before the layer, smaller weights at the beginning.",
        layers,
    )


def _forward_low(case: Case) -> Advice | None:
    found = [(each, share) for each in case.forward() if (share := _largest(each, _subnormal)) > SUBNORMAL]
    if not found:
        return None
    said, layers = places(found)
    half = case.run.settings.half
    return Advice(
        "Values of the forward pass are below the normal numbers.",
        f"They are subnormal {said} of a tensor's values other than 0; the limit is {percent(SUBNORMAL)}.",
        f"The loss scale has no part in the forward pass. Use {wider(half)}, or make these values larger: scale the "
        "input, or fold a factor into the layer before.",
        layers,
    )


def _largest(each: Judged, measure: Callable[[Histogram], float]) -> float:
    return max((measure(histogram) for histogram in each.layer.tensors.values()), default=0.0)


RULES = (
    Rule("run lost", f"the last {FEW_STEPS} steps or more were all skipped", _lost),
    Rule("not finite", "a step was made although its loss or its gradients were not finite", _not_finite),
    Rule(
        "scale too large",
        "a scale that never changed puts a gradient into the topmost binade",
        _scale_high,
    ),
    Rule("no scale fits", "the smallest scale that is large enough is larger than the largest that fits", _no_window),
    Rule("skipped at first", f"the first {LEADING} steps or more were skipped", _skipped_at_first),
    Rule(
        "skipped often",
        f"more than {percent(SKIPPED)} of the later steps were skipped, of {FEW_STEPS} or more",
        _skipped_often,
    ),
    Rule("forward too large", "forward: a value is infinite or in the topmost binade of its format", _forward_high),
    Rule(
        "forward too small", f"forward: more than {percent(SUBNORMAL)} of a tensor's values are subnormal", _forward_low
    ),
)
