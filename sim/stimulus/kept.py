"""Resets between a result and its continuation: the registers keep what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.scenario import Scenario
from sim.stimulus.reductions import Chain
from sim.stimulus.schedule import Beat

if TYPE_CHECKING:
    from sim.stimulus.mac import Maker

__all__ = ["KEPT", "kept_over_resets"]

#: The bin of reductions that go on behind a reset.
KEPT = "reset/registers_kept"
_LONGEST = 6


def kept_over_resets(maker: Maker) -> Scenario:
    """Continue every kind of reduction behind resets that met the unit when nothing was in flight.

    Each register gets a result. Once all are taken, and the unit is still, a reset comes. Then the reductions continue
    from what the registers hold. This happens twice for each of them.
    """
    name = "kept_over_resets"
    maker.start(name)
    # Twice all kinds, in another order: so they meet other registers.
    kinds = [*maker.kinds, *reversed(maker.kinds)]
    chains = [_chain(maker, index, level) for index, level in kinds]
    maker.complete(name, chains)
    beats: list[Beat] = []
    starts: list[int] = []
    for group in _on_registers(chains, maker.mac.registers, maker.paired):
        for part in range(3):
            starts.append(len(beats))
            beats += [(chain[part], k) for chain in group for k in range(max(1, len(chain[part].a)))]
    scenario = maker.to_scenario(name, beats)
    assert scenario.ends is not None
    scenario.episodes = np.stack([starts, np.searchsorted(scenario.ends, starts), np.zeros_like(starts)], 1)
    scenario.coverage = {KEPT: 2 * len(chains)}
    return scenario


def _chain(maker: Maker, index: int, level: int) -> Chain:
    lengths = maker.rng.integers(1, _LONGEST + 1, 3).tolist()
    return [maker.segment(index, level, length, first=not at) for at, length in enumerate(lengths)]


def _on_registers(chains: list[Chain], registers: int, paired: tuple[int, ...]) -> list[list[Chain]]:
    """Give chains their registers, in groups that have room side by side."""
    groups: list[list[Chain]] = []
    free = 0
    for chain in chains:
        width = 2 if chain[0].level in paired else 1
        free += free % width
        if free + width > registers or not groups:
            groups.append([])
            free = 0
        for segment in chain:
            segment.register = free
        groups[-1].append(chain)
        free += width
    return groups
