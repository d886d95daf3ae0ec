"""Scenarios that do not depend on the products: resets, the port `chunk`, and the timing of products."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.scenario import Scenario
from sim.stimulus.distances import distance_chains, required_distances
from sim.stimulus.kept import KEPT
from sim.stimulus.long_chunks import required_long_chunks
from sim.stimulus.maker import Maker
from sim.stimulus.neighbours import required_neighbours
from sim.stimulus.order import Beat
from sim.stimulus.patterns import pattern
from sim.stimulus.reductions import Chain, Segment
from sim.stimulus.resets import EPISODES, cut_off, required_resets
from sim.stimulus.schedule import DRAINED, POLICIES, interleave

__all__ = ["distances", "full_queue_over_resets", "port_changes", "required_control", "resets"]


#: With fewer registers, none is left for reductions of level 0 beside the others.
_LEAST_REGISTERS = 4


def resets(maker: Maker) -> list[Scenario]:
    """Reset the unit repeatedly in the middle of mixed reductions, which then start again.

    Every other episode runs to its end, because one that is cut off would not show that the unit is idle after a reset.
    """
    many = _resets(maker, "resets", 12 * EPISODES)
    many.is_bulk = True
    return [many, _resets(maker, "resets_sampled", EPISODES // 4)]


def _resets(maker: Maker, name: str, episodes: int) -> Scenario:
    maker.start(name)
    drawn = [maker.mixed(12) for _ in range(episodes)]
    # Predicted together, which takes fewer calls of golden.
    maker.complete(name, every := [chain for chains in drawn for chain in chains])
    completed = iter(every)
    beats: list[Beat] = []
    starts: list[int] = []
    for at, chains in enumerate(drawn):
        starts.append(len(beats))
        episode = [next(completed) for _ in chains]
        beats += interleave(episode, maker.mac.registers, maker.rng, POLICIES[at % len(POLICIES)], maker.paired)
    scenario = maker.to_scenario(name, beats)
    scenario.offers, scenario.takes = pattern("random", maker.rng), pattern("bursts", maker.rng)
    cut_off(scenario, starts, maker.rng)
    scenario.episodes[1::2, 2] = 0
    return scenario


def full_queue_over_resets(maker: Maker) -> Scenario:
    """Reset the unit while answers leave and products enter; in the next episode its queue fills up.

    If a place was miscounted at the reset, the queue then has one place too few or too many.
    """
    name = "full_queue_over_resets"
    maker.start(name)
    places = int(maker.mac.parameters.results)
    kinds = [maker.kinds[at % len(maker.kinds)] for at in range(max(len(maker.kinds), 3)) for _ in range(2)]
    drawn = [[[maker.segment(*kind, 1)] for _ in range(2 * places)] for kind in kinds]
    maker.complete(name, every := [chain for chains in drawn for chain in chains])
    completed, beats, starts = iter(every), list[Beat](), list[int]()
    for chains in drawn:
        starts.append(len(beats))
        beats += interleave([next(completed) for _ in chains], maker.mac.registers, maker.rng, "rotation", maker.paired)
    scenario = cut_off(maker.to_scenario(name, beats), starts, maker.rng)
    # Longer than it takes to fill the queue, then as long as it takes to empty it.
    full = 4 * places + DRAINED
    scenario.takes = np.repeat([False, True], [full, 8 * places])
    scenario.episodes[:, 2] = full + maker.rng.integers(2, places, len(starts))
    scenario.episodes[1::2, 2] = 0
    scenario.is_bulk = True
    return scenario


def distances(maker: Maker) -> Scenario:
    """Drive products with the same registers at every distance in cycles."""

    def chains() -> list[Chain]:
        made = dict(distance_chains(maker))
        maker.bins.update(dict.fromkeys(made, 1))
        return list(made.values())

    scenario = maker.make("distances", chains, policy="back_to_back")
    scenario.is_bulk = True
    return scenario


def required_control(maker: Maker) -> set[str]:
    """Return the bins that the scenarios of this module, neighbours, long chunks and refusals must meet."""
    mac = maker.mac
    beyond = range(mac.parameters.register_width, maker.port.request.widths["register"])
    required = {f"register_beyond/bit_{bit}" for bit in beyond} | required_long_chunks(maker)
    required |= required_distances(maker) | required_resets(mac.latency, answers_wait_for_more=True) | {KEPT}
    required |= required_neighbours(maker)
    if mac.parameters.has_input_rank:
        required.add("reset/held_payload_with_answer")
    if mac.parameters.has_chunks:
        required.add("chunk_port/between_reductions")
        if 0 in mac.levels and mac.registers >= _LEAST_REGISTERS:
            required.add("chunk_port/during_a_reduction_of_level_0")
    return required


def port_changes(maker: Maker) -> Scenario:
    """Give every reduction a different chunk length, only for as long as it needs it.

    While no reduction of level 1 or 2 is under way, the port shows random lengths, also during reductions of level 0.
    """
    maker.start("port_changes")
    lengths = [chunk for chunk in (1, 2, 3, 5, 8, 0) if chunk < 1 << maker.mac.chunk_bits]
    chunked = [kind for kind in maker.kinds if kind[1]]
    chains: list[Chain] = []
    # If the unit holds two beats, few reductions show that the beat before the last sees another length.
    for _ in range(150 + int(100 * maker.effort)):
        index, level = chunked[int(maker.rng.integers(len(chunked)))]
        chunk = int(maker.rng.choice(lengths))
        chain = [maker.segment(index, level, int(maker.rng.integers(2, 10)), chunk=chunk)]
        # Only a product that never waits shows that the unit sees the length of a cycle before it arrives.
        chain[0].pauses = [int(maker.rng.choice([0, 0, 1, 2, 5, DRAINED])), *[0] * (len(chain[0].a) - 1)]
        chains.append(chain)
    # In the last pair of registers, which no other reduction takes: one reduction of level 0 after another.
    behind = [[one] for one in _chains_of_level_0(maker, len(chains))]
    maker.complete("port_changes", every := [*chains, *behind])
    chains, behind = every[: len(chains)], every[len(chains) :]
    ahead = iter(interleave(behind, 2, maker.rng, "back_to_back", maker.paired))
    beats: list[Beat] = []
    for chain in chains:
        beats += interleave(
            [chain], maker.mac.registers - (2 if behind else 0), maker.rng, "back_to_back", maker.paired
        )
        beats += [_moved(beat, maker.mac.registers - 2) for _, beat in zip(range(3), ahead, strict=False)]
    scenario = maker.to_scenario("port_changes", beats)
    scenario.chunks, scenario.gaps = _shown(maker, beats)
    changes = np.flatnonzero(np.diff(scenario.chunks))
    of_level_0 = np.array([segment.level == 0 for segment, _ in beats])
    scenario.coverage = {
        "chunk_port/between_reductions": int((~of_level_0[changes + 1]).sum()),
        "chunk_port/during_a_reduction_of_level_0": int(of_level_0[changes + 1].sum()),
    }
    return scenario


def _chains_of_level_0(maker: Maker, count: int) -> list[Segment]:
    kinds = [kind for kind in maker.kinds if kind[1] == 0]
    if not kinds or maker.mac.registers < _LEAST_REGISTERS:
        return []
    return [maker.segment(*kinds[int(maker.rng.integers(len(kinds)))], 7) for _ in range(count // 2)]


def _moved(beat: Beat, register: int) -> Beat:
    beat[0].register = register
    return beat


def _shown(maker: Maker, beats: list[Beat]) -> tuple[Any, Any]:
    """Return the chunk lengths of all products, and the lengths on the port after each."""
    anything = maker.rng.integers(0, 1 << min(maker.mac.chunk_bits, 16), (2, len(beats)))
    # Often 1, which ends a chunk in a unit that looks at the wrong time.
    anything = np.where(maker.rng.random(anything.shape) < 0.5, 1, anything)
    chunks, gaps = [], []
    for (segment, k), during, after in zip(beats, *anything.tolist(), strict=True):
        chunks.append(segment.chunk if segment.level else during)
        gaps.append(segment.chunk if segment.level and k < len(segment.a) - 1 else after)
    return np.array(chunks), np.array(gaps)
