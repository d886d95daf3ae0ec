"""A testbench for the SIMD multiply-accumulate unit in Amaranth's simulator: queues of beats in, results out."""

from typing import NamedTuple

import numpy as np

import golden
from hdl import Error, VectorMac

from .simulators import Run, feed

UNIT = VectorMac
#: The levels whose totals may lie in odd registers, too.
ODD = (0, 2)
#: Where a beat goes that is refused, and why.
REFUSED = [
    ({"level": 1, "register": 3}, Error.ALIGNMENT),
    ({"level": 3, "register": 2}, Error.UNSUPPORTED),
    ({"level": 2, "register": 2, "format": 3}, Error.UNSUPPORTED),
    ({"level": 1, "register": 3, "format": 3}, Error.UNSUPPORTED),
]
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


def rows(unit: VectorMac, level: int) -> tuple[int, ...]:
    """Return the shape of the operands of a level, without the products of a reduction."""
    return (elements(unit, level),)


def answers(unit: VectorMac, a, b, *, format=0, level, chunk, register, state=None):
    """Return the result beats that `golden.dot` gives for a reduction, and the state from which another goes on."""
    initial, raised = state or (None, [0] * len(a))
    codes, flags = element_results(unit, a, b, format=format, level=level, chunk=chunk, initial=initial)
    flags = [x | y for x, y in zip(raised, flags, strict=True)]
    return beats_of(unit, codes, flags, level=level, register=register), (codes, flags)


def refused(unit: VectorMac, error: Error, register: int) -> Result:
    """The result beat of a refused beat."""
    return Result((0,) * (unit.lanes // 2), (0,) * unit.lanes, error.value, register, 0)


def run(unit: VectorMac, beats, **schedule) -> Run:
    """Feed beats in order and collect results, as `feed` does."""
    padding = (0,) * unit.lanes

    def fields(beat):
        of_lanes = {name: getattr(beat, name) for name in ("a", "b", "random", "random_promotion")}
        return beat._asdict() | {name: (given + padding)[: unit.lanes] for name, given in of_lanes.items()}

    def result(payload):
        flags = [payload.flags[lane].as_bits() if unit.flags else 0 for lane in range(unit.lanes)]
        words = [payload.result[word] for word in range(unit.lanes // 2)]
        return Result(tuple(words), tuple(flags), payload.error.value, payload.register, payload.part)

    return feed(unit, beats, fields=fields, result=result, quiet=QUIET, **schedule)
