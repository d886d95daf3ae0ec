"""The maker of a unit's scenarios, put together from a part for each feature: counters, rounding modes, lanes."""

from __future__ import annotations

from typing import Any

from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.counted import CountingMaker
from sim.stimulus.mac import MacMaker
from sim.stimulus.matrix import MatrixMaker
from sim.stimulus.rounded import RoundedMaker, takes_modes_or_widens
from sim.stimulus.vector import VectorMaker

__all__ = ["maker_of", "reduction_scenarios"]

#: All scenarios of a unit run as machine code. A simulator, which knows unknown bits, runs fewer. Of `mac`, which gets
#: the full stimulus in several formats, it runs every short scenario; of other units these: every kind of reset, hazard
#: and stall.
_IN_SIMULATOR = {
    "power_up", "steps_sampled", "hazards", "resets_sampled", "mixed_sampled", "counted_events", "last_place",
    "all_tiles_end", "initial_rotation", "stream_idle_bursts_backpressure_bursts", "throughput_level_1_chunk_5",
}  # fmt: skip


def maker_of(core: Any, port: Port, seed: int, unit: str, effort: float) -> MacMaker:
    """Return the maker of the scenarios of a multiply-accumulate unit, of one lane, several, or an array.

    Parameters
    ----------
    core : MultiplyAccumulate, VectorMac or MatrixMac
    port : Port
        Of the unit, which may have other ports around the core.
    seed : int
    unit : str
        Name of the unit; with the seed, it gives the random numbers.
    effort : float
    """
    parts: list[type[MacMaker]] = [CountingMaker] if port.counters else []
    parts += [RoundedMaker] if takes_modes_or_widens(core) else []
    if hasattr(core, "columns"):
        parts += [MatrixMaker]
    else:
        parts += [VectorMaker if hasattr(core, "lanes") else MacMaker]
    combined: type[MacMaker] = type("CombinedMaker", tuple(parts), {})
    return combined(core, port, seed, unit, effort)


def reduction_scenarios(
    core: Any, port: Port, seed: int, unit: str, effort: float
) -> tuple[list[Scenario], set[str], list[str]]:
    """Return the scenarios, the coverage bins that must not be empty, and the names of the formats."""
    maker = maker_of(core, port, seed, unit, effort)
    made = maker.scenarios()
    # Machine code does not drive the bus of counters.
    if (effort < 1 or len(core.operands) == 1) and port.counters != "bus":
        for scenario in made:
            scenario.is_bulk |= scenario.name not in _IN_SIMULATOR
    return made, maker.required(), maker.format_names()
