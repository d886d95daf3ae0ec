"""Reductions with a mode and random numbers for each product, by the reference, step by step."""

from dataclasses import dataclass

import numpy as np

from golden import FP32, Flag, FloatFormat, Rounding, reference


@dataclass
class Rounded:
    """The products of one reduction, each with its mode and its random numbers."""

    a: list[int]
    b: list[int]
    modes: list[Rounding]
    random: list[int]
    random_promotion: list[int]


def drawn(fmt: FloatFormat, count: int, modes, random_bits: int, rng) -> Rounded:
    """Numbers around 1.0 and, one in ten, codes of any kind; modes in any order."""
    exponents = rng.integers(fmt.bias - 3, fmt.bias + 3, (2, count)) << fmt.fraction_bits
    usual = (
        exponents
        | rng.integers(0, 1 << fmt.fraction_bits, (2, count))
        | rng.integers(0, 2, (2, count)) << fmt.width - 1
    )
    codes = np.where(rng.random((2, count)) < 0.1, rng.integers(0, 1 << fmt.width, (2, count)), usual)
    a, b = codes.tolist()
    randoms = rng.integers(0, 1 << random_bits, (2, count)).tolist()
    return Rounded(a, b, [modes[at] for at in rng.integers(0, len(modes), count)], *randoms)


def reduced(
    given: Rounded, fmt: FloatFormat, *, level: int, chunk: int, random_bits: int, inner=None
) -> tuple[int, int]:
    """Code and flags of a reduction from +0 (NUMERICS section 5), every step in the mode of its product."""
    inner = inner or fmt

    def options(k: int, random: list[int]):
        if given.modes[k] is not Rounding.STOCHASTIC:
            return {"rounding": given.modes[k]}
        return {"rounding": given.modes[k], "random": random[k], "random_bits": random_bits}

    count, flags = len(given.a), Flag(0)
    partial, total, outer = 0, 0, inner if level == 2 else FP32
    for k in range(count):
        own = {"operand": fmt, "accumulator": inner if level else FP32} | options(k, given.random)
        partial, raised = reference.multiply_accumulate(given.a[k], given.b[k], partial, **own)
        flags |= raised
        if level and (k + 1 == count or (chunk and (k + 1) % chunk == 0)):
            own = {"operand": inner, "accumulator": outer} | options(k, given.random_promotion)
            total, raised = reference.multiply_accumulate(partial, inner.one, total, **own)
            flags |= raised
            partial = 0
    return (total if level else partial), int(flags)
