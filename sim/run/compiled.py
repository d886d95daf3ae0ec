"""Running all scenarios of a unit as machine code; the long ones run only here."""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sim.bench.episode import Ran
from sim.bench.findings import Context, Explain, findings
from sim.cycles.model import Model
from sim.run.outcome import Outcome
from sim.scenario import Scenario

__all__ = ["Engine", "run_compiled"]


class Engine(enum.Enum):
    """The engine that runs the Verilog."""

    SIMULATOR = "simulator"
    COMPILED = "compiled"


def run_compiled(
    sources: Sequence[Path],
    scenarios: Sequence[Scenario],
    context: Context,
    explain: Explain,
    folder: Path,
    outcome: Outcome,
    *,
    stops_early: bool = False,
) -> None:
    """Translate the Verilog, run the scenarios, and add failures and coverage to the outcome.

    Parameters
    ----------
    sources : sequence of Path
        The design and the shell around it.
    scenarios : sequence of Scenario
    context : Context
    explain : function
        Makes failure lines.
    folder : Path
        Working folder of Yosys, which is created.
    outcome : Outcome
    stops_early : bool
        End with the first scenario that fails.
    """
    started = time.perf_counter()
    model = Model(sources, context.port, folder)
    for scenario in scenarios:
        ran = model.run(scenario)
        outcome.bins += _resets(scenario, ran)
        outcome.bins += +Counter({"counters/cleared_while_counting": sum(episode.met_clears for episode in ran)})
        if found := findings(context, scenario, ran, explain):
            outcome.blame(f"{scenario.name}, as machine code: " + "\n".join(found), broken=False)
            if stops_early:
                break
    outcome.register_bits = sum(register.width for register in model.registers)
    outcome.still = {name: sorted({*zeros, *ones}) for name, (zeros, ones) in model.never_seen().items()}
    outcome.seconds += time.perf_counter() - started


def _resets(scenario: Scenario, ran: Sequence[Ran]) -> Counter[str]:
    """Count the states of the unit at resets, as far as visible from outside."""
    bins: Counter[str] = Counter()
    for at, episode in enumerate(ran):
        if not scenario.episodes[at][2]:
            continue
        bins["reset/in_operation"] += episode.accepted > 0
        bins["reset/payload_refused"] += episode.is_blocked
        bins["reset/answer_waits"] += episode.is_answered
        if scenario.ends is not None:
            span, first = scenario.answer_span(at), scenario.payload_span(at).start
            ends = scenario.ends[span.start : span.stop]
            due = int((ends < first + episode.accepted).sum())
            under_way = due - len(episode.answers) - episode.is_answered
            bins["reset/answers_on_their_way"] += under_way > 0
            bins["reset/nothing_due"] += due == 0 and episode.accepted > 0
            bins["reset/held_payload_with_answer"] += episode.is_blocked and first + episode.accepted - 1 in ends
    return +bins
