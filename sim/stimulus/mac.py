"""The scenarios of a multiply-accumulate unit."""

from __future__ import annotations

import itertools

import numpy as np

from sim.scenario import Scenario
from sim.stimulus.control import distances, full_queue_over_resets, port_changes, required_control, resets
from sim.stimulus.directed import directed_segments, required_directed
from sim.stimulus.flushed import FLUSH, count_flushed, flushed_steps, required_flushed
from sim.stimulus.kept import kept_over_resets, watched_over_resets
from sim.stimulus.long_chunks import long_chains
from sim.stimulus.mac_coverage import accumulator_of, chunk_lengths, count_steps, required_edges, required_steps
from sim.stimulus.maker import Maker, generator_for
from sim.stimulus.neighbours import neighbours
from sim.stimulus.operands import one_of_each_class, specials
from sim.stimulus.patterns import PATTERNS, pattern, takes_on_sight
from sim.stimulus.reductions import REFUSED_ALIGNMENT, UNSUPPORTED, Chain, Segment
from sim.stimulus.schedule import DRAINED, POLICIES
from sim.stimulus.step_operands import Steps, directed_steps, one_ulp_left, step_operands

__all__ = ["MacMaker"]


class MacMaker(Maker):
    """Makes the scenarios of one unit."""

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        return [
            self.make("power_up", self.power_up),
            *self.all_steps(),
            self.make("chunk_edges", self.chunk_edges),
            self.make("continuations", self.continuations),
            self.make("hazards", self.hazards, policy="back_to_back"),
            self.make("refusals", self.refusals, policy="random"),
            self.full_queue(),
            *self.streams(),
            *self.throughput(),
            *self.control(),
        ]

    def control(self) -> list[Scenario]:
        """Return scenarios of resets, of the port `chunk`, of distances, and of neighbouring products."""
        changes = [port_changes(self)] if self.mac.parameters.has_chunks else []
        long = [self.long_chunks()] if self.mac.parameters.has_chunks else []
        over_resets = [*resets(self), full_queue_over_resets(self), kept_over_resets(self), watched_over_resets(self)]
        return [*over_resets, distances(self), *neighbours(self), *changes, *long]

    def long_chunks(self) -> Scenario:
        """Reduce with chunks of every length around a power of two, and without a limit."""
        scenario = self.make("long_chunks", lambda: list(long_chains(self)))
        scenario.is_bulk = True
        return scenario

    def all_steps(self) -> list[Scenario]:
        """Return all steps, for machine code, and a sample of them for the simulator."""
        made: list[Chain] = []

        def every() -> list[Chain]:
            made.extend(self.steps())
            return list(made)

        whole = self.make("steps", every)
        whole.is_bulk = True
        part = [made[at] for at in self.rng.permutation(len(made))[: 40 + int(400 * self.effort)]]
        return [whole, self.make("steps_sampled", lambda: part)]

    def required(self) -> set[str]:
        """Return the bins that must not be empty."""
        required: set[str] = set()
        for index, level in self.kinds:
            operand = self.operands[index]
            required |= required_steps(operand, level, self.subnormals)
            required |= required_edges(operand, level, self.chunks)
            if self.subnormals == FLUSH:
                required |= required_flushed(operand, accumulator_of(level, operand), level)
            else:
                required |= required_directed(operand, level)
        return required | required_control(self)

    def power_up(self) -> list[Chain]:
        """Continue reductions that were never started: registers hold +0."""
        index, level = self.kinds[0]
        pairs = self.mac.registers // 2
        return [[self.segment(index, level, length, first=False)] for length in (1, 3, 5, 9)[:pairs]]

    def steps(self) -> list[Chain]:
        """Reduce one product of every pair of specials, and two products of every interesting kind."""
        chains: list[Chain] = []
        count = max(12, int(self.effort * 240 / len(self.operands)))
        for index, level in self.kinds:
            operand = self.operands[index]
            # One of each class is enough where simulation is slow.
            values = specials(operand) if self.effort > 0.15 else one_of_each_class(operand)
            a, b = (axis.ravel() for axis in np.meshgrid(values, values, indexing="ij"))
            zero, one = np.zeros(len(a), np.uint64), np.full(len(a), operand.one, np.uint64)
            self.bins += count_steps(operand, level, Steps(zero, one, a, b), self.subnormals)
            chains += [[Segment(index, level, [x], [y], chunk=0)] for x, y in zip(a.tolist(), b.tolist(), strict=True)]
            accumulator = accumulator_of(level, operand)
            groups = step_operands(operand, accumulator, self.rng, count)
            every = [*groups.values(), directed_steps(operand, accumulator)]
            if self.subnormals == FLUSH:
                every.append(flushed_steps(operand, accumulator))
                self.bins += count_flushed(operand, accumulator, level, every[-1])
                chains += [[segment] for segment in self._flushed_totals(index)] if level == 2 else []
            for steps in every:
                self.bins += count_steps(operand, level, steps, self.subnormals)
                columns = (part.astype(np.int64).tolist() for part in (steps.c, steps.d, steps.a, steps.b))
                chains += [
                    [Segment(index, level, [c, x], [d, y], chunk=0)] for c, d, x, y in zip(*columns, strict=True)
                ]
            chains += [[self._in_turn(index, level, special)] for special in self._specials_in_turn(index, count // 4)]
            # A separate generator leaves the random numbers of the others unchanged.
            for name, segment in directed_segments(index, operand, level, generator_for(self.seed, "directed")):
                if segment.chunk < 1 << self.mac.chunk_bits:
                    # Their bins are about subnormals that are kept.
                    self.bins[name] += self.subnormals != FLUSH
                    chains.append([segment])
            if level == 0:
                chains += [
                    [Segment(index, 0, *one_ulp_left(operand, self.rng), chunk=0)] for _ in range(max(8, count // 4))
                ]
        self.rng.shuffle(chains)
        return chains

    def _flushed_totals(self, index: int) -> list[Segment]:
        """Return sums of 3/4 of the smallest normal number, which are flushed with a fraction, and one number more."""
        operand = self.operands[index]
        normal, minus = operand.min_normal, operand.sign_mask
        codes = [normal + (3 << operand.fraction_bits - 2), normal | minus, normal]
        return [
            Segment(index, 2, [code ^ sign for code in codes[:count]], [operand.one] * count, chunk=chunk)
            for sign in (0, minus)
            for count in (2, 3)
            for chunk in (0, 1)
        ]

    def _specials_in_turn(self, index: int, count: int) -> list[list[int]]:
        """Return infinities and NaNs, or any specials, in turn, so that the accumulator takes several of them."""
        operand = self.operands[index]
        inf, minus_inf, nan = operand.inf, operand.inf | operand.sign_mask, operand.nan
        usual = np.array([inf, minus_inf, nan, operand.one])
        values = [usual if self.rng.random() < 0.7 else specials(operand) for _ in range(count)]
        return [[inf, nan, minus_inf], [minus_inf, nan, inf], *(self.rng.choice(some, 4).tolist() for some in values)]

    def _in_turn(self, index: int, level: int, codes: list[int]) -> Segment:
        return Segment(index, level, codes, [self.operands[index].one] * len(codes), chunk=0)

    def chunk_edges(self) -> list[Chain]:
        """Reduce numbers of products around the edges of chunks."""
        chains: list[Chain] = []
        times = max(1, round(2 * self.effort / len(self.operands) + 0.3))
        for (index, level), chunk in itertools.product(self.kinds, self.chunks):
            for name, length in chunk_lengths(chunk).items():
                self.bins[f"{self.operands[index]}/level_{level}/chunk_{chunk}/{name}"] += times
                chains += [[self.segment(index, level, length, chunk=chunk)] for _ in range(times)]
        self.rng.shuffle(chains)
        return chains

    def continuations(self) -> list[Chain]:
        """Continue after an answer, also with an empty reduction; abandon a reduction and start again."""
        chains: list[Chain] = []
        for (index, level), chunk in itertools.product(self.kinds, (min(3, self.default_chunk), self.default_chunk, 0)):
            for _ in range(max(1, int(4 * self.effort))):
                lengths = self.rng.choice([0, 1, 2, 3, 4, 7], 4).tolist()
                chain = [
                    self.segment(index, level, length, chunk=chunk, first=not at) for at, length in enumerate(lengths)
                ]
                chains.append(chain)
                given_up = self.segment(index, level, int(self.rng.integers(1, 6)), chunk=chunk, last=False)
                chains.append([given_up, *self._afresh(index, level, chunk)])
        return chains

    def hazards(self) -> list[Chain]:
        """Follow each level by each other level on the same pair of registers, in both registers of the pair."""
        chains: list[Chain] = []
        for _ in range(max(3, int(12 * self.effort))):
            chain: Chain = []
            for (index, level), (other, following) in itertools.product(self.kinds, self.kinds):
                if self.rng.random() > 3 / len(self.kinds):
                    continue
                for at, at_level in ((index, level), (other, following)):
                    odd = at_level not in self.paired and bool(self.rng.integers(2))
                    chain.append(self.segment(at, at_level, int(self.rng.integers(1, 5)), odd=odd))
            if chain:
                chains.append(chain)
        return [*chains, *self._level_0_behind_others()]

    def _level_0_behind_others(self) -> list[Chain]:
        """Begin a reduction of level 0 a cycle after one in the odd register of its pair, which had no need to wait.

        If the first product does not wait for the other's promotion, that writes between two products behind it.
        """
        ahead = [kind for kind in self.kinds if kind[1] and kind[1] not in self.paired]
        behind = [kind for kind in self.kinds if kind[1] == 0]
        chains: list[Chain] = []
        for _ in range(int(60 * self.effort) + 20 if ahead and behind else 0):
            odd = self.segment(*ahead[self.rng.integers(len(ahead))], int(self.rng.integers(1, 3)), odd=True)
            odd.pauses = [DRAINED, *[2 * self.mac.accumulate_latency] * (len(odd.a) - 1)]
            pair = self.segment(*behind[self.rng.integers(len(behind))], 4)
            pair.pauses = [0, *self.rng.integers(0, 2 * self.mac.accumulate_latency, 3).tolist()]
            chains.append([odd, pair])
        return chains

    def refusals(self) -> list[Chain]:
        """Insert products that must be refused: they change nothing, regardless of their register."""
        chains: list[Chain] = []
        fields = self.port.request.widths
        formats = range(len(self.operands), min(1 << fields["format"], 16))
        for _ in range(int(60 * self.effort) + 20):
            chains.append([self._random_segment(6)])
            chains.append(self._afresh(*self.kinds[int(self.rng.integers(len(self.kinds)))], self.default_chunk))
            wide = [kind for kind in self.kinds if kind[1] in self.paired]
            if wide:
                index, level = wide[int(self.rng.integers(len(wide)))]
                chains.append([self.segment(index, level, 1, error=REFUSED_ALIGNMENT)])
            if len(formats):
                level = int(self.rng.integers(4))
                refused = self.segment(0, level, 1, error=UNSUPPORTED)
                refused.format = int(self.rng.choice(list(formats)))
                chains.append([refused])
            refused = self.segment(0, self._refused_level(), 1, error=UNSUPPORTED)
            chains.append([refused])
            if fields["register"] > self.mac.parameters.register_width:
                chains.append([self._register_beyond(fields["register"])])
        for chain in chains:
            for segment in chain:
                if segment.error:
                    segment.first, segment.last = bool(self.rng.integers(2)), bool(self.rng.integers(2))
        return chains

    def _register_beyond(self, width: int) -> Segment:
        """Return a product that is valid except for its register, whose number has a bit beyond the unit's range."""
        index, level = self.kinds[int(self.rng.integers(len(self.kinds)))]
        refused = self.segment(index, level, 1, error=UNSUPPORTED)
        bit = int(self.rng.integers(self.mac.parameters.register_width, width))
        refused.beyond = 1 << bit
        self.bins[f"register_beyond/bit_{bit}"] += 1
        return refused

    def streams(self) -> list[Scenario]:
        """Mix formats and levels on all registers, for every pattern of pauses at both streams."""
        scenarios = []
        for at, (idle, backpressure) in enumerate(itertools.product(PATTERNS, PATTERNS)):
            name = f"stream_idle_{idle}_backpressure_{backpressure}"
            policy = POLICIES[(at + at // 3) % len(POLICIES)]
            scenario = self.make(name, lambda: self.mixed(int(30 * self.effort) + 10), policy)
            scenario.offers, scenario.takes = pattern(idle, self.rng), pattern(backpressure, self.rng)
            scenario.on_sight = takes_on_sight(backpressure)
            scenarios.append(scenario)
        return scenarios

    def full_queue(self) -> Scenario:
        """Answer every product, also refusals, among others without answers, while no answer is taken for long."""
        scenario = self.make("full_queue", self._answered, policy="rotation")
        lengths = self.rng.integers(40, 120, 64)
        scenario.takes = np.repeat(np.arange(64) % 2 == 0, lengths)
        return scenario

    def _answered(self) -> list[Chain]:
        chains: list[Chain] = []
        # Level after level: a product of level 0 waits for all other levels, and the queue would be empty meanwhile.
        for index, level in sorted(self.kinds, key=lambda kind: kind[1]):
            for _ in range((int(200 * self.effort) + 160) // len(self.kinds)):
                length = int(self.rng.choice([1, 1, 1, 3]))
                chains.append([self.segment(index, level, length, chunk=self.default_chunk)])
                if self.rng.random() < 0.3:
                    chains.append([self.segment(0, self._refused_level(), 1, error=UNSUPPORTED)])
        return chains

    def throughput(self) -> list[Scenario]:
        """Rotate over enough registers for a product in every cycle, and count the cycles."""
        scenarios = []
        count, length = self.mac.accumulate_latency, 3 * self.rotation_chunk
        for level in self.mac.levels:
            if count > self._places(level):
                continue
            for chunk in (0, self.rotation_chunk):

                def chains(level: int = level, chunk: int = chunk) -> list[Chain]:
                    return [[self.segment(0, level, length, chunk=chunk)] for _ in range(count)]

                scenario = self.make(f"throughput_level_{level}_chunk_{chunk}", chains)
                ends = [level > 0 and (k + 1 == length or (chunk > 0 and (k + 1) % chunk == 0)) for k in range(length)]
                scenario.cycles = self.cycles(level, [end for end in ends for _ in range(count)])
                scenarios.append(scenario)
        # An answer in every cycle: the queue must have enough places.
        if 0 in self.mac.levels and count <= self._places(0):

            def single() -> list[Chain]:
                return [[self.segment(0, 0, 1)] for _ in range(100)]

            scenario = self.make("throughput_of_answers", single)
            scenario.cycles = 100
            scenarios.append(scenario)
        return scenarios
