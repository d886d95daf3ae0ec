"""Resets between a result and its continuation: the registers keep their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.scenario import Scenario
from sim.stimulus.maker import Maker
from sim.stimulus.order import Beat
from sim.stimulus.reductions import Chain, Segment
from sim.stimulus.schedule import on_registers

__all__ = ["KEPT", "kept_over_resets", "watched_over_resets"]

#: The bin of reductions that continue after a reset.
KEPT = "reset/registers_kept"
#: The longest of the random reductions.
_LONGEST = 6
#: Parts of a reduction, between which there are resets.
_PARTS = 3


def kept_over_resets(maker: Maker) -> Scenario:
    """Continue every kind of reduction after resets with nothing in flight.

    Each register gets a result. Once all are taken, and the unit is idle, a reset comes. Then the reductions continue
    from the values of the registers. This happens twice for each of them.
    """
    name = "kept_over_resets"
    maker.start(name)
    # All kinds twice, the second time in reverse, for other registers.
    kinds = [*maker.kinds, *reversed(maker.kinds)]
    chains = [_chain(maker, index, level) for index, level in kinds]
    maker.complete(name, chains)
    scenario = _with_resets(maker, name, on_registers(chains, maker.mac.registers, maker.paired))
    scenario.coverage = {KEPT: 2 * len(chains)}
    return scenario


def watched_over_resets(maker: Maker) -> Scenario:
    """Continue reductions that reveal an operation inserted into the pipeline by a reset.

    All fields of such an operation but one are 0, so it goes to register 0. It has the operands of the last product,
    which is 1. Two reductions alternate there, and it would change them from any rank. One is an infinity, which would
    lose its class. The other is a sum that would grow by 1, or lose its flags, all of which its first product raised.

    Each reset is followed by a product at once, or, before the last part, when the operation has had time to write.
    """
    name = "watched_over_resets"
    maker.start(name)
    index, level = max(maker.kinds, key=lambda kind: kind[1])
    fmt = maker.operands[index]
    one, tiny, special = fmt.one, fmt.min_subnormal, fmt.inf if fmt.has_inf else fmt.nan
    chains: list[Chain] = []
    for a, b in ((special, one), (tiny, tiny)):
        products = ([a, one], [b, one]), ([one], [one]), ([one], [one])
        chains.append(
            [
                Segment(index, level, *each, first=not at, chunk=maker.default_chunk, register=0)
                for at, each in enumerate(products)
            ]
        )
        chains[-1][-1].pauses = [maker.mac.latency + 2]
    maker.complete(name, chains)
    scenario = _with_resets(maker, name, [[chain] for chain in chains])
    scenario.is_bulk = True
    return scenario


def _chain(maker: Maker, index: int, level: int) -> Chain:
    lengths = maker.rng.integers(1, _LONGEST + 1, _PARTS).tolist()
    return [maker.segment(index, level, length, first=not at) for at, length in enumerate(lengths)]


def _with_resets(maker: Maker, name: str, groups: Sequence[Sequence[Chain]]) -> Scenario:
    """Drive groups of chains in parallel, part by part, with a reset before each part while the unit is idle."""
    beats: list[Beat] = []
    starts: list[int] = []
    for group in groups:
        for part in range(_PARTS):
            starts.append(len(beats))
            beats += [(chain[part], k) for chain in group for k in range(max(1, len(chain[part].a)))]
    scenario = maker.to_scenario(name, beats)
    assert scenario.ends is not None
    scenario.episodes = np.stack([starts, np.searchsorted(scenario.ends, starts), np.zeros_like(starts)], 1)
    return scenario
