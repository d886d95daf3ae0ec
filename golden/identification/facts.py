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
# Sums of 1 and this many units of the last place, whose roundings tell the modes apart; each as a single product.
_UNITS = {0.5: (1.0, -1), 1.5: (1.5, 0), 0.75: (1.5, -1), 0.25: (1.0, -2)}
_INF, _NAN = float("inf"), float("nan")


def _factors(exponent: int, operand: FloatFormat) -> tuple[float, float] | None:
    """Return two factors of 2**exponent that are normal; None where there are none."""
    low = exponent // 2
    least = operand.emin + operand.normal_zero_field  # there the code of 2**emin is 0
    fits = all(least <= each <= operand.emax - (not operand.has_inf) for each in (low, exponent - low))
    return (2.0 ** (exponent - low), 2.0**low) if fits else None


def _subnormals(operand: FloatFormat) -> dict[str, tuple[float, float]]:
    """Return products of the smallest subnormal with a large number, by the factor that it is."""
    tiny, large = 2.0 ** (operand.emin - operand.fraction_bits), 2.0 ** (operand.emax - 1)
    return {"first": (tiny, large), "second": (large, tiny)} if operand.subnormals else {}


def _specials(operand: FloatFormat) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield sums with infinities and NaNs, also as the second factor: a device may skip a zero, whatever it meets."""
    if operand.has_inf:
        yield "inf - inf", [(_INF, 1.0), (-_INF, 1.0)]
        yield "inf - inf of second factors", [(1.0, _INF), (1.0, -_INF)]
        yield "inf * 0", [(_INF, 0.0)]
        yield "0 * inf", [(0.0, _INF)]
    if operand.has_nan:
        yield "nan", [(_NAN, 1.0)]
        yield "nan as second factor", [(1.0, _NAN)]
        yield "nan * 0", [(_NAN, 0.0)]
        yield "0 * nan", [(0.0, _NAN)]


def _facts(operand: FloatFormat) -> Iterator[tuple[tuple[Any, ...], list[tuple[float, float]]]]:
    """Return the meaning and the products of each sum."""
    ulp = 2.0**-operand.fraction_bits
    for which, factors in _subnormals(operand).items():
        yield ("subnormal operand", which), [factors]
    if operand.fraction_bits > 1:
        yield ("exact product",), [(-(4 - 4 * ulp), 1.0), (2 - ulp, 2 - ulp)]
    for exponent in range(2 * operand.emin, 2 * operand.emax):
        if power := _factors(exponent, operand):
            yield ("power", exponent), [power]
    for depth in range(1, _DEEPEST):
        if power := _factors(-depth, operand):
            yield ("beside", depth), [(1.0, 1.0), power]
            yield ("beneath", depth), [(1.0, 1.0), power, (-1.0, 1.0)]
            for sign in (1.0, -1.0):
                for units, (significand, exponent) in _UNITS.items():
                    if small := _factors(exponent - depth, operand):
                        yield ("rounding", depth, sign, units), [(sign * significand * small[0], small[1]), (sign, 1.0)]
    for name, products in _specials(operand):
        yield (name,), products


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

    def comes_out(self, exponent: int) -> bool:
        """Return whether a product of 2**exponent has that result."""
        return self.value("power", exponent) == 2.0**exponent

    def finding(self, statement: str, *meaning: Any) -> Finding:
        probe, at, result = self.rows[meaning]
        pairs = zip(probe.a[at].tolist(), probe.b[:, at].tolist(), strict=True)
        return Finding(statement, tuple((x, y) for x, y in pairs if x or y), result)

    def depths(self, kind: str) -> list[int]:
        return sorted(meaning[1] for meaning in self.rows if meaning[0] == kind)


def _dtype(fmt: FloatFormat) -> Any:
    return encode([0.0], fmt).dtype


def facts(
    asked: Sequence[Probe], results: Sequence[NDArray[Any]], operand: FloatFormat, out: FloatFormat
) -> list[Finding]:
    """Return the findings of the single sums."""
    shown = _Shown(asked, results, out)
    found = [*_of_subnormals(shown, operand), *_of_products(shown, operand), *_bits(shown), *_range(shown, out)]
    for name, _ in _specials(operand):
        value = shown.value(name)
        if value is not None:
            code = shown.rows[(name,)][2]
            canonical = out.has_nan and code == out.nan
            what = "the canonical NaN" if canonical else "a NaN of its own" if np.isnan(value) else "no NaN"
            found.append(shown.finding(f"{name} gives {what}, {code:#x}.", name))
    return found


def _of_subnormals(shown: _Shown, operand: FloatFormat) -> Iterator[Finding]:
    words, exponent = {}, operand.emin - operand.fraction_bits + operand.emax - 1
    for which in _subnormals(operand):
        value = shown.value("subnormal operand", which)
        if value or shown.comes_out(exponent):
            words[which] = "kept" if value == 2.0**exponent else "flushed to zero" if value == 0 else "changed"
    if set(words.values()) == {"kept"}:
        yield shown.finding("Subnormal operands keep their values.", "subnormal operand", "first")
    elif set(words.values()) == {"flushed to zero"}:
        yield shown.finding("Subnormal operands are flushed to zero.", "subnormal operand", "first")
    else:
        for which, word in words.items():
            yield shown.finding(f"A subnormal number as the {which} factor is {word}.", "subnormal operand", which)


def _of_products(shown: _Shown, operand: FloatFormat) -> Iterator[Finding]:
    value, exponent = shown.value("exact product"), -2 * operand.fraction_bits
    if value is None or (value == 0 and not shown.comes_out(exponent)):
        return
    exact = 2.0**exponent
    word = (
        "kept: products are exact"
        if value == exact
        else "lost: products are rounded, or the sum has too few bits"
        if value == 0
        else f"rounded: the sum is {value:g}, exactly {exact:g}"
    )
    yield shown.finding(f"The last bit of a product is {word}.", "exact product")


def _bits(shown: _Shown) -> Iterator[Finding]:
    tried = shown.depths("beside")
    beside = [depth for depth in tried if shown.value("beside", depth) == 1 + 2.0**-depth]
    if not beside:
        return
    precise = max(beside)
    is_end = precise == max(tried)
    bits = f"at least {precise} fraction bits; smaller terms were not tried" if is_end else f"{precise} fraction bits"
    yield shown.finding(f"A sum of 1 keeps a term down to 2^-{precise}: {bits}.", "beside", precise)
    beneath = [depth for depth in shown.depths("beneath") if shown.value("beneath", depth) == 2.0**-depth]
    if beneath:
        deepest = max(beneath)
        end = "smaller terms were not tried" if deepest == max(tried) else f"that of 2^-{deepest + 1} does not"
        yield shown.finding(
            f"Of the first three products 1, 2^-{deepest}, -1 the small term comes out; {end}.", "beneath", deepest
        )
    last = ("rounding", precise, 1.0, 0.75)
    if last in shown.rows and not is_end:
        names = " or ".join(str(mode) for mode in _MODES if _agrees(shown, mode, precise)) or "no single mode"
        yield shown.finding(f"Sums of 1 and quarters of its last place round as {names} does.", *last)


def _agrees(shown: _Shown, mode: Rounding, fraction_bits: int) -> bool:
    like = FloatFormat("like", 8, min(fraction_bits, FP32.fraction_bits))
    seen = [meaning for meaning in shown.rows if meaning[0] == "rounding" and meaning[1] == fraction_bits]
    for _, _, sign, units in seen:
        exact = sign * (1 + units * 2.0**-fraction_bits)
        wanted = float(decode(encode([exact], like, rounding=mode), like)[0])
        if shown.value("rounding", fraction_bits, sign, units) != wanted:
            return False
    return bool(seen)


def _range(shown: _Shown, out: FloatFormat) -> Iterator[Finding]:
    powers = shown.depths("power")
    right = [each for each in powers if shown.value("power", each) == 2.0**each]
    if not right:
        return
    low, high = min(right), max(right)
    if low > powers[0]:
        # Above the smallest normal result, another format has ended ahead of it.
        kept, flushed = ": subnormal results are kept", ": subnormal products are flushed"
        end = kept if low < out.emin else flushed if low == out.emin else ""
        yield shown.finding(f"The smallest power of two that comes out is 2^{low}{end}.", "power", low)
    if high < powers[-1]:
        yield shown.finding(f"2^{high} is the largest power of two; 2^{high + 1} overflows.", "power", high + 1)
