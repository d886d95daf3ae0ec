"""The operation: control that travels through the pipeline beside the data of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from amaranth import Module, Signal, Value
from amaranth.lib import data

from hdl.cores.result import flags_layout
from hdl.cores.words import select_width
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error

__all__ = ["carry", "operation_layout"]


def operation_layout(parameters: MacParameters) -> data.StructLayout:
    """Return the fields of an operation: one step, be it a product or the promotion of a chunk.

    ``register``, ``format``
        As in the product.
    ``accumulator_format``
        Index of the format of the accumulator and the result.
    ``wide``
        The accumulator is fp32, a pair of registers.
    ``is_product``
        Not a promotion.
    ``partial``
        The accumulator is the partial sum of a chunk, not the total.
    ``fresh``
        The accumulator is +0, whatever the register holds.
    ``promote``
        The chunk ends here: the result comes back as the product ``partial * 1.0`` to be added to the total.
    ``fresh_total``, ``wide_total``
        ``fresh`` and ``wide`` of that promotion.
    ``last``
        The total after this operation, or after its promotion, leaves as a result.
    ``flags``
        What the operations before it on the same value raised.
    ``error``
        The product was refused; the operation changes nothing.
    ``writes``
        It is there, and not refused.
    """
    return data.StructLayout(
        {
            "register": parameters.register_width,
            "format": select_width(len(parameters.operands)),
            "accumulator_format": select_width(len(parameters.accumulators)),
            "wide": 1,
            "is_product": 1,
            "partial": 1,
            "fresh": 1,
            "promote": 1,
            "fresh_total": 1,
            "wide_total": 1,
            "last": 1,
            "flags": flags_layout(),
            "error": Error,
            "writes": 1,
        }
    )


def carry(
    m: Module, issued: Any, in_flight: Sequence[Any], settle: Callable[[int, Any], dict[str, Value]]
) -> list[Any]:
    """Return the operation as issued and behind each rank: what its number of ranks has found out joins it there.

    Parameters
    ----------
    m : Module
    issued : Value
        The operation as issued, of any layout.
    in_flight : sequence of Signal
        To be driven with what stands behind each rank.
    settle : function
        Gives, of a position (ranks behind the issue) and the operation there, the fields that are known from there on.
    """
    layout = issued.shape()
    operations = []
    current: Any = issued
    for position, behind in enumerate([None, *in_flight]):
        if changes := settle(position, current):
            changed = Signal(layout, name=f"operation_{position}_completed")
            m.d.comb += changed.eq(current)
            m.d.comb += [changed[name].eq(value) for name, value in changes.items()]
            current = changed
        operations.append(current)
        if position:
            m.d.comb += behind.eq(current)
        if position < len(in_flight):
            register = Signal(layout, name=f"operation_{position + 1}")
            m.d.sync += register.eq(current)
            current = register
    return operations
