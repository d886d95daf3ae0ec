"""All rules, the most urgent first."""

from __future__ import annotations

from golden.torch.report import rules_of_range, rules_of_sums
from golden.torch.report.advice import Advice, Case

__all__ = ["RULES", "advice"]

_RUN, _RANGE = rules_of_range.RULES[:2], rules_of_range.RULES[2:]
RULES = (*_RUN, *rules_of_sums.RULES, *_RANGE)


def advice(case: Case) -> list[tuple[str, Advice]]:
    """Return what the rules say about a run, each with the name of its rule."""
    return [(rule.name, said) for rule in RULES if (said := rule.speak(case)) is not None]
