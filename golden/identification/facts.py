"""Single sums that show one property each, and what their results say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import decode, encode
from golden.formats import FP32, FloatFormat
from golden.identification.findings import Finding
from golden.identification.probes import Probe
from golden.rounding import Rounding

__all__ = ["fact_probes", "facts"]

_LENGTH = 64
_DEEPEST = 45
_MODES = [mode for mode in Rounding if mode is not Rounding.STOCHASTIC]
# Sums of 1 and this many units of the last place, whose roundings tell the modes apart.
_UNITS = (0.5, 1.5, 0.75, 0.25)


def _factors(exponent: int, operand: FloatFormat) -> tuple[float, float] | None:
    """Return two factors of 2**exponent that are normal; None where there are none."""
    low = exponent // 2
    fits = all(operand.emin <= each <= operand.emax - (not operand.has_inf) for each in (low, exponent - low))
    return (2.0 ** (exponent - low), 2.0**low) if fits else None


def _facts(operand: FloatFormat) -> Iterator[tuple[tuple[Any, ...], list[tuple[float, float]]]]:
    """Return the meaning and the products of each sum."""
    ulp = 2.0**-operand.fraction_bits
    tiny = 2.0 ** (operand.emin - operand.fraction_bits)
    yield ("subnormal operand",), [(tiny, 2.0 ** (operand.emax - 1))]
    if operand.fraction_bits > 1:
        yield ("exact product",), [(-(1 + 2 * ulp), 1.0), (1 + ulp, 1 + ulp)]
    for exponent in range(2 * operand.emin, 2 * operand.emax):
        if factors := _factors(exponent, operand):
            yield ("power", exponent), [factors]
    for depth in range(1, _DEEPEST):
        if factors := _factors(-depth, operand):
            yield ("beside", depth), [(1.0, 1.0), factors]
            yield ("beneath", depth), [(1.0, 1.0), factors, (-1.0, 1.0)]
            for sign in (1.0, -1.0):
                for at, units in enumerate(_UNITS):
                    # 0.5 = 2^-1, 1.5 = 1 + 2^-1, 0.75 = 2^-1 + 2^-2: the parts are added from the smallest on.
                    parts = {0.5: [-1], 1.5: [-1, 0], 0.75: [-2, -1], 0.25: [-2]}[units]
                    terms = [_factors(part - depth, operand) for part in parts]
                    if all(terms):
                        products = [(sign * x, y) for x, y in terms if terms] + [(sign, 1.0)]  # type: ignore[misc]
                        yield ("rounding", depth, sign, units, at), products
    if operand.has_inf:
        yield ("inf - inf",), [(float("inf"), 1.0), (float("-inf"), 1.0)]
        yield ("inf * 0",), [(float("inf"), 0.0)]
    if operand.has_nan:
        yield ("nan",), [(float("nan"), 1.0)]


def fact_probes(operand: FloatFormat) -> list[Probe]:
    """Return the sums as products, eight of them in each; only their diagonals count."""
    facts = list(_facts(operand))
    a = np.zeros((len(facts), _LENGTH))
    b = np.zeros_like(a)
    for row, (_, products) in enumerate(facts):
        for at, (x, y) in enumerate(products):
            a[row, at], b[row, at] = x, y
    codes = encode(a, operand), encode(b, operand)
    made = []
    for at in range(0, len(facts), 8):
        rows = slice(at, at + 8)
        about = tuple(meaning for meaning, _ in facts[rows])
        made.append(Probe("fact", codes[0][rows], np.ascontiguousarray(codes[1][rows].T), about))
    return made


class _Shown:
    """Results of the sums by their meaning."""

    def __init__(self, asked: Sequence[Probe], results: Sequence[NDArray[Any]], out: FloatFormat) -> None:
        self.out = out
        self.rows: dict[tuple[Any, ...], tuple[Probe, int, int]] = {}
        for probe, result in zip(asked, results, strict=True):
            if probe.name == "fact":
                for at, meaning in enumerate(probe.about):
                    self.rows[meaning] = probe, at, int(result[at, at])

    def value(self, *meaning: Any) -> float | None:
        if meaning not in self.rows:
            return None
        return float(decode(np.uint32(self.rows[meaning][2]).astype(_dtype(self.out)), self.out))

    def finding(self, statement: str, *meaning: Any) -> Finding:
        probe, at, result = self.rows[meaning]
        pairs = zip(probe.a[at].tolist(), probe.b[:, at].tolist(), strict=True)
        return Finding(statement, tuple((x, y) for x, y in pairs if x or y), result)

    def depths(self, kind: str) -> list[int]:
        return sorted(meaning[1] for meaning in self.rows if meaning[0] == kind)


def _dtype(fmt: FloatFormat) -> Any:
    return encode([0.0], fmt).dtype


def facts(asked: Sequence[Probe], results: Sequence[NDArray[Any]], out: FloatFormat) -> list[Finding]:
    """Return what the single sums show."""
    shown = _Shown(asked, results, out)
    found: list[Finding] = []
    kept = shown.value("subnormal operand")
    if kept is not None:
        word = "are flushed to zero" if kept == 0 else "keep their values"
        found.append(shown.finding(f"Subnormal operands {word}.", "subnormal operand"))
    exact = shown.value("exact product")
    if exact is not None:
        word = (
            "is lost: products are rounded, or the sum has too few bits"
            if exact == 0
            else "is kept: products are exact"
        )
        found.append(shown.finding(f"The last bit of a product {word}.", "exact product"))
    found += _bits(shown)
    found += _range(shown, out)
    for name in ("inf - inf", "inf * 0", "nan"):
        value = shown.value(name)
        if value is not None:
            code = shown.rows[(name,)][2]
            canonical = out.has_nan and code == out.nan
            what = "the canonical NaN" if canonical else "a NaN of its own" if np.isnan(value) else "no NaN"
            found.append(shown.finding(f"{name} gives {what}, {code:#x}.", name))
    return found


def _bits(shown: _Shown) -> Iterator[Finding]:
    beside = [depth for depth in shown.depths("beside") if shown.value("beside", depth) == 1 + 2.0**-depth]
    if not beside:
        return
    precise = max(beside)
    yield shown.finding(f"A sum of 1 keeps a term down to 2^-{precise}: {precise} fraction bits.", "beside", precise)
    beneath = [depth for depth in shown.depths("beneath") if shown.value("beneath", depth) == 2.0**-depth]
    if beneath:
        deepest = max(beneath)
        end = "and below" if deepest == max(shown.depths("beneath")) else f"but not 2^-{deepest + 1}"
        yield shown.finding(f"Between 1 and -1 a term of 2^-{deepest} survives, {end}.", "beneath", deepest)
    modes = [mode for mode in _MODES if _agrees(shown, mode, precise)]
    last = ("rounding", precise, 1.0, 0.75, 2)
    if last in shown.rows:
        names = " or ".join(map(str, modes)) or "no single mode"
        yield shown.finding(f"Sums of 1 and small terms round as {names} does.", *last)


def _agrees(shown: _Shown, mode: Rounding, fraction_bits: int) -> bool:
    like = FloatFormat("like", 8, min(fraction_bits, FP32.fraction_bits))
    seen = [meaning for meaning in shown.rows if meaning[0] == "rounding" and meaning[1] == fraction_bits]
    for _, _, sign, units, at in seen:
        exact = sign * (1 + units * 2.0**-fraction_bits)
        wanted = float(decode(encode([exact], like, rounding=mode), like)[0])
        if shown.value("rounding", fraction_bits, sign, units, at) != wanted:
            return False
    return bool(seen)


def _range(shown: _Shown, out: FloatFormat) -> Iterator[Finding]:
    powers = shown.depths("power")
    right = [each for each in powers if shown.value("power", each) == 2.0**each]
    if not right:
        return
    low, high = min(right), max(right)
    if low > powers[0]:
        subnormal = "subnormal results are kept" if low < out.emin else "subnormal results are flushed"
        yield shown.finding(f"The smallest power of two that comes out is 2^{low}: {subnormal}.", "power", low)
    if high < powers[-1]:
        yield shown.finding(f"2^{high} is the largest power of two; 2^{high + 1} overflows.", "power", high + 1)
