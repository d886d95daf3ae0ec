"""The payloads of the SIMD multiply-accumulate unit's streams."""

from __future__ import annotations

from typing import Any

from amaranth.lib import data

from hdl.cores.result import flags_layout
from hdl.cores.words import select_width
from hdl.mac.ports import Error, rounding_fields
from hdl.vector.parameters import VectorParameters

__all__ = ["RESULT_WIDTH", "vector_beat_layout", "vector_result_layout"]

#: Bits of a word of a result: one fp32, or two codes of at most 16 bits.
RESULT_WIDTH = 32


def vector_beat_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return the input of the unit, least significant first.

    ``a``
        First factors: one code of the operand format for each lane, in the low bits. The first lane is the least
        significant. Level 0 uses only the first half of the lanes.
    ``b``
        Second factors.
    ``format``
        Index into the operand formats (no bits if there is one).
    ``level``
        Precision level 0, 1 or 2.
    ``register``
        The row of accumulators; even at level 1, where totals take two rows.
    ``first``
        Start a reduction in every lane, as in `hdl.mac.ports.product_beat_layout`.
    ``last``
        End the reduction in every lane.
    ``rounding``
        The mode in every lane, as in `hdl.mac.ports.rounding_fields`.
    ``random``, ``random_promotion``
        Random numbers for the steps and for the promotions that they cause, one for each lane, as for the factors.
    """
    codes = data.ArrayLayout(parameters.code_width, parameters.lanes)
    return data.StructLayout(
        {
            "a": codes,
            "b": codes,
            "format": select_width(len(parameters.operands)),
            "level": 2,
            "register": parameters.register_width,
            "first": 1,
            "last": 1,
            **rounding_fields(parameters, parameters.lanes),
        }
    )


def vector_result_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return the output of the unit, least significant first.

    ``result``
        ``lanes / 2`` words of 32 bits; see the table in `hdl.VectorMac`.
    ``flags``
        One set for each lane: the OR of the flags of all steps and promotions of the reduction. Absent in a unit
        without flags.
    ``error``
        An `Error`; results, flags and part are 0 if it is not NONE.
    ``register``
        The row of the results, as in the beat.
    ``part``
        1 in the second beat of a result of level 1.
    """
    fields: dict[str, Any] = {"result": data.ArrayLayout(RESULT_WIDTH, parameters.lanes // 2)}
    if parameters.flags:
        fields["flags"] = data.ArrayLayout(flags_layout(), parameters.lanes)
    return data.StructLayout(fields | {"error": Error, "register": parameters.register_width, "part": 1})
