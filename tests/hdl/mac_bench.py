"""A testbench for the multiply-accumulate unit in Amaranth's simulator: queues of products in, results out."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from amaranth import Cat

from hdl import MultiplyAccumulate

from .simulators import simulate

#: Cycles without an accepted product or a result after which the run ends.
QUIET = 60


class Product(NamedTuple):
    a: int
    b: int
    register: int = 0
    level: int = 0
    format: int = 0
    first: bool = False
    last: bool = False
    rounding: int = 0
    random: int = 0
    random_promotion: int = 0


class Result(NamedTuple):
    result: int
    flags: int
    error: int
    register: int


def reduction(a, b, **where) -> list[Product]:
    """The products of one reduction, the first and the last marked."""
    end = len(a) - 1
    return [
        Product(int(x), int(y), first=k == 0, last=k == end, **where) for k, (x, y) in enumerate(zip(a, b, strict=True))
    ]


@dataclass
class Run:
    """A record of a run: the results in order, and the cycle of each accepted product and each taken result."""

    results: list[Result] = field(default_factory=list)
    accepted_at: list[int] = field(default_factory=list)
    left_at: list[int] = field(default_factory=list)

    def of(self, register: int) -> list[Result]:
        return [result for result in self.results if result.register == register]


def run(unit: MultiplyAccumulate, products, *, chunk=0, offer=lambda cycle: True, take=lambda cycle: True) -> Run:
    """Feed products in order and collect results.

    ``offer`` and ``take`` say in which cycles a product is offered (once offered it stays) and a result is taken.
    """
    done = Run()
    left = list(products)

    layout = unit.i.payload.shape()
    inputs = Cat(unit.i.valid, unit.o.ready, unit.i.payload.as_value())

    async def testbench(ctx):
        ctx.set(unit.chunk, chunk)
        cycle, last_event, offering = 0, 0, False
        payload, before = 0, None
        while left or cycle - last_event < QUIET:
            fresh = bool(left) and not offering
            offering = bool(left) and (offering or offer(cycle))
            if offering and fresh:
                beat = left[0]._asdict()
                payload = layout.const({key: beat[key] for key, part in layout if part.width}).as_bits()
            # All inputs at once: what depends on them is computed once.
            given = offering | take(cycle) << 1 | payload << 2
            if given != before:
                ctx.set(inputs, given)
                before = given
            accepted = offering and ctx.get(unit.i.ready)
            if ctx.get(unit.o.valid) and ctx.get(unit.o.ready):
                result = ctx.get(unit.o.payload)
                flags = result.flags.as_bits() if unit.flags else 0
                done.results.append(Result(result.result, flags, result.error.value, result.register))
                done.left_at.append(cycle)
                last_event = cycle
            if accepted:
                done.accepted_at.append(cycle)
                left.pop(0)
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
