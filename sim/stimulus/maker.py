"""Conversion of chains of reductions into scenarios of a multiply-accumulate unit: the common part."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from golden import FloatFormat
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.mac_coverage import CHUNKS
from sim.stimulus.operands import drawn_ahead, random_codes, usual_codes
from sim.stimulus.order import Beats, Order
from sim.stimulus.reductions import Chain, Segment, predict
from sim.stimulus.schedule import cycles_of_rotation, interleave, to_scenario

__all__ = ["Maker", "generator_for"]


def generator_for(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator for a seed and names: a unit, or a unit and a scenario."""
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])


class Maker:
    """Makes scenarios of one unit; each has its own random numbers, so that it can be repeated alone."""

    #: Levels whose totals take two registers.
    paired: tuple[int, ...] = (0, 1)
    #: The format to which operands are widened, and the bits of a random number, in units that have them.
    inner: FloatFormat | None = None
    random_bits = 0

    def __init__(self, mac: Any, port: Port, seed: int, unit: str, effort: float) -> None:
        self.mac, self.port, self.seed, self.unit, self.effort = mac, port, seed, unit, effort
        self.operands: tuple[FloatFormat, ...] = mac.operands
        self.subnormals: str = mac.subnormals
        self.kinds = list(itertools.product(range(len(self.operands)), mac.levels))
        self.chunks = tuple(chunk for chunk in CHUNKS if chunk < 1 << mac.chunk_bits)
        self.default_chunk = self.rotation_chunk = max(self.chunks)
        #: Exponent of the largest power of two among the tested chunk lengths; variants of a unit are tested less.
        self.long_bits = 16 if effort >= 1 else 8
        self._begin(generator_for(seed, unit))

    def format_names(self) -> list[str]:
        """Return the names of the operand formats."""
        return [fmt.name for fmt in self.operands]

    def elements(self, level: int) -> int:
        """Return the number of parallel reductions of a level in one register."""
        return 1

    def make(self, name: str, chains_of: Callable[[], list[Chain]], policy: str = "rotation") -> Scenario:
        """Return the scenario of the chains from `chains_of`, chunk length by chunk length."""
        self.start(name)
        chains = chains_of()
        self.complete(name, chains)
        beats = Order()
        # The chunk length may change only when no reduction is under way.
        for chunk in sorted({chain[0].chunk for chain in chains}):
            alike = [chain for chain in chains if chain[0].chunk == chunk]
            beats += interleave(alike, self.mac.registers, self.rng, policy, self.paired)
        scenario = self.to_scenario(name, beats)
        scenario.coverage = dict(self.bins)
        return scenario

    def start(self, name: str) -> None:
        """Begin a scenario, with separate random numbers and empty coverage."""
        self._begin(generator_for(self.seed, self.unit, name))

    def _begin(self, rng: np.random.Generator) -> None:
        self.rng, self.bins = rng, Counter[str]()
        self._codes = {
            (draw, fmt): drawn_ahead(partial(draw, fmt, rng=rng))
            for draw in (random_codes, usual_codes)
            for fmt in self.operands
        }

    def complete(self, name: str, chains: list[Chain]) -> None:
        """Fill in the expected answers."""
        self.predict(chains)

    def predict(self, chains: list[Chain]) -> None:
        """Fill in golden's results."""
        predict(chains, self.operands, self.subnormals)

    def parts(self, segment: Segment) -> Iterable[Segment]:
        """Return the reductions of a segment: one for each lane."""
        return (segment,)

    def brought(self, segment: Segment) -> None:
        """Draw the rounding fields of a segment's products, if the unit has any."""

    def brought_with(self, segment: Segment, name: str, k: int) -> int:
        """Return a product's rounding field by name."""
        number: int = getattr(segment, name)[k]
        return number

    def in_each_mode(self, segment: Segment) -> list[Segment]:
        """Return a copy of a segment for each way to round its products."""
        return [segment]

    def heads(self, kind: str) -> list[str]:
        """Return the prefixes of the counter bins of one kind of reduction: one for each mode."""
        return [kind]

    def required_besides_counts(self) -> set[str]:
        """Return the bins that a unit with counters must meet beside the bins of its counters."""
        return set()

    def further_columns(self, beats: Beats) -> dict[str, Any]:
        """Return fields of the products that only some units have."""
        return {}

    def to_scenario(self, name: str, beats: Beats) -> Scenario:
        """Return the scenario that drives these products in this order."""
        return to_scenario(name, beats, self.operands, self.port, self.further_columns(beats))

    def cycles(self, level: int, ends_chunk: list[bool]) -> int:
        """Return the cycles that products of a level take in rotation."""
        return cycles_of_rotation(self.mac, ends_chunk)

    def segment(self, index: int, level: int, length: int, **given: Any) -> Segment:
        """Return a reduction of random products."""
        given.setdefault("chunk", self.default_chunk)
        return Segment(index, level, *self.factors(index, length), **given)

    def factors(self, index: int, length: int) -> tuple[list[int], list[int]]:
        """Return the factors of `length` random products; in one call of four they are of any kind."""
        drawn = random_codes if self.rng.random() < 0.25 else usual_codes
        codes = self._codes[drawn, self.operands[index]]
        return list(itertools.islice(codes, length)), list(itertools.islice(codes, length))

    def _random_segment(self, longest: int, **given: Any) -> Segment:
        index, level = self.kinds[int(self.rng.integers(len(self.kinds)))]
        return self.segment(index, level, int(self.rng.integers(0, longest + 1)), **given)

    def _afresh(self, index: int, level: int, chunk: int) -> Chain:
        lengths = self.rng.integers(1, 8, 2).tolist()
        return [self.segment(index, level, length, chunk=chunk, first=not at) for at, length in enumerate(lengths)]

    def mixed(self, count: int) -> list[Chain]:
        """Return `count` reductions of any kind, and some that continue after an answer, all of one chunk length."""
        chunk = int(self.rng.choice(list(self.chunks)))
        chains: list[Chain] = [[self._random_segment(9, chunk=chunk)] for _ in range(count)]
        for _ in range(count // 5 + 1):
            chains.append(self._afresh(*self.kinds[int(self.rng.integers(len(self.kinds)))], chunk))
        return chains

    def _refused_level(self) -> int:
        return int(self.rng.choice([level for level in range(4) if level not in self.mac.levels]))

    def _places(self, level: int) -> int:
        """Return the number of totals of a level that fit the registers."""
        return self.mac.registers // (2 if level in self.paired else 1)
