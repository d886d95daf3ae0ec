"""Several runs side by side: their settings, how they ended, and the layers that differ most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from golden.torch.instruments.report.advice import Case
from golden.torch.instruments.report.glance import Fact, results_of, settings_of
from golden.torch.instruments.report.judging import Judged
from golden.torch.instruments.report.limits import LIMITS, RARE

__all__ = ["Comparison", "Difference", "comparison"]

#: Layers that are shown, those that differ most.
_SHOWN = 20


@dataclass(frozen=True)
class Difference:
    """A layer and pass, the event in which the runs differ most there, and what each run has (None: no such layer)."""

    module: str
    direction: str
    event: str
    runs: list[Judged | None]
    ratio: float


@dataclass(frozen=True)
class Comparison:
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
    return Comparison(facts, in_common, differing[:_SHOWN])


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
