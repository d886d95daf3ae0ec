"""An operation of the unit, and its operands, against the model's record of the operation."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Mux, Value

from hdl.cores.words import choose
from hdl.mac.lane import operand_layout
from hdl.mac.parameters import MacParameters
from lab.proofs.along_model.record import Record

__all__ = ["agrees", "plain"]

_ROUNDING = ("rounding", "random", "random_promotion")


def plain(parameters: MacParameters, index: Value, code: Value) -> Value:
    """Return a code of one of the formats as an operand that enters: the top fraction bits stand at one place."""
    layout = operand_layout(parameters.formats)
    width = layout["fraction"].width
    codes = []
    for fmt in parameters.operands:
        fraction, field = code[: fmt.fraction_bits], code[fmt.fraction_bits : fmt.width - 1]
        parts = {
            "fraction": Cat(C(0, width - fmt.fraction_bits), fraction),
            "field": Cat(field, C(0, layout["field"].width - fmt.exponent_bits)),
            "sign": code[fmt.width - 1],
            "is_normal": field != 0,
        }
        codes.append(Cat(parts.get(name, C(0, 1)) for name, _ in layout))
    return choose(index, codes)


def agrees(operation: Any, flags: Any, record: Record, *, is_settled: bool, has_flags: bool, wide_format: int) -> Value:
    """Return whether an operation of the unit matches a record.

    Parameters
    ----------
    operation, flags : View of operation_layout, of flags_layout
        The flags that were raised on it.
    record : Record
    is_settled : bool
        Whether its effect on its chunk is already known.
    has_flags : bool
        Whether the flags of its accumulator have joined its own.
    wide_format : int
        Index of fp32 among the formats of accumulators.
    """
    fields = record.fields
    is_chunk = record.counts
    fresh = record.fresh if is_settled else Mux(is_chunk, fields.first, record.fresh)
    pending = record.is_pending if is_settled else C(0, 1)
    same_step = (
        (operation.register == fields.register)
        & (operation.format == fields.format)
        & (operation.accumulator_format == Mux(record.wide, wide_format, fields.format))
        & (operation.wide == record.wide)
        & (operation.is_product == fields.is_product)
        & (operation.partial == is_chunk)
        & (operation.fresh == fresh)
        & (operation.last == fields.last)
        & (~record.is_followed | (flags.as_value() == (record.prior if has_flags else fields.base)))
        & (~is_chunk | (operation.wide_total == fields.wide_total))
        & (operation.fresh_total == (is_chunk & fields.is_first if is_settled else 0))
        & _is_rounded_alike(operation, fields)
    )
    error = Cat(operation.error)
    return (
        (operation.writes == fields.writes)
        & (operation.promote == pending)
        & (operation.writes | ~(operation.is_product | operation.partial))
        & (error == Mux(fields.refused, fields.error, 0))
        & (~fields.refused | (operation.register == fields.register))
        & (~fields.writes | same_step)
    )


def _is_rounded_alike(operation: Any, fields: Any) -> Value:
    """Return whether the modes and random numbers match the record; a promotion causes no further one."""
    same: Value = C(1, 1)
    for name in _ROUNDING:
        if name in fields.shape().members:
            is_free = ~fields.is_product if name == "random_promotion" else C(0, 1)
            same &= (Cat(operation[name]) == fields[name]) | is_free
    return same
