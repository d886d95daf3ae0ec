"""Judges of the golden model, the operands that they are asked about, and strategies that draw formats and codes.

Nothing here calls `golden` beyond the four numbers of a format: codes are decoded by enumeration, MPFR rounds."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import gmpy2
import numpy as np
from hypothesis import strategies as st

from golden import FP32, FloatFormat

INEXACT, UNDERFLOW, OVERFLOW, INVALID = 1, 2, 4, 16
UNBOUNDED = 10**6


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


@lru_cache(maxsize=64)
def ascending_values(fmt: FloatFormat) -> np.ndarray:
    """Value of code 0, 1, 2, ... up to the largest finite one, then infinity, as float64."""
    steps = np.arange(2**fmt.fraction_bits, dtype=np.float64)
    values = [np.ldexp(steps, fmt.emin - fmt.fraction_bits)]
    for exponent in range(fmt.emin, fmt.emax + 1):
        values.append(np.ldexp(2**fmt.fraction_bits + steps, exponent - fmt.fraction_bits))
    return np.append(np.concatenate(values), np.inf)


def values_of(codes: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """Float64 values of codes, NaN for every NaN."""
    if fmt == FP32:
        with np.errstate(invalid="ignore"):  # the host's own flag for a signalling NaN
            return np.asarray(codes, np.uint32).view(np.float32).astype(np.float64)
    magnitude = np.asarray(codes, np.int64) % 2 ** (fmt.width - 1)
    negative = np.asarray(codes, np.int64) >= 2 ** (fmt.width - 1)
    table = ascending_values(fmt)
    values = np.where(magnitude < len(table), table[np.minimum(magnitude, len(table) - 1)], np.nan)
    return np.where(negative, -values, values)


def codes_of(values: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """Codes of float64 values that the format holds; it fails on any other value."""
    values = np.asarray(values, np.float64)
    nan = np.isnan(values)
    magnitude = np.where(nan, 0.0, np.abs(values))
    if fmt == FP32:
        codes = magnitude.astype(np.float32).view(np.uint32).astype(np.int64)
        assert (magnitude.astype(np.float32) == magnitude).all()
    else:
        table = ascending_values(fmt)
        codes = np.searchsorted(table, magnitude)
        assert (table[codes] == magnitude).all()
    return np.where(nan, fmt.nan, codes + np.signbit(values) * 2 ** (fmt.width - 1))


def fraction_of(code: int, fmt: FloatFormat) -> Fraction:
    """Exact value of a finite code of at most 16 bits or of fp32."""
    return Fraction(float(values_of(np.array([code]), fmt)[0]))


class Mpfr:
    """MPFR set to the precision and the exponent range of a format; its significand is below 1, hence the + 1."""

    def __init__(self, fmt: FloatFormat, mode: int = gmpy2.RoundToNearest) -> None:
        lowest, highest = fmt.emin - fmt.fraction_bits + 1, fmt.emax + 1
        self.context = gmpy2.context(precision=fmt.precision, round=mode, emin=lowest, emax=highest, subnormalize=True)
        self.unbounded = gmpy2.context(precision=fmt.precision, round=mode, emin=-UNBOUNDED, emax=UNBOUNDED)
        self.min_normal = gmpy2.mpfr(2.0**fmt.emin)

    def apply(self, operation: str, *operands: float) -> tuple[float, int]:
        """Run a method of the context (plus, fma, exp, ...) on exact operands; return the result and its flags."""
        exact = [gmpy2.mpfr(x, 53) for x in operands]
        self.context.clear_flags()
        result = getattr(self.context, operation)(*exact)
        if gmpy2.is_nan(result):
            return float("nan"), 0 if any(map(gmpy2.is_nan, exact)) else INVALID
        flags = INEXACT * self.context.inexact + OVERFLOW * self.context.overflow
        # MPFR's own underflow flag also marks exact subnormals; ours means tiny after rounding, and inexact.
        if flags and abs(getattr(self.unbounded, operation)(*exact)) < self.min_normal:
            flags |= UNDERFLOW
        return float(result), flags

    def apply_all(self, operation: str, *operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        results = [self.apply(operation, *each) for each in zip(*(x.tolist() for x in operands), strict=True)]
        return np.array([value for value, _ in results]), np.array([flags for _, flags in results])


def fraction_patterns(bits: int) -> list[int]:
    """All zeros, all ones, one bit set, one bit clear, runs of ones from the top and from the bottom."""
    ones = 2**bits - 1
    single = [1 << i for i in range(bits)]
    runs = [ones >> i for i in range(bits)]
    return sorted({0, ones, *single, *(ones ^ bit for bit in single), *runs, *(ones ^ run for run in runs)})


def boundary_codes(fmt: FloatFormat, near: tuple[FloatFormat, ...] = ()) -> np.ndarray:
    """Codes at the edges of a format's binades, and at the limits of the formats that they are converted to."""
    exponents = [-1, 0, 1]
    for other in (fmt, *near):
        smallest = other.emin - other.fraction_bits
        exponents += [*range(smallest - 3, smallest + 3), *range(other.emin - 2, other.emin + 2)]
        exponents += range(other.emax - 1, other.emax + 3)
    fields = {0, 1, 2, fmt.exponent_field_max, *(exponent + fmt.bias for exponent in exponents)}
    inside = sorted(field for field in fields if 0 <= field <= fmt.exponent_field_max)
    patterns = np.array(fraction_patterns(fmt.fraction_bits), np.int64)
    magnitude = (np.array(inside, np.int64)[:, None] * 2**fmt.fraction_bits + patterns).ravel()
    return np.concatenate([magnitude, magnitude + 2 ** (fmt.width - 1)]).astype(code_dtype(fmt))


def code_dtype(fmt: FloatFormat) -> type:
    return np.uint16 if fmt.width <= 16 else np.uint32


def all_codes(fmt: FloatFormat) -> np.ndarray:
    return np.arange(2**fmt.width, dtype=np.int64).astype(code_dtype(fmt))


def random_codes(fmt: FloatFormat, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**fmt.width, count).astype(code_dtype(fmt))


def values_around(fmt: FloatFormat) -> np.ndarray:
    """Every non-negative value of a format of 16 bits, every midpoint between two, and its float64 neighbours."""
    values = ascending_values(fmt)[:-1]
    overflow_limit = 2.0**fmt.emax * (2 - 2.0 ** -(fmt.fraction_bits + 1))
    midpoints = np.append((values[1:] + values[:-1]) / 2, overflow_limit)
    beside = [np.nextafter(midpoints, 0), np.nextafter(midpoints, np.inf)]
    return np.concatenate([values, midpoints, *beside])


def assert_same_bits(got: np.ndarray, wanted: np.ndarray, *operands: np.ndarray) -> None:
    """Fail with the hex operands of the first difference."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    wrong = np.argwhere(got != wanted)
    if len(wrong):
        at = tuple(wrong[0])
        shown = ", ".join(hex(x[at]) if np.asarray(x).dtype.kind in "iu" else float(x[at]).hex() for x in operands)
        raise AssertionError(f"{len(wrong)} differ, first at ({shown}): {got[at]:#x}, must be {wanted[at]:#x}")


@st.composite
def formats(draw: st.DrawFn, max_width: int = 32) -> FloatFormat:
    """Any valid format; the limits of the bias are those that keep every value inside float32."""
    exponent_bits = draw(st.integers(2, 8))
    fraction_bits = draw(st.integers(1, min(23, max_width - 1 - exponent_bits)))
    biases = st.integers(2**exponent_bits - 129, 150 - fraction_bits)
    bias = draw(st.none() | biases)
    return FloatFormat(f"e{exponent_bits}m{fraction_bits}", exponent_bits, fraction_bits, bias)


@st.composite
def codes(draw: st.DrawFn, fmt: FloatFormat) -> int:
    """A code of the format: any, or one with an edge field and a patterned fraction."""
    if draw(st.booleans()):
        return draw(st.integers(0, 2**fmt.width - 1))
    top = fmt.exponent_field_max
    field = draw(st.sampled_from([0, 1, 2, top // 2, top - 1, top]) | st.integers(0, top))
    fraction = draw(st.sampled_from(fraction_patterns(fmt.fraction_bits)))
    return (draw(st.integers(0, 1)) << fmt.exponent_bits | field) << fmt.fraction_bits | fraction
