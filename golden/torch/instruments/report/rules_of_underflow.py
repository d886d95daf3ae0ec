"""Rules about gradients that underflow, and what else that explains. The remedy is the loss scale, not a level."""

from __future__ import annotations

from golden.torch.instruments.report.advice import (
    Advice,
    Case,
    Rule,
    good,
    is_fixed,
    places,
    precision,
    scale,
    where,
    wider,
)
from golden.torch.instruments.report.judging import Judged
from golden.torch.instruments.report.limits import LIMITS
from golden.torch.instruments.report.window import KEPT, RESERVE, Window
from golden.torch.instruments.report.words import percent, power, times

__all__ = ["RULES", "unexplained"]

_NAMED = 6
_UNDERFLOW, _SWAMPED = LIMITS["underflow"].share, LIMITS["swamped"].share


def unexplained(case: Case) -> list[Judged]:
    """Return the layers, without gradients that go wrong because they underflow, where a larger loss scale mends that.

    A sum below the normal numbers has fewer bits, so that it loses addends and is far from fp32. A step that loses its
    addend there counts as underflow as well: further swamped steps have another cause.
    """
    if _no_scale(case) is None and _scale_low(case) is None:
        return case.layers
    return [each for each in case.layers if not _is_explained(each)]


def _is_explained(each: Judged) -> bool:
    if each.layer.direction == "forward" or not (_is_below_normal(each) or each.is_beyond("underflow")):
        return False
    counts = each.of_products, each.of_promotions
    return all(shares["swamped"] - shares["underflow"] <= _SWAMPED for shares in counts)


def _is_below_normal(each: Judged) -> bool:
    output = each.layer.tensors["output"]
    return each.is_lost or output.subnormal > (1 - KEPT) * output.finite


def _all_zero(case: Case) -> list[Judged]:
    return [each for each in case.backward() if each.is_all_zero]


def _named_zero(case: Case) -> str:
    """Name the layers whose gradient is all zero: those that lose it first, and not all of many."""
    found = sorted(_all_zero(case), key=lambda each: not each.is_lost)
    names = list(dict.fromkeys(each.layer.module or "the model itself" for each in found))
    if not names:
        return ""
    more = f" and {times(len(names) - _NAMED, 'other', 'others')}" if len(names) > _NAMED else ""
    return f" The gradient is all zero in {', '.join(names[:_NAMED])}{more}."


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


def _underflowing(case: Case) -> list[tuple[Judged, float]]:
    """Return the gradients that underflow: the share of their steps, and 1 where all results have become 0."""
    shares = [(each, 1.0 if each.is_lost else each.shares["underflow"] or 0.0) for each in case.backward()]
    return [(each, share) for each, share in shares if share > _UNDERFLOW]


def _has_room(window: Window) -> bool:
    """Return whether a scale fits that is larger than the last by more than the reserve."""
    return window.last + RESERVE <= window.high


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


def _zero_gradient(case: Case) -> Advice | None:
    if not _all_zero(case) or any(rule(case) for rule in (_no_scale, _scale_low, _underflow_without_room)):
        return None
    return Advice(
        "Layers do not learn: their gradient is all zero.",
        f"Every observed step gave zeros alone.{_named_zero(case)}",
        f"Look between these layers and the loss for a factor too small for {case.run.settings.half}, for dead ReLUs, "
        "masks and detach(). Weights that begin at 0 have this in the first step, too.",
        tuple(where(each) for each in _all_zero(case)),
    )


RULES = (
    Rule(
        "no loss scale",
        f"there is none, and more than {percent(1 - KEPT)} of the gradients are below normal, or all of a layer's "
        "results underflow to 0",
        _no_scale,
    ),
    Rule(
        "scale too small",
        f"with the last scale more than {percent(1 - KEPT)} of the gradients are below normal; or more than "
        f"{LIMITS['underflow'].allowed} of a layer's gradient steps underflow, or all its results underflow to 0, and "
        "a scale 4 times as large fits",
        _scale_low,
    ),
    Rule(
        "underflow without room",
        f"more than {LIMITS['underflow'].allowed} of a layer's gradient steps underflow, or all its results to 0, and "
        "no such scale fits",
        _underflow_without_room,
    ),
    Rule(
        "gradient all zero",
        "all gradients that a layer's products give are 0, and none of the rules above speaks of underflow",
        _zero_gradient,
    ),
)
