"""`golden.grouped_sums` on exact integers: its specification in code, flags included."""

from __future__ import annotations

from collections.abc import Sequence

from golden.exact import Class, Value, number_value
from golden.exact_rounding import decode, decoded, round_value
from golden.flags import Flag
from golden.grouped_sums import GroupedSums
from golden.rounding import Rounding

__all__ = ["accumulate_groups"]

_NAN = Value(Class.QUIET_NAN)
_NONE = Flag(0)


def accumulate_groups(
    a: Sequence[int], b: Sequence[int], total: int, *, rule: GroupedSums, rounding: Rounding
) -> tuple[int, Flag]:
    """Return the code of a total to which groups of products of codes were added, and the flags.

    Raises
    ------
    TypeError, ValueError
        As `decode`, naming the argument.
    """
    x, y = [decoded(code, rule.operand, "a") for code in a], [decoded(code, rule.operand, "b") for code in b]
    decoded(total, rule.total, "initial")
    flags = _NONE
    for at in range(0, len(x), rule.group):
        group = slice(at, at + rule.group)
        total, raised = _joined(total, x[group], y[group], rule, rounding)
        flags |= raised
    return total, flags


def _joined(
    total: int, x: Sequence[Value], y: Sequence[Value], rule: GroupedSums, rounding: Rounding
) -> tuple[int, Flag]:
    flags = _NONE
    partial = Value(Class.FINITE)
    for factors in zip(x, y, strict=True):
        product, of_product = _product(*factors)
        partial, of_sum = _added(partial, product, Rounding.NEAREST_EVEN)
        flags |= of_product | of_sum
    if rule.rnd != "xct":
        mode = rounding if rule.rnd == "frm" else Rounding.TO_ODD
        code, raised = round_value(partial, rule.total, rounding=mode)
        partial = decode(code, rule.total)
        flags |= raised
    exact, of_sum = _added(decode(total, rule.total), partial, rounding)
    code, raised = round_value(exact, rule.total, rounding=rounding)
    return code, flags | of_sum | raised


def _product(x: Value, y: Value) -> tuple[Value, Flag]:
    signals = Class.SIGNALLING_NAN in (x.kind, y.kind)
    if x.is_nan or y.is_nan:
        return _NAN, Flag.INVALID if signals else _NONE
    sign = x.sign ^ y.sign
    if Class.INFINITE in (x.kind, y.kind):
        if x.is_zero or y.is_zero:
            return _NAN, Flag.INVALID
        return Value(Class.INFINITE, sign), _NONE
    return Value(Class.FINITE, sign, x.significand * y.significand, x.exponent + y.exponent), _NONE


def _added(x: Value, y: Value, rounding: Rounding) -> tuple[Value, Flag]:
    """Return the exact sum; a sum of zero is that of IEEE 754 in the mode."""
    if x.is_nan or y.is_nan:
        return _NAN, Flag.INVALID if Class.SIGNALLING_NAN in (x.kind, y.kind) else _NONE
    infinities = {value.sign for value in (x, y) if value.kind is Class.INFINITE}
    if len(infinities) == 2:
        return _NAN, Flag.INVALID
    if infinities:
        return Value(Class.INFINITE, infinities.pop()), _NONE
    if x.is_zero and y.is_zero and x.sign == y.sign:
        return x, _NONE
    return number_value(x.as_fraction() + y.as_fraction(), int(rounding is Rounding.DOWN)), _NONE
