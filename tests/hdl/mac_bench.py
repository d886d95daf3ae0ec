"""A testbench for the multiply-accumulate unit in Amaranth's simulator: queues of products in, results out."""

from typing import NamedTuple

import golden
from hdl import Error, MultiplyAccumulate

from .simulators import Run, feed

UNIT = MultiplyAccumulate
#: The levels whose totals may lie in odd registers, too.
ODD = (2,)
#: Where a product goes that is refused, and why.
REFUSED = [
    ({"level": 0, "register": 3}, Error.ALIGNMENT),
    ({"level": 1, "register": 3}, Error.ALIGNMENT),
    ({"level": 3, "register": 2}, Error.UNSUPPORTED),
    ({"level": 2, "register": 2, "format": 3}, Error.UNSUPPORTED),
    ({"level": 0, "register": 3, "format": 3}, Error.UNSUPPORTED),
]
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


def rows(unit: MultiplyAccumulate, level: int) -> tuple[int, ...]:
    """Return the shape of the operands of a level, without the products of a reduction."""
    return ()


def answers(unit: MultiplyAccumulate, a, b, *, format=0, level, chunk, register, state=None):
    """Return the results that `golden.dot` gives for a reduction, and the state from which another one continues it."""
    fmt, (initial, raised) = unit.operands[format], state or (None, 0)
    plan = golden.Reduction.for_level(level, fmt, chunk=chunk or None, inner=fmt)
    code, flags = golden.dot(a, b, operand=fmt, reduction=plan, initial=initial, return_flags=True)
    raised |= int(flags) if unit.flags else 0
    return [Result(int(code), raised, Error.NONE.value, register)], (code, raised)


def refused(unit: MultiplyAccumulate, error: Error, register: int) -> Result:
    """Return the result of a refused product."""
    return Result(0, 0, error.value, register)


def run(unit: MultiplyAccumulate, products, **schedule) -> Run:
    """Feed products in order and collect results, as `feed` does."""

    def result(payload):
        flags = payload.flags.as_bits() if unit.flags else 0
        return Result(payload.result, flags, payload.error.value, payload.register)

    return feed(unit, products, fields=Product._asdict, result=result, quiet=QUIET, **schedule)
