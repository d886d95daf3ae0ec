"""One cocotb test: inputs, timing and expected answers. Generated before the simulation, read inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.nearest import did_you_mean
from sim.fields import Words, from_limbs, to_limbs

__all__ = ["NAMES", "Scenario", "matching"]

_SINGLE = """
all_blocks all_codes all_tiles_end boundary_codes chunk_edges chunks_of_one codes_in_all_modes continuations
counted_events distances full_queue full_queue_over_resets hazards initial_back_to_back initial_random
initial_rotation kept_over_resets lanes_apart last_place long_chunks mixed_back_to_back mixed_random mixed_rotation
mixed_sampled neighbours neighbours_of_promotions piled_promotions port_changes power_up promotions refusals resets
resets_in_every_cycle resets_sampled resets_while_counting sampled_blocks sampled_codes steps steps_sampled
watched_over_resets
"""
#: The names of all scenarios of all units, to reject a misspelt one before any unit is generated.
NAMES = (
    *_SINGLE.split(),
    *(f"stream_idle_{idle}_backpressure_{back}" for idle, back in product(("none", "random", "bursts"), repeat=2)),
    *(f"throughput_level_{level}_chunk_{chunk}" for level, chunk in product((0, 1, 2), (0, 1, 3, 5, 32))),
    *(f"throughput_of_answers{level}" for level in ("", "_level_1", "_level_2")),
)
_ALWAYS = np.ones(1, np.bool_)


@dataclass
class Scenario:
    """Stimulus and expectations of one test.

    Parameters
    ----------
    name : str
    payloads : array of words
        The inputs, in order.
    answers : array of words
        The expected answers. Answers of one queue (`Port.queue_of`) must come in this order.
    case : array of int
        For every answer, the row of `details` that explains it.
    offers, takes : arrays of bool
        Whether the driver offers, and the monitor takes, in a cycle; repeated until the test ends.
    on_sight : bool
        The monitor's ``ready`` waits for ``valid``, which must not wait in turn.
    chunks : array of int, optional
        Chunk length for every payload.
    gaps : array of int, optional
        Chunk length on the port while nothing is offered after a payload; by default the payload's.
    pauses : array of int, optional
        Minimum number of cycles without an offer before each payload.
    episodes : array of int of shape (n, 3)
        Each episode begins with a reset: its first payload, its first answer, and the cycle in which a reset cuts it
        off, 0 if it runs to its end.
    ends : array of int, optional
        For every answer, the payload that completes it.
    counts : array of int of shape (payloads, counters), optional
        Expected increments of the counters `sim.counts.COUNTERS` for every payload; an event of several payloads is
        counted for any one of them.
    clears : array of bool, optional
        Whether the counters are cleared in a cycle; repeated until the test ends.
    is_bulk : bool
        Too long for a simulator: it runs as machine code only.
    cycles : int
        Cycles from the first accepted payload to the last one, both counted; 0 if they do not matter.
    details : dict of arrays
        Details of the cases for failure lines.
    coverage : dict of str to int
        Number of these cases in each bin.
    """

    name: str
    payloads: Words
    answers: Words
    case: NDArray[Any]
    offers: NDArray[np.bool_] = field(default_factory=lambda: _ALWAYS)
    takes: NDArray[np.bool_] = field(default_factory=lambda: _ALWAYS)
    on_sight: bool = False
    chunks: NDArray[Any] | None = None
    gaps: NDArray[Any] | None = None
    pauses: NDArray[Any] | None = None
    episodes: NDArray[Any] = field(default_factory=lambda: np.zeros((1, 3), np.int64))
    ends: NDArray[Any] | None = None
    counts: NDArray[Any] | None = None
    clears: NDArray[np.bool_] | None = None
    is_bulk: bool = False
    cycles: int = 0
    details: dict[str, NDArray[Any]] = field(default_factory=dict)
    coverage: dict[str, int] = field(default_factory=dict)

    def payload_span(self, episode: int) -> range:
        """Return the payloads driven in an episode."""
        return self._span(episode, 0, len(self.payloads))

    def answer_span(self, episode: int) -> range:
        """Return the answers allowed in an episode; they are required unless it is cut off."""
        return self._span(episode, 1, len(self.answers))

    @property
    def due(self) -> int:
        """Number of answers that must come, from all episodes not cut off by a reset."""
        return sum(len(self.answer_span(at)) for at, cut in enumerate(self.episodes[:, 2].tolist()) if not cut)

    def counts_of(self, episode: int) -> list[int] | None:
        """Return the expected counts of an episode; None if they are unknown, or the episode is cut off."""
        if self.counts is None or self.episodes[episode][2]:
            return None
        span = self.payload_span(episode)
        counts: list[int] = self.counts[span.start : span.stop].sum(0).tolist()
        return counts

    def _span(self, episode: int, column: int, end: int) -> range:
        starts = [*self.episodes[:, column].tolist(), end]
        return range(starts[episode], starts[episode + 1])

    def save(self, folder: Path) -> None:
        """Write everything but the coverage into the folder."""
        arrays: dict[str, Any] = {
            "payloads": to_limbs(self.payloads),
            "answers": to_limbs(self.answers),
            "case": self.case,
            "offers": self.offers,
            "takes": self.takes,
            "episodes": self.episodes,
            "cycles": np.asarray(self.cycles),
            "on_sight": np.asarray(self.on_sight),
        }
        optional = {key: getattr(self, key) for key in ("chunks", "gaps", "pauses", "ends", "counts", "clears")}
        arrays |= {key: values for key, values in optional.items() if values is not None}
        details: dict[str, Any] = {f"detail_{key}": value for key, value in self.details.items()}
        np.savez(folder / f"{self.name}.npz", **arrays, **details)

    @classmethod
    def load(cls, folder: Path, name: str) -> Scenario:
        """Read what `save` wrote."""
        with np.load(folder / f"{name}.npz") as file:
            arrays = {key: file[key] for key in file.files}
        arrays |= {key: from_limbs(arrays[key]) for key in ("payloads", "answers")}
        details = {key.removeprefix("detail_"): arrays.pop(key) for key in list(arrays) if key.startswith("detail_")}
        arrays |= {"cycles": int(arrays["cycles"]), "on_sight": bool(arrays["on_sight"])}
        return cls(name=name, details=details, **arrays)


def matching(names: str, known: Sequence[str]) -> list[str]:
    """Return the known names in a comma-separated list, with ``*`` as a wildcard; all for an empty list.

    Raises
    ------
    ValueError
        If there are none; the message has the nearest name.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    found = [one for one in known if not wanted or any(fnmatchcase(one, name) for name in wanted)]
    if not found:
        meant = did_you_mean(names, known)
        raise ValueError(f"scenarios: got {names!r}, must be some of {', '.join(known)} (* stands for anything){meant}")
    return found
