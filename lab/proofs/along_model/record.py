"""A proof's record of every operation in flight: its kind, and the values that it must meet.

The model follows the values, flags and results of one pair of registers; it may be any pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Module, Mux, Value
from amaranth.lib import data

from hdl.cores.words import named, select_width
from hdl.mac.lane import number_layout, operand_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import rounding_fields
from lab.proofs.unknown_step import CLASS_WIDTH, FLAGS_WIDTH

__all__ = [
    "NUMBER_BITS",
    "Condition",
    "Record",
    "chosen",
    "given_layout",
    "model_layout",
    "record_layout",
    "value_layout",
]

#: Numbers of results wrap at a power of two; fewer results of one kind can be on their way.
NUMBER_BITS = 6
#: A claim and its name.
Condition = tuple[str, Value]


def value_layout(parameters: MacParameters) -> data.StructLayout:
    """Return an accumulator: its number, and its class and flags, which a register holds one cycle later."""
    return data.StructLayout(
        {"number": number_layout(parameters.formats).size, "its_class": CLASS_WIDTH, "flags": FLAGS_WIDTH}
    )


def given_layout(parameters: MacParameters) -> data.StructLayout:
    """Return all that a lane gives for one operation."""
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


def model_layout(parameters: MacParameters) -> data.StructLayout:
    """Return the sequential model's state of a register; ``total`` is the total of level 2, and a pair has another.

    If a chunk is ``open``, it has ``count`` products so far and room for ``size`` (0: any number). ``later`` is set if
    a chunk has ended since ``first``; ``kept`` if the port ``chunk`` never changed between 0 and another value in this
    chunk.
    """
    value = value_layout(parameters)
    bits = parameters.chunk_bits
    return data.StructLayout(
        {"partial": value, "total": value, "count": bits, "size": bits, "open": 1, "later": 1, "kept": 1, "level": 2}
    )


def record_layout(parameters: MacParameters) -> data.StructLayout:
    """Return the record of an operation.

    ``writes``, ``refused``
        There is an operation: a step, or one that gives an error.
    ``is_product``, ``is_chain``, ``wide_total``, ``register``, ``format``, ``first``, ``last``, ``error``
        Of its beat; a promotion does not have ``is_product``.
    ``rounding``, ``random``, ``random_promotion``
        The rounding of the operation and of the promotion that it causes; only in a unit with several modes.
    ``starts``, ``ends``, ``is_first``, ``count``, ``held_size``, ``open``, ``later``
        Of the chunk: the product's effect on it, and the count before.
    ``port``, ``size``
        The port ``chunk`` in the cycle of the issue; the number of products for which the chunk has room.
    ``base``
        Flags of the chunk that is promoted.
    ``before``, ``given``
        Accumulator of the step; result of the lane.
    ``total_before``, ``total_given``
        The same for the pending promotion.
    ``number``
        Number of earlier results of the same kind.
    """
    value, given = value_layout(parameters), given_layout(parameters)
    bits = ("writes", "refused", "is_product", "is_chain", "wide_total", "first", "last", "starts", "ends", "is_first")
    return data.StructLayout(
        {
            **dict.fromkeys(bits, 1),
            "register": parameters.register_width,
            "format": select_width(len(parameters.operands)),
            "error": 2,
            **dict.fromkeys(("count", "held_size", "port", "size"), parameters.chunk_bits),
            "open": 1,
            "later": 1,
            **rounding_fields(parameters),
            "base": FLAGS_WIDTH,
            "before": value,
            "given": given,
            "total_before": value,
            "total_given": given,
            "number": NUMBER_BITS,
        }
    )


def chosen(words: Sequence[Any], index: Value) -> Value:
    """Return the word at an index."""
    word: Value = Value.cast(words[0])
    for place, other in enumerate(words[1:], 1):
        word = Mux(index == place, other, word)
    return word


class Record:
    """A record, and values derived from it.

    Parameters
    ----------
    m : Module
    fields : View of record_layout
    pair : Value
        The pair of registers that the model follows.
    """

    def __init__(self, m: Module, fields: Any, pair: Value) -> None:
        self.fields = fields
        #: It belongs to the pair of registers that the model follows.
        self.is_followed: Value = fields.register[1:] == pair
        self.counts: Value = fields.writes & fields.is_product & ~fields.is_chain
        self.is_sound_product: Value = fields.writes & fields.is_product
        self.is_promotion: Value = fields.writes & ~fields.is_product
        self.is_chain: Value = self.is_sound_product & fields.is_chain
        #: It will come back as a promotion.
        self.is_pending: Value = self.counts & fields.ends
        #: Its accumulator is an fp32 pair.
        self.wide: Value = Mux(fields.is_product, fields.is_chain, fields.wide_total)
        self.fresh: Value = Mux(fields.is_product, Mux(fields.is_chain, fields.first, fields.starts), fields.is_first)
        #: It leaves the pipeline as a result.
        self.is_result: Value = fields.refused | fields.writes & fields.last & (~fields.is_product | fields.is_chain)
        #: The register within its pair, and whether it is a refusal: the results of a kind keep their order.
        self.kind: Value = Cat(fields.refused, fields.register[0])
        self.prior: Value = fields.base | fields.before.flags
        self.flags: Value = fields.given.flags | self.prior

        #: The values after the step and after the promotion that is to come, in `value_layout`.
        self.after: Value = named(m, "after", Cat(fields.given.number, fields.given.its_class, self.flags))
        total = fields.total_given
        total_flags = total.flags | fields.total_before.flags | self.flags
        self.total_after: Value = named(m, "total_after", Cat(total.number, total.its_class, total_flags))
