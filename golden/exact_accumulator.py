"""Accumulators of other machines on exact integers and fractions: their specification in code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from golden.accumulator import Accumulator, FusedSum
from golden.exact import Class, Value, power_of_two
from golden.exact_rounding import decode, decoded, round_value
from golden.flags import Flag
from golden.formats import FP32, FloatFormat
from golden.rounding import Rounding

__all__ = ["accumulate"]

_NAN = Value(Class.QUIET_NAN)
_ZERO = Value(Class.FINITE)


class _Term(NamedTuple):
    """A term of a sum: its value, and the exponent that counts in the alignment (None: it takes no part)."""

    value: Value
    exponent: int | None


def accumulate(
    a: Sequence[int], b: Sequence[int], total: int, *, operand: FloatFormat, accumulator: Accumulator
) -> int:
    """Return the code of a total, in its format, to which products of codes were added, block by block.

    Raises
    ------
    TypeError, ValueError
        As `decode`, naming the argument.
    """
    machine = _Machine(accumulator, operand)
    x, y = [decoded(code, operand, "a") for code in a], [decoded(code, operand, "b") for code in b]
    outer = accumulator.outer
    start = _widened(decoded(total, outer, "initial"), outer)
    if not x:
        return total
    every = accumulator.promote_every
    if every is None:
        result = machine.run(x, y, start)
    else:
        result = start
        for at in range(0, len(x), every):
            partial = machine.run(x[at : at + every], y[at : at + every], _ZERO)
            result, _ = _rounded(_added([partial, result]), FusedSum(2))
    return accumulator.nan if result.is_nan else round_value(result, outer)[0]


class _Machine:
    def __init__(self, accumulator: Accumulator, operand: FloatFormat) -> None:
        self.rule, self.operand = accumulator, operand

    def run(self, x: Sequence[Value], y: Sequence[Value], total: Value) -> Value:
        size, depth = self.rule.block, self.rule.depth or self.rule.block
        for at in range(0, len(x), size):
            block = [self._product(*factors) for factors in zip(x[at : at + size], y[at : at + size], strict=True)]
            block += [self._product(_ZERO, _ZERO)] * (size - len(block))
            if at % depth == 0:
                total = self._flushed_input(total, self.rule.outer)
            total = self._join(block, total)
        return total

    def _flushed_input(self, value: Value, fmt: FloatFormat) -> Value:
        if (
            self.rule.flush == "none"
            or value.kind is not Class.FINITE
            or abs(value.as_fraction()) >= power_of_two(fmt.emin)
        ):
            return value
        return Value(Class.FINITE, value.sign if self.rule.flush == "signed" else 0)

    def _product(self, x: Value, y: Value) -> _Term:
        x, y = (self._flushed_input(factor, self.operand) for factor in (x, y))
        is_invalid = (x.kind is Class.INFINITE and y.is_zero) or (x.is_zero and y.kind is Class.INFINITE)
        if is_invalid or x.is_nan or y.is_nan:
            return _Term(_NAN, None)
        sign = (x.sign + y.sign) % 2
        if Class.INFINITE in (x.kind, y.kind):
            return _Term(Value(Class.INFINITE, sign), None)
        value = Value(Class.FINITE, sign, x.significand * y.significand, x.exponent + y.exponent)
        of_x, of_y = (self._exponent(factor, self.operand, self.rule.zero_exponent) for factor in (x, y))
        return _Term(value, None if of_x is None or of_y is None else of_x + of_y)

    @staticmethod
    def _exponent(value: Value, fmt: FloatFormat, of_zero: int | None) -> int | None:
        """Return the exponent of a decoded value: of its leading bit if normal, the smallest one if subnormal."""
        return of_zero if value.is_zero else value.exponent + fmt.fraction_bits

    def _join(self, block: list[_Term], total: Value) -> Value:
        if self.rule.products_overflow:
            result = _added([*(term.value for term in block), total])
            if result.kind is not Class.FINITE:
                return result
            block = [_overflowed(term) for term in block]
        terms = [block[at] for at in self.rule.order] or block
        for stage in self.rule.stages:
            terms = self._stage(terms, stage)
        join = self.rule.join
        if join.chain:
            return self._chain(terms, total, join)
        exponent = self.rule.zero_total_exponent if total.is_zero else _exponent_of(total)
        return self._sum([*terms, _Term(total, exponent)], join, with_total=True).value

    def _stage(self, terms: list[_Term], stage: FusedSum) -> list[_Term]:
        sums = len(terms) // stage.terms
        made = []
        for i in range(sums):
            group = terms[i::sums] if stage.interleaved else terms[i * stage.terms : (i + 1) * stage.terms]
            if stage.chain:
                value = self._chain(group, _ZERO, stage)
                made.append(_Term(value, _exponent_of(value)))
            else:
                made.append(self._sum(group, stage))
        return made

    def _chain(self, terms: list[_Term], total: Value, spec: FusedSum) -> Value:
        for term in terms:
            total = self._rounded(_added([term.value, total]), spec)
        return total

    def _sum(self, terms: list[_Term], spec: FusedSum, *, with_total: bool = False) -> _Term:
        exact = _added([term.value for term in terms])
        exponent = None
        if spec.fraction_bits is not None and exact.kind is Class.FINITE:
            exponent = max((term.exponent for term in terms if term.exponent is not None), default=FP32.emin)
            bits = [spec.fraction_bits] * len(terms)
            if with_total and self.rule.total_fraction_bits is not None:
                bits[-1] = self.rule.total_fraction_bits
            values = [term.value for term in terms]
            reach, last = self.rule.total_reach, terms[-1].exponent
            if with_total and reach is not None and last is not None and last < exponent - reach:
                values[-1] = _ZERO
            parts = (_cut(value, exponent - kept, spec.cut) for value, kept in zip(values, bits, strict=True))
            exact = _value(sum(parts, Fraction(0)))
        if spec.rounding is None:
            return _Term(exact, exponent)
        rounded = self._rounded(exact, spec)
        return _Term(rounded, _exponent_of(rounded))

    def _rounded(self, value: Value, spec: FusedSum) -> Value:
        rounded, is_tiny = _rounded(value, spec)
        if self.rule.flush == "none" or rounded.kind is not Class.FINITE:
            return rounded
        is_subnormal = abs(rounded.as_fraction()) < power_of_two(FP32.emin)
        if is_subnormal or (is_tiny and self.rule.flush == "signed"):
            return Value(Class.FINITE, rounded.sign)
        return rounded


def _value(number: Fraction) -> Value:
    return Value(Class.FINITE, int(number < 0), abs(number))


def _exponent_of(value: Value) -> int | None:
    """Return the exponent of a value of float32, or of one that is `_widened`; a zero has float32's smallest one."""
    if value.kind is not Class.FINITE:
        return None
    return FP32.emin if value.is_zero else value.exponent + FP32.fraction_bits


def _overflowed(term: _Term) -> _Term:
    if abs(term.value.as_fraction()) < 2**128:
        return term
    return _Term(Value(Class.INFINITE, term.value.sign), None)


def _added(values: Sequence[Value]) -> Value:
    """Return the exact sum; of zeros of one sign it is that zero, any other sum of 0 is +0."""
    infinities = {value.sign for value in values if value.kind is Class.INFINITE}
    if len(infinities) == 2 or any(value.is_nan for value in values):
        return _NAN
    if infinities:
        return Value(Class.INFINITE, infinities.pop())
    if all(value.is_zero and value.sign for value in values):
        return Value(Class.FINITE, 1)
    return _value(sum((value.as_fraction() for value in values), Fraction(0)))


def _cut(value: Value, digit: int, how: Rounding) -> Fraction:
    """Return a multiple of 2**digit."""
    unit = power_of_two(digit)
    quotient = value.as_fraction() / unit
    if how is Rounding.DOWN:
        count = math.floor(quotient)
    else:
        count = math.trunc(quotient)
        if how is Rounding.TO_ODD and count != quotient and count % 2 == 0:
            count += -1 if quotient < 0 else 1
    return count * unit


def _rounded(value: Value, spec: FusedSum) -> tuple[Value, bool]:
    """Round a sum once, and tell whether it is tiny after rounding; overflow gives infinity in every mode."""
    if value.kind is not Class.FINITE:
        return value, False
    if spec.rounding is None:
        raise ValueError("rounding: got None, must be a mode here")
    code, flags = round_value(value, spec.result, rounding=spec.rounding)
    is_tiny = Flag.UNDERFLOW in flags
    if Flag.OVERFLOW in flags:
        return Value(Class.INFINITE, value.sign), False
    rounded = decode(code, spec.result)
    if rounded.is_zero and spec.loses_sign:
        return _ZERO, is_tiny
    return _widened(rounded, spec.result), is_tiny


def _widened(value: Value, fmt: FloatFormat) -> Value:
    """Return a value with the fraction bits of float32."""
    fewer = FP32.fraction_bits - fmt.fraction_bits
    return Value(value.kind, value.sign, value.significand * 2**fewer, value.exponent - fewer)
