"""Promotions to one row, at distances that depend on promotions to other rows."""

from __future__ import annotations

from sim.scenario import Scenario
from sim.stimulus.maker import Maker
from sim.stimulus.order import Beat
from sim.stimulus.reductions import Chain
from sim.stimulus.schedule import DRAINED

__all__ = ["piled_promotions", "required_piled_promotions"]


def _names(maker: Maker) -> dict[str, tuple[int, int]]:
    levels = [level for level in maker.mac.levels if level] if 1 in maker.mac.levels else []
    rows = range(maker.mac.registers // 2)
    return {f"piled_promotions/level_{level}/behind_{count}": (level, count) for level in levels for count in rows}


def required_piled_promotions(maker: Maker) -> set[str]:
    """Return the bins of `piled_promotions`."""
    return set(_names(maker))


def piled_promotions(maker: Maker) -> Scenario:
    """Let the first of three promotions to a row wait for as many others as rows allow, and the second for none.

    The products of the row are only as far apart as they must be. A promotion of level 1 takes two cycles, a product
    one: each of the other promotions delays the first one by a cycle, and so brings it nearer to the second.
    """
    name = "piled_promotions"
    maker.start(name)
    chains: list[Chain] = []
    for level, count in _names(maker).values():
        index = int(maker.rng.integers(len(maker.operands)))
        others = [maker.segment(index, 1, 1, chunk=1, register=2 * other + 2) for other in range(count)]
        group = [*others, maker.segment(index, level, 3, chunk=1, register=0)]
        group[0].pauses = [DRAINED, *[0] * (len(group[0].a) - 1)]
        chains += [[segment] for segment in group]
    maker.complete(name, chains)
    beats: list[Beat] = [(chain[0], k) for chain in chains for k in range(len(chain[0].a))]
    scenario = maker.to_scenario(name, beats)
    scenario.is_bulk = True
    scenario.coverage = dict.fromkeys(_names(maker), 1)
    return scenario
