"""All rules, the most urgent first."""

from __future__ import annotations

from dataclasses import replace

from golden.torch.instruments.report import rules_of_range, rules_of_sums, rules_of_underflow
from golden.torch.instruments.report.advice import Advice, Case, merged
from golden.torch.instruments.report.records import Trial
from golden.torch.instruments.report.words import percent

__all__ = ["RULES", "advice", "in_words"]

_RUN, _RANGE = rules_of_range.RULES[:2], rules_of_range.RULES[2:]
_OVERFLOW, _SUMS = rules_of_sums.RULES[:2], rules_of_sums.RULES[2:]
#: A rule that explains others comes before them.
RULES = (*_RUN, *_OVERFLOW, *rules_of_underflow.RULES, *_SUMS, *_RANGE)


def advice(case: Case) -> list[tuple[str, Advice]]:
    """Return the advice for a run, each piece with the name of its rule.

    Advice for levels that were tried and do not help comes last, without these levels.
    """
    found = [(rule.name, said) for rule in RULES if (said := rule.speak(case)) is not None]
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
