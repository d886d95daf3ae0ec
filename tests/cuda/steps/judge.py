"""Steps over one lane compared with golden's fused step, bit by bit."""

from __future__ import annotations

import numpy as np

from golden import FP32, FloatFormat, Rounding, decode, encode, kernels, multiply_accumulate
from golden.cuda.scales import Scales, choose_for, first_beyond

from ...golden.judges import code_dtype
from ...golden.kernels.operands import codes, specials
from .build import LIMITED, PLAIN, SINGLE, Steps

SMALL = FloatFormat("e3m2", 3, 2)
RANDOM_BITS = 11


def scales_of(fmt: FloatFormat, mode: Rounding) -> Scales:
    """Return how a product of the format within itself is scaled."""
    return choose_for((fmt, fmt, fmt), None, mode, False, False)


def triples(fmt: FloatFormat, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Codes of about `count` sums: all kinds of operands, every triple of specials, sums near cancellation."""
    kinds = ("any", "normal", "special", "wide", "edges", "small integers")
    each = count // (len(kinds) + 2)
    parts = [[codes(kind, fmt, (each,), rng) for _ in range(3)] for kind in kinds]
    # Accumulators beside the negated product: cancellation, and sums far below either.
    a, b = codes("normal", fmt, (each,), rng), codes("normal", fmt, (each,), rng)
    with kernels.use("portable"):
        product = multiply_accumulate(a, b, np.zeros_like(a), operand=fmt, accumulator=fmt)
    beside = product + rng.integers(-2, 3, each).astype(product.dtype)
    parts.append([a, b, (beside ^ fmt.sign_mask).astype(a.dtype) & np.array(2**fmt.width - 1, a.dtype)])
    parts.append(beside_ties(fmt, each, rng))
    parts.append([part.ravel() for part in np.meshgrid(*[specials(fmt)] * 3)])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def beside_ties(fmt: FloatFormat, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Accumulators and products of half their last place, or of a little less or more."""
    acc = codes("any", fmt, (count,), rng)
    with np.errstate(invalid="ignore"):
        leading = np.frexp(np.nan_to_num(decode(acc, fmt).astype(np.float64), posinf=0, neginf=0))[1] - 1
    half = np.maximum(leading, fmt.emin) - fmt.fraction_bits - 1
    ulp = 2.0**-fmt.fraction_bits
    a, b = 1 + ulp * rng.integers(-1, 2, count), 1 + ulp * rng.integers(-1, 2, count)
    signs = rng.choice([-1.0, 1.0], count)
    return [encode(np.ldexp(signs * a, half // 2), fmt), encode(np.ldexp(b, half - half // 2), fmt), acc]


def all_triples(fmt: FloatFormat) -> list[np.ndarray]:
    every = np.arange(2**fmt.width, dtype=code_dtype(fmt))
    return [part.ravel() for part in np.meshgrid(every, every, every)]


def wanted(fmt: FloatFormat, mode: Rounding, given: list[np.ndarray], words: np.ndarray | None) -> np.ndarray:
    """Return the codes that golden has: by NumPy where there are random bits, by plain compiled code elsewhere."""
    options = {} if words is None else {"random": words >> np.uint32(32 - RANDOM_BITS), "random_bits": RANDOM_BITS}
    with kernels.use("numpy" if options else "portable"):
        return multiply_accumulate(*given, operand=fmt, accumulator=fmt, rounding=mode, **options)


def values_of(fmt: FloatFormat, given: np.ndarray, exponent: int) -> np.ndarray:
    """Return codes as floats times 2^exponent, which are exact."""
    values = np.ldexp(decode(given, fmt).astype(np.float64), exponent)
    scaled = values.astype(np.float32)
    assert ((scaled == values) | np.isnan(values)).all()
    return scaled


def same_bits(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Tell where floats have the same bits, or are NaNs both."""
    return (got.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(got) & np.isnan(expected))


def differences(steps: Steps, fmt: FloatFormat, mode: Rounding, given: list[np.ndarray], seed: int = 0) -> list[str]:
    """Return the operands of the first steps that differ from golden's, in hex; steps that fit are compared."""
    words = None
    if mode is Rounding.STOCHASTIC:
        words = np.random.default_rng(seed).integers(0, 2**32, given[0].size, dtype=np.uint32)
    codes_wanted = wanted(fmt, mode, given, words)
    # The largest finite value may stand for a sum beyond it.
    inside = (codes_wanted & np.array(fmt.sign_mask - 1, codes_wanted.dtype)) < fmt.max_finite
    inside = np.logical_and.reduce([inside, *(np.isfinite(decode(part, fmt)) for part in given)])
    scales = scales_of(fmt, mode)
    single = fmt == FP32
    assert scales.steps.chain == ("single" if single else "scaled"), f"no step serves {fmt}"
    expected = values_of(fmt, codes_wanted, scales.inner)
    operands = [values_of(fmt, part, to) for part, to in zip(given, (scales.a, scales.b, scales.inner), strict=True)]
    limit = first_beyond(fmt, scales.inner)
    found = []
    for kind in (SINGLE,) if single else (PLAIN, LIMITED):
        got = steps.step(kind, fmt, limit, *operands, words, RANDOM_BITS)
        wrong = ~same_bits(got, expected)
        if kind == PLAIN:  # it serves finite sums of finite operands
            wrong &= inside
        for i in np.flatnonzero(wrong)[:5]:
            a, b, acc = (hex(int(part[i])) for part in given)
            word = "" if words is None else f", word {int(words[i]):#x}"
            found.append(
                f"kind {kind} of {fmt}, {mode}: {a} * {b} + {acc}{word}: got {got[i]!r}, must be {expected[i]!r}, "
                f"code {int(codes_wanted[i]):#x}"
            )
    return found
