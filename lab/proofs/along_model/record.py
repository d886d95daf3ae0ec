"""A proof's record of every operation in flight: its kind, and the values that it must meet.

Values, flags and results are followed of one pair of registers, whichever that may be.
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

#: Results of one kind are numbered modulo more than there can be on their way.
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

    ``count`` products of the chunk that is ``open`` and has room for ``size``, 0 for any number; ``later`` if a chunk
    has ended since ``first``; ``kept`` if the port ``chunk`` never changed between 0 and another value in this chunk.
    """
    value = value_layout(parameters)
    bits = parameters.chunk_bits
    return data.StructLayout(
        {"partial": value, "total": value, "count": bits, "size": bits, "open": 1, "later": 1, "kept": 1, "level": 2}
    )


def record_layout(parameters: MacParameters) -> data.StructLayout:
    """Return the record of an operation.

    ``writes``, ``refused``
        It is there: as a step, or to give an error.
    ``is_product``, ``is_chain``, ``wide_total``, ``register``, ``format``, ``first``, ``last``, ``error``
        Of its beat; ``is_product`` is not set of a promotion.
    ``rounding``, ``random``, ``random_promotion``
        How it is rounded, and the promotion that it causes; only of a unit with several modes.
    ``starts``, ``ends``, ``is_first``, ``count``, ``held_size``, ``open``, ``later``
        Of the chunk: the product's effect on it, and the count before.
    ``port``, ``size``
        The port ``chunk`` in the cycle of the issue; how many products the chunk has room for.
    ``base``
        Flags of the chunk that is promoted.
    ``before``, ``given``
        Accumulator of the step; what the lane gives.
    ``total_before``, ``total_given``
        The same of the pending promotion.
    ``number``
        How many results of its kind there have been before its own.
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
    """A record, and what follows from it.

    Parameters
    ----------
    m : Module
    fields : View of record_layout
    pair : Value
        Which pair of registers the model follows.
    """

    def __init__(self, m: Module, fields: Any, pair: Value) -> None:
        self.fields = fields
        #: It is of the pair of registers that the model follows.
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
        #: Which register of its pair, and whether it is a refusal: the results of a kind keep their order.
        self.kind: Value = Cat(fields.refused, fields.register[0])
        self.prior: Value = fields.base | fields.before.flags
        self.flags: Value = fields.given.flags | self.prior

        #: The values after the step and after the promotion that is to come, in `value_layout`.
        self.after: Value = named(m, "after", Cat(fields.given.number, fields.given.its_class, self.flags))
        total = fields.total_given
        total_flags = total.flags | fields.total_before.flags | self.flags
        self.total_after: Value = named(m, "total_after", Cat(total.number, total.its_class, total_flags))
