"""The events that a unit can count, and reductions that raise all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from golden import FP32, FloatFormat, encode
from golden.counts import COUNTED
from golden.exact_rounding import decode

__all__ = ["countable", "event_reductions"]

#: Products that may be needed for one event of narrow operands, whose values span little.
_MOST = 100
_WIDE = 16


def countable(operand: FloatFormat, level: int, inner: FloatFormat | None = None) -> set[str]:
    """Return the counters that a reduction of these operands can increment, for narrow ones with a few products.

    Parameters
    ----------
    operand : FloatFormat
    level : int
    inner : FloatFormat, optional
        The format to which operands are widened.
    """
    if inner or operand.width < _WIDE:
        return _countable_of_narrow(operand, level, inner or operand)
    always = set(COUNTED) - {"overflow", "underflow"}
    names = {f"products.{event}" for event in always}
    if level or 2 * operand.emax >= FP32.emax:
        names.add("products.overflow")
    if level or 2 * (operand.emin - operand.fraction_bits) < FP32.emin - FP32.fraction_bits:
        names.add("products.underflow")
    if level:
        names |= {f"promotions.{event}" for event in always}
        # A sum of two numbers of a format is never inexact where it is tiny.
        names |= {"promotions.overflow"} if level == 2 or operand.emax >= FP32.emax else set()
    return names


def event_reductions(
    operand: FloatFormat, level: int, inner: FloatFormat | None = None
) -> Iterable[tuple[list[int], list[int], int]]:
    """Yield factors and chunk lengths that together raise every event of `countable`, in any mode."""
    if inner or operand.width < _WIDE:
        yield from _events_of_narrow(operand, level, inner or operand)
        return
    one, sign = operand.one, operand.sign_mask
    largest, least, odd = operand.max_finite, operand.min_subnormal, operand.one | 1
    chunks = (0, 1) if level else (0,)
    for chunk in chunks:
        # Overflow, and an infinity less itself; 0 times infinity; a small number lost against a large one.
        yield [largest, largest], [largest, largest], chunk
        yield [largest, largest], [one, one], chunk
        # Beyond the largest number of the other sign.
        yield [largest, largest], [one, largest | sign], chunk
        yield [operand.inf, operand.inf | sign], [one, one], chunk
        yield [0, one], [operand.inf, one], chunk
        yield [one, least, least | sign], [one, one, one], chunk
        yield [one, least, least | sign], [one, least, least], chunk
        # Less than an ulp below a power of two, and more than its half: two codes below.
        places = (operand if level else FP32).fraction_bits + 1
        factors = [
            int(encode(value, operand)) for value in (-1.875 * 2.0 ** -(places // 2), 2.0 ** -(places - places // 2))
        ]
        yield [one, factors[0]], [one, factors[1]], chunk
        # Inexact, and tiny: the odd subnormal times almost 1.
        yield [odd, odd], [odd, odd], chunk
        yield [operand.min_normal | 1, operand.min_normal | 1], [operand.min_normal | 1, odd], chunk


def _countable_of_narrow(operand: FloatFormat, level: int, inner: FloatFormat) -> set[str]:
    names = {"products.steps"} | ({"promotions.steps"} if level else set())
    for chunk in (0, 1) if level else (0,):
        kind = "promotions" if chunk else "products"
        # Formats with infinities have signalling NaNs, too.
        names |= {f"{kind}.invalid"} if operand.has_inf else set()
        names |= {f"{kind}.{event}" for event in ("inexact", "swamped") if any(_losses(operand, level, inner, chunk))}
        names |= {f"{kind}.overflow"} if any(_overflows(operand, level, inner, chunk)) else set()
    least = _value(operand.min_subnormal, operand) ** 2
    added = inner if level else FP32
    return names | ({"products.underflow"} if least < _value(added.min_subnormal, added) else set())


def _events_of_narrow(
    operand: FloatFormat, level: int, inner: FloatFormat
) -> Iterator[tuple[list[int], list[int], int]]:
    one, sign, least = operand.one, operand.sign_mask, operand.min_subnormal
    for chunk in (0, 1) if level else (0,):
        if operand.has_inf:
            yield [operand.inf, operand.inf | sign], [one, one], chunk
            yield [0, one], [operand.inf, one], chunk
        yield [least, least], [least, least], chunk
        for a, b in (*_losses(operand, level, inner, chunk), *_overflows(operand, level, inner, chunk)):
            yield a, b, chunk


def _losses(operand: FloatFormat, level: int, inner: FloatFormat, chunk: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield sums that grow until half an ulp is at least a small product, which is then added and subtracted.

    In every mode, one of the two leaves the sum unchanged.
    """
    added, counted_in = _formats(level, inner, chunk)
    least = operand.min_subnormal
    for other in (least, operand.one):
        small = _value(least, operand) * _value(other, operand)
        for large in (operand.one, operand.max_finite):
            product = _value(large, operand) ** 2
            times = int(small * 2**counted_in.precision / product) + 2
            is_kept = product <= _value(added.max_finite, added) and small >= _value(added.min_subnormal, added)
            if times > _MOST or (times + 1) * product > _value(counted_in.max_finite, counted_in):
                continue
            if is_kept or not chunk:
                yield [*[large] * times, least, least | operand.sign_mask], [*[large] * times, other, other]
                break


def _overflows(
    operand: FloatFormat, level: int, inner: FloatFormat, chunk: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield sums of the largest products, which overflow the format in every mode."""
    added, counted_in = _formats(level, inner, chunk)
    for other in (operand.max_finite, operand.one):
        product = _value(operand.max_finite, operand) * _value(other, operand)
        times = int(Fraction(2) ** (counted_in.emax + 1) / product) + 2
        if times <= _MOST and (not chunk or product <= _value(added.max_finite, added)):
            yield [operand.max_finite] * times, [other] * times


def _formats(level: int, inner: FloatFormat, chunk: int) -> tuple[FloatFormat, FloatFormat]:
    """Return the format in which products are added, and the format of the tested sums."""
    added = inner if level else FP32
    return added, FP32 if chunk and level == 1 else added


def _value(code: int, fmt: FloatFormat) -> Fraction:
    return decode(code, fmt).as_fraction()
