"""The line of text by which an operator of PyTorch knows what its product computes, read back.

An operator takes PyTorch's own few types, and a `golden.Reduction` is none of them.
"""

from __future__ import annotations

from functools import lru_cache

from golden.formats import CBFLOAT16
from golden.lines import format_of as _format_of
from golden.reduction import Reduction
from golden.rounding import Randomness

__all__ = [
    "format_of",
    "is_by_a_machine",
    "is_in_cbfloat16",
    "is_stochastic",
    "level_of",
    "random_in",
    "random_text",
    "reduction_in",
    "without_random",
]

#: Random bits stand at the end of a line. They differ for each product, so the part before them is cached.
_RANDOM = " random_bits="

format_of = lru_cache(maxsize=256)(_format_of)
_parsed = lru_cache(maxsize=256)(Reduction.parse)


def reduction_in(text: str) -> Reduction:
    """Return the reduction of a line of text."""
    random, start = random_in(text), without_random(text)
    return _parsed(start) if random is None else _parsed(start).with_random(random)


def random_in(text: str) -> Randomness | None:
    """Return the random bits at the end of a line of text."""
    _, found, numbers = text.partition(_RANDOM)
    return Randomness(*(int(word.rpartition("=")[2]) for word in numbers.split())) if found else None


def random_text(random: Randomness) -> str:
    """Return random bits as the end of a line of text."""
    return f"{_RANDOM}{random.random_bits} seed={random.seed} call={random.call}"


def without_random(text: str) -> str:
    """Return a line of text up to its random bits."""
    return text.partition(_RANDOM)[0]


def is_by_a_machine(text: str) -> bool:
    """Return whether a line of text without formats of a user has the accumulator of another machine."""
    return " accumulator=" in f" {text}"


def is_stochastic(text: str) -> bool:
    """Return whether a line of text has a random mode."""
    return _RANDOM in text


@lru_cache(maxsize=256)
def _is_in_cbfloat16(start: str) -> bool:
    reduction = _parsed(start)
    return reduction.operand == reduction.out == CBFLOAT16


def is_in_cbfloat16(text: str) -> bool:
    """Return whether factors and results of a line of text are in cbfloat16."""
    return _is_in_cbfloat16(without_random(text))


def level_of(reduction: Reduction) -> int:
    """Return the level at which products are summed; 0 for the accumulator of another machine, which has none."""
    if reduction.is_chain or reduction.accumulator is not None:
        return 0
    return 2 if reduction.inner == reduction.outer else 1
