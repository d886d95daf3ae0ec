"""What travels beside the data of a step through the pipeline."""

from __future__ import annotations

from amaranth.lib import data

from hdl.cores.result import flags_layout
from hdl.cores.words import select_width
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error

__all__ = ["operation_layout"]


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
