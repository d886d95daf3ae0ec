"""Units and their simulators, made once for all tests of a module; and queues of beats in, results out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
from amaranth import Cat

from tools.simulator import CompiledSimulator


@cache
def unit_of(kind, **parameters):
    """Return a unit, the same one for the same parameters."""
    return kind(**parameters)


def simulate(unit, testbench, *others) -> None:
    """Run a testbench on a unit from power-up; `others` are signals within it that its testbenches need."""
    made = _made(unit)
    if not made:
        made.append(CompiledSimulator(unit, *others))
    made[0].run(testbench)


#: Enough for the depths of a unit in turn.
@lru_cache(16)
def _made(unit):
    """Return the unit's simulator in a list, which is empty before the first run."""
    return []


@dataclass
class Run:
    """A record of a run: the results in order, and the cycle of each accepted beat and each taken result."""

    results: list[Any] = field(default_factory=list)
    accepted_at: list[int] = field(default_factory=list)
    left_at: list[int] = field(default_factory=list)

    def of(self, register: int) -> list[Any]:
        return [result for result in self.results if result.register == register]


def feed(
    unit,
    beats,
    *,
    fields: Callable[[Any], dict[str, Any]],
    result: Callable[[Any], Any],
    quiet: int,
    chunk=0,
    offer=lambda cycle: True,
    take=lambda cycle: True,
    cycles=None,
) -> Run:
    """Feed beats in order and collect results, until `quiet` cycles pass without either, or for some cycles.

    `fields` gives the payload of a beat, `result` reads the payload of a result. `offer` and `take` say in which cycles
    a beat is offered (once offered it stays) and a result is taken.
    """
    done = Run()
    left = list(reversed(beats))

    layout = unit.i.payload.shape()
    inputs = Cat(unit.i.valid, unit.o.ready, unit.i.payload.as_value())

    async def testbench(ctx):
        ctx.set(unit.chunk, chunk)
        cycle, last_event, offering = 0, 0, False
        payload, before = 0, None
        while (left or cycle - last_event < quiet) if cycles is None else cycle < cycles:
            fresh = bool(left) and not offering
            offering = bool(left) and (offering or offer(cycle))
            if offering and fresh:
                beat = fields(left[-1])
                payload = layout.const({key: beat[key] for key, part in layout if part.width}).as_bits()
            # All inputs at once: signals that depend on them are computed once.
            given = offering | take(cycle) << 1 | payload << 2
            if given != before:
                ctx.set(inputs, given)
                before = given
            accepted = offering and ctx.get(unit.i.ready)
            if ctx.get(unit.o.valid) and ctx.get(unit.o.ready):
                done.results.append(result(ctx.get(unit.o.payload)))
                done.left_at.append(cycle)
                last_event = cycle
            if accepted:
                done.accepted_at.append(cycle)
                left.pop()
                offering, last_event = False, cycle
            assert cycle - last_event < 10_000, "nothing moves any more"
            await ctx.tick()
            cycle += 1

    simulate(unit, testbench)
    return done


def sometimes(probability: float, seed: int):
    """A schedule that is true in a random share of the cycles."""
    rng = np.random.default_rng(seed)
    return lambda cycle: bool(rng.random() < probability)
