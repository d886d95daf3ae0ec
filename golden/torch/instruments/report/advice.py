"""Advice in words: its parts, the case that rules look at, maps of levels, remedies that several rules name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from golden.torch.instruments.report.judging import Judged, judged
from golden.torch.instruments.report.records import Run
from golden.torch.instruments.report.window import KEPT, Window, window_of
from golden.torch.instruments.report.words import pass_in_words, percent, power, times

__all__ = [
    "Advice",
    "Case",
    "LevelMap",
    "about",
    "case_of",
    "good",
    "is_fixed",
    "merged",
    "places",
    "precision",
    "scale",
    "where",
    "wider",
]


#: Levels by module, and there by ``fwd`` and ``bwd``, as the file of a run has them.
LevelMap = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Advice:
    """One thing to change, or to look at.

    Parameters
    ----------
    title : str
        What is wrong, in a sentence.
    because : str
        The numbers that it follows from.
    change : str
        What to do.
    layers : tuple of str
        Where, the worst first, each with its number.
    levels : dict
        New levels, by module and there by ``fwd`` and ``bwd``.
    setting : str
        Lines for the file of a run, empty if there are none.
    """

    title: str
    because: str
    change: str
    layers: tuple[str, ...] = ()
    levels: LevelMap = field(default_factory=dict)
    setting: str = ""


@dataclass(frozen=True)
class Case:
    """A run, and the findings about it."""

    run: Run
    layers: list[Judged]
    window: Window | None

    def forward(self) -> Iterator[Judged]:
        """Give the forward passes."""
        return (each for each in self.layers if each.layer.direction == "forward")

    def backward(self) -> Iterator[Judged]:
        """Give the gradients."""
        return (each for each in self.layers if each.layer.direction != "forward")


def case_of(run: Run) -> Case:
    """Collect the facts that the rules need."""
    return Case(run, judged(run), window_of(run))


def where(each: Judged) -> str:
    """Return the name of a layer with its pass."""
    return f"{each.layer.module}, {pass_in_words(each.layer.direction)}"


def places(found: Iterable[tuple[Judged, float]]) -> tuple[str, tuple[str, ...]]:
    """Return how many places there are and which is the worst, in words; and all of them with their shares."""
    ordered = sorted(found, key=lambda pair: -pair[1])
    worst, share = ordered[0]
    said = f"in {times(len(ordered), 'place', 'places')}, most in {where(worst)}: {percent(share)}"
    return said, tuple(f"{where(each)}: {percent(part)}" for each, part in ordered)


def about(
    given: Iterable[tuple[Judged, float | None]],
    title: str,
    because: str,
    change: str,
    level: Callable[[int], int] | None = None,
    setting: str = "",
) -> Advice | None:
    """Return advice about layers, each given with a share; None if no share is above 0.

    In `because`, ``{places}`` stands for them. `level` gives each a new level for the level that it has.
    """
    found = [(each, share) for each, share in given if share]
    if not found:
        return None
    said, layers = places(found)
    # Products outside of the modules, and those that a compiler hides, have no path that a map could name.
    levels: LevelMap = merged(
        {each.layer.module: {"fwd" if each.layer.direction == "forward" else "bwd": level(each.layer.level)}}
        for each, _ in found
        if level is not None and each.layer.module and not each.layer.module.startswith("(")
    )
    return Advice(title, because.replace("{places}", said), change, layers, levels, setting)


def merged(maps: Iterable[LevelMap]) -> LevelMap:
    """Join maps of levels; where two differ, the lower level holds, which is the more exact one."""
    together: LevelMap = {}
    for levels in maps:
        for module, passes in levels.items():
            known = together.setdefault(module, {})
            for key, level in passes.items():
                known[key] = min(level, known.get(key, level))
    return together


_WIDER = {"float16": "cbfloat16 or bfloat16", "cb16": "cbfloat16 or bfloat16", "cbfloat16": "bfloat16"}


def wider(name: str) -> str:
    """Return the formats of more range than this one, in words."""
    return _WIDER.get(name, "a format with more exponent bits")


def precision(**settings: object) -> str:
    """Write settings as the file of a run has them."""
    return f"precision: {{{', '.join(f'{key}: {value}' for key, value in settings.items())}}}"


def scale(exponent: int) -> str:
    """Write a loss scale as YAML reads it."""
    return repr(math.ldexp(1.0, exponent))


def good(window: Window) -> str:
    """Say which loss scales are good."""
    return f"Scales from {power(window.low)} to {power(window.high)} keep {percent(KEPT)} of these gradients normal."


def is_fixed(case: Case) -> bool:
    """Return whether the scale never changed; one that does steps back by itself."""
    return len({step.loss_scale for step in case.run.steps}) == 1
