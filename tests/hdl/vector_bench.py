"""A testbench for the SIMD multiply-accumulate unit in Amaranth's simulator: queues of beats in, results out."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from amaranth import Cat

import golden
from hdl import Error, VectorMac

from .simulators import simulate

#: Cycles without an accepted beat or a result after which the run ends.
QUIET = 80


class Beat(NamedTuple):
    a: tuple[int, ...]
    b: tuple[int, ...]
    register: int = 0
    level: int = 0
    format: int = 0
    first: bool = False
    last: bool = False
    rounding: int = 0
    random: tuple[int, ...] = ()
    random_promotion: tuple[int, ...] = ()


class Result(NamedTuple):
    result: tuple[int, ...]
    flags: tuple[int, ...]
    error: int
    register: int
    part: int


def elements(unit: VectorMac, level: int) -> int:
    """Elements that a beat of a level has."""
    return unit.lanes if level else unit.lanes // 2


def reduction(a, b, *, first=True, last=True, **where) -> list[Beat]:
    """The beats of one reduction, elements in rows and products in columns, the first and the last marked."""
    end = len(a[0]) - 1
    return [
        Beat(tuple(map(int, x)), tuple(map(int, y)), first=first and k == 0, last=last and k == end, **where)
        for k, (x, y) in enumerate(zip(np.transpose(a), np.transpose(b), strict=True))
    ]


def element_results(unit: VectorMac, a, b, *, format=0, level, chunk, initial=None):
    """The codes and flags that `golden.dot` gives for each element."""
    operand = unit.operands[format]
    initial = [None] * len(a) if initial is None else initial
    pairs = [
        golden.dot(x, y, operand=operand, level=level, chunk=chunk or None, initial=start, return_flags=True)
        for x, y, start in zip(a, b, initial, strict=True)
    ]
    return [int(code) for code, _ in pairs], [int(flags) if unit.flags else 0 for _, flags in pairs]


def beats_of(unit: VectorMac, codes, flags, *, level, register) -> list[Result]:
    """The result beats in which the elements of a reduction leave, as the docstring of `hdl.VectorMac` has it."""
    if level == 2:
        words = tuple(codes[i] | codes[i + 1] << 16 for i in range(0, unit.lanes, 2))
        return [Result(words, tuple(flags), Error.NONE.value, register, 0)]
    parts = [(codes, flags)] if level == 0 else [(codes[part::2], flags[part::2]) for part in (0, 1)]
    return [
        Result(
            tuple(codes),
            tuple(flag for pair in zip(flags, [0] * len(flags), strict=True) for flag in pair),
            Error.NONE.value,
            register,
            part,
        )
        for part, (codes, flags) in enumerate(parts)
    ]


def refused(unit: VectorMac, error: Error, register: int) -> Result:
    """The result beat of a refused beat."""
    return Result((0,) * (unit.lanes // 2), (0,) * unit.lanes, error.value, register, 0)


@dataclass
class Run:
    """A record of a run: the results in order, and the cycle of each accepted beat and each taken result."""

    results: list[Result] = field(default_factory=list)
    accepted_at: list[int] = field(default_factory=list)
    left_at: list[int] = field(default_factory=list)

    def of(self, register: int) -> list[Result]:
        return [result for result in self.results if result.register == register]


def run(unit: VectorMac, beats, *, chunk=0, offer=lambda cycle: True, take=lambda cycle: True, cycles=None) -> Run:
    """Feed beats in order and collect results, until nothing is left to happen or for some cycles.

    ``offer`` and ``take`` say in which cycles a beat is offered (once offered it stays) and a result is taken.
    """
    done = Run()
    left = list(reversed(beats))
    padding = (0,) * unit.lanes

    layout = unit.i.payload.shape()
    inputs = Cat(unit.i.valid, unit.o.ready, unit.i.payload.as_value())

    async def testbench(ctx):
        ctx.set(unit.chunk, chunk)
        cycle, last_event, offering = 0, 0, False
        payload, before = 0, None
        while (left or cycle - last_event < QUIET) if cycles is None else cycle < cycles:
            fresh = bool(left) and not offering
            offering = bool(left) and (offering or offer(cycle))
            if offering and fresh:
                beat = left[-1]._asdict()
                of_lanes = ("a", "b", "random", "random_promotion")
                beat |= {name: (beat[name] + padding)[: unit.lanes] for name in of_lanes}
                payload = layout.const({key: beat[key] for key, part in layout if part.width}).as_bits()
            # All inputs at once: what depends on them is computed once.
            given = offering | take(cycle) << 1 | payload << 2
            if given != before:
                ctx.set(inputs, given)
                before = given
            accepted = offering and ctx.get(unit.i.ready)
            if ctx.get(unit.o.valid) and ctx.get(unit.o.ready):
                done.results.append(_result(unit, ctx.get(unit.o.payload)))
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


def _result(unit: VectorMac, payload) -> Result:
    flags = [payload.flags[lane].as_bits() if unit.flags else 0 for lane in range(unit.lanes)]
    words = [payload.result[word] for word in range(unit.lanes // 2)]
    return Result(tuple(words), tuple(flags), payload.error.value, payload.register, payload.part)
