"""Findings of a scenario, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sim.bench.episode import Ran
from sim.bench.scoreboard import Scoreboard
from sim.counts import COUNTERS
from sim.port import Port
from sim.scenario import Scenario

__all__ = ["Context", "Explain", "findings"]

_SHOWN = 5


@dataclass(frozen=True)
class Context:
    """The facts about a run that failure lines show.

    Parameters
    ----------
    unit : str
    seed : int
    effort : float
    port : Port
    formats : list of str
        Names of the formats to which payloads refer.
    """

    unit: str
    seed: int
    effort: float
    port: Port
    formats: list[str]

    @classmethod
    def from_dict(cls, manifest: dict[str, Any]) -> Context:
        """Return the context from the manifest of a run."""
        given = {key: manifest[key] for key in ("unit", "seed", "effort", "formats")}
        return cls(port=Port.from_dict(manifest["port"]), **given)


#: Makes a line from the context, the scenario, the index of an expected answer and the actual answer.
Explain = Callable[[Context, Scenario, int, "int | str | None"], str]


def findings(context: Context, scenario: Scenario, ran: Sequence[Ran], explain: Explain) -> list[str]:
    """Return the errors in the episodes of a scenario; an empty list if there are none."""
    total = len(scenario.answers)
    found = [] if total else ["the scenario expects no answer: nothing was tested"]
    scoreboard = Scoreboard(context.port)
    broken: list[str] = []
    if len(ran) != len(scenario.episodes):
        found.append(f"{len(ran)} of {len(scenario.episodes)} episodes were run")
    for at, episode in enumerate(ran):
        wanted, is_cut = len(scenario.payload_span(at)), bool(scenario.episodes[at][2])
        if episode.accepted < wanted and not is_cut:
            found.append(f"only {episode.accepted} of {wanted} payloads were accepted{_of(at, ran)}")
        scoreboard.compare(scenario, episode, at)
        broken += [f"{line}{_of(at, ran)}" for line in episode.broken_promises]
        found += _miscounted(context.port, scenario, episode, at, ran)
        if scenario.cycles and episode.cycles != scenario.cycles:
            found.append(f"{episode.accepted} products took {episode.cycles} cycles, must be {scenario.cycles}")
    for kind, answers in (("mismatches", scoreboard.mismatches), ("unanswered", scoreboard.unanswered)):
        if answers:
            found.append(f"{len(answers)} of {total} answers: {kind}")
    lines = [explain(context, scenario, wrong.index, wrong.actual) for wrong in scoreboard.mismatches[:_SHOWN]]
    lines += [explain(context, scenario, index, "nothing") for index in scoreboard.unanswered[:_SHOWN]]
    for answer in scoreboard.unexpected[:_SHOWN]:
        fields = "unknown bits" if answer is None else context.port.answer.unpack(answer)
        lines.append(f"answer that nobody expects: {fields}")
    lines += broken[:_SHOWN]
    effort = "" if context.effort == 1 else f" --effort {context.effort}"
    repeat = f"repeat: python -m sim --seed {context.seed} --units {context.unit} --scenarios {scenario.name}{effort}"
    return [*found, *lines, repeat] if found or lines else []


def _miscounted(port: Port, scenario: Scenario, episode: Ran, at: int, ran: Sequence[Ran]) -> list[str]:
    """Return the counters that differ from golden's counts of the driven payloads.

    Machine code has no bus: counters on a bus are read only in a simulator.
    """
    wanted = scenario.counts_of(at)
    if wanted is None:
        return []
    if episode.counts is None:
        return [f"the counters were not read{_of(at, ran)}"] if port.counters == "ports" else []
    counted = zip(COUNTERS, episode.counts, wanted, strict=True)
    return [f"{name} counts {count}, must be {must}{_of(at, ran)}" for name, count, must in counted if count != must]


def _of(at: int, ran: Sequence[Ran]) -> str:
    return f" (episode {at} of {len(ran)})" if len(ran) > 1 else ""
