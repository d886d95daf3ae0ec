"""The payloads of the streams of an array of lanes."""

from __future__ import annotations

from typing import Any

from amaranth.lib import data

from hdl.cores.result import flags_layout
from hdl.cores.words import select_width
from hdl.mac.ports import Error, rounding_fields
from hdl.matrix.parameters import MatrixParameters

__all__ = ["initial_fields", "matrix_beat_layout", "matrix_result_layout", "result_width"]


def matrix_beat_layout(parameters: MatrixParameters) -> data.StructLayout:
    """Return the input of the unit, least significant first.

    ``a``
        First factors: one code of the operand format for each row, in the low bits. The first row is the least
        significant.
    ``b``
        Second factors: one code for each column.
    ``format``
        Index into the operand formats (no bits if there is one).
    ``level``
        Precision level 0, 1 or 2.
    ``register``
        The tile: any of them at every level.
    ``first``
        Start a reduction in every lane, as in `hdl.mac.ports.product_beat_layout`.
    ``last``
        End the reduction in every lane.
    ``rounding``
        The mode in every lane, as in `hdl.mac.ports.rounding_fields`.
    ``initial``, ``loads``, ``row``
        Only with initial values. If ``loads`` is 1, the lanes of ``row`` start a reduction from ``initial``, one code
        of the outer format for each column, in the low bits; ``a``, ``b``, ``first`` and ``last`` count for nothing.
        ``row`` must be below `rows`: otherwise no lane is loaded, but the tile's chunk ends.
    """
    initial: dict[str, Any] = {}
    if parameters.initial:
        codes = data.ArrayLayout(parameters.formats.accumulator_width, parameters.columns)
        initial = {"initial": codes, **initial_fields(parameters)}
    return data.StructLayout(
        {
            "a": data.ArrayLayout(parameters.code_width, parameters.rows),
            "b": data.ArrayLayout(parameters.code_width, parameters.columns),
            "format": select_width(len(parameters.operands)),
            "level": 2,
            "register": parameters.register_width,
            "first": 1,
            "last": 1,
            **rounding_fields(parameters),
            **initial,
        }
    )


def initial_fields(parameters: MatrixParameters) -> dict[str, Any]:
    """Return the fields of a beat, or of its operation, that say which row of a tile gets initial values, if any.

    ``loads``
        It gives initial values instead of products.
    ``row``
        The row that gets them (no bits if there is one).
    """
    return {"loads": 1, "row": select_width(parameters.rows)} if parameters.initial else {}


def matrix_result_layout(parameters: MatrixParameters) -> data.StructLayout:
    """Return the output of the unit, least significant first: one row of a tile.

    ``result``
        One code of the outer format for each column, in the low bits: fp32 at levels 0 and 1, the operand format at
        level 2. The first column is the least significant.
    ``flags``
        One set for each column: the OR of the flags of all steps and promotions of the lane's reduction. Absent in a
        unit without flags.
    ``error``
        An `Error`; results, flags and row are 0 if it is not NONE.
    ``register``
        The tile.
    ``row``
        The row of the tile (no bits if there is one).
    ``last_row``
        Nothing of this tile follows: it is the last row, or a refusal.
    """
    fields: dict[str, Any] = {"result": data.ArrayLayout(parameters.formats.accumulator_width, parameters.columns)}
    if parameters.flags:
        fields["flags"] = data.ArrayLayout(flags_layout(), parameters.columns)
    return data.StructLayout(
        fields
        | {
            "error": Error,
            "register": parameters.register_width,
            "row": select_width(parameters.rows),
            "last_row": 1,
        }
    )


def result_width(parameters: MatrixParameters) -> int:
    """Return the bits of a code of an accumulator, and of its flags if there are any."""
    return parameters.formats.accumulator_width + (flags_layout().size if parameters.flags else 0)
