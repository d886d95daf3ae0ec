"""A testbench for the multiply-accumulate unit in Amaranth's simulator: queues of products in, results out."""

from typing import NamedTuple

from hdl import MultiplyAccumulate

from .simulators import Run, feed

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


def run(unit: MultiplyAccumulate, products, **schedule) -> Run:
    """Feed products in order and collect results, as `feed` does."""

    def result(payload):
        flags = payload.flags.as_bits() if unit.flags else 0
        return Result(payload.result, flags, payload.error.value, payload.register)

    return feed(unit, products, fields=Product._asdict, result=result, quiet=QUIET, **schedule)
