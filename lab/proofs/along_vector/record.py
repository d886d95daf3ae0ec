"""A proof's record of every operation in flight, and of every promotion that waits.

The model follows the values of one *element*: one row and one lane, which may be any. The promotion of an odd lane to
fp32 takes place in the even lane beside it, in the next row.
"""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data

from hdl.cores.words import named, select_width
from hdl.mac.lane import number_layout, operand_layout
from hdl.vector.parameters import VectorParameters
from lab.proofs.along_model.record import NUMBER_BITS, value_layout
from lab.proofs.unknown_step import CLASS_WIDTH, FLAGS_WIDTH

__all__ = ["Record", "given_layout", "pending_layout", "record_layout", "total_layout"]


def given_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return all that a lane gives for one operation; a lane of 16 bits gives only the low bits of its values."""
    formats = parameters.formats
    return data.StructLayout(
        {
            "number": number_layout(formats).size,
            "its_class": CLASS_WIDTH,
            "flags": FLAGS_WIDTH,
            "code": formats.accumulator_width,
            "promoted": operand_layout(formats).size,
        }
    )


def total_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return a total: whether it is there (nothing else was written in its place), whether it is fp32, its value."""
    return data.StructLayout({"live": 1, "wide": 1, "value": value_layout(parameters)})


def _common(parameters: VectorParameters) -> dict[str, Any]:
    value = value_layout(parameters)
    return {
        "wide_total": 1,
        "is_first": 1,
        "last": 1,
        "format": select_width(len(parameters.operands)),
        "total_before": value,
        "total_given": given_layout(parameters),
        "number": NUMBER_BITS,
    }


def record_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return the record of an operation.

    ``product``, ``promotion``, ``refused``
        It is a product of the element's row, a promotion of one of that row's chunks, or a refusal that names the row.
    ``is_chain``, ``wide_total``, ``format``, ``last``, ``error``
        Of its beat.
    ``starts``, ``ends``, ``is_first``
        The product's effect on its chunk, and whether it is the first chunk; a chain starts at its first product.
    ``base``
        Flags of the chunk that is promoted.
    ``before``, ``given``
        Accumulator of the step; result of the lane.
    ``total_before``, ``total_given``
        The same for the pending promotion.
    ``number``
        Number of earlier results of the same kind.
    """
    bits = ("product", "promotion", "refused", "is_chain", "starts", "ends")
    return data.StructLayout(
        {
            **dict.fromkeys(bits, 1),
            "error": 2,
            "base": FLAGS_WIDTH,
            "before": value_layout(parameters),
            "given": given_layout(parameters),
            **_common(parameters),
        }
    )


def pending_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return the record of a promotion that waits.

    ``is_followed``
        It is of the element's row.
    ``promoted``, ``flags``
        The value of the chunk, and the flags that were raised on it.

    The others are as in `record_layout`.
    """
    operand = operand_layout(parameters.formats).size
    return data.StructLayout({"is_followed": 1, "promoted": operand, "flags": FLAGS_WIDTH, **_common(parameters)})


class Record:
    """A record, and values derived from it.

    Parameters
    ----------
    m : Module
    fields : View of record_layout
    is_odd : bool
        Of the element's lane.
    """

    def __init__(self, m: Module, fields: Any, *, is_odd: bool) -> None:
        self.fields = fields
        self.is_chunk: Value = fields.product & ~fields.is_chain
        #: A step of the element; an odd lane has no steps of level 0.
        self.is_step: Value = fields.promotion | (self.is_chunk if is_odd else fields.product)
        self.is_pending: Value = self.is_chunk & fields.ends
        #: Its accumulator is fp32.
        self.wide: Value = Mux(fields.promotion, fields.wide_total, fields.is_chain)
        self.fresh: Value = Mux(fields.promotion, fields.is_first, fields.starts)
        #: It leaves the pipeline as a result of the element.
        self.is_result: Value = fields.last & (fields.promotion | (fields.product & fields.is_chain & C(not is_odd, 1)))
        self.prior: Value = fields.base | fields.before.flags
        self.flags: Value = fields.given.flags | self.prior
        #: The value after the step, in `value_layout`.
        self.after: Value = named(m, "after", Cat(fields.given.number, fields.given.its_class, self.flags))
        self.total_after: Value = total_after(m, fields, self.flags)


def total_after(m: Module, fields: Any, flags: Value) -> Value:
    """Return the value after the promotion of a chunk on which these flags were raised."""
    total = fields.total_given
    return named(m, "total_after", Cat(total.number, total.its_class, total.flags | fields.total_before.flags | flags))
