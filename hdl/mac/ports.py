"""The payloads of the multiply-accumulate unit's streams."""

from __future__ import annotations

from typing import Any

from amaranth.lib import data, enum

from hdl.cores.result import flags_layout
from hdl.cores.words import select_width
from hdl.mac.parameters import MacParameters

__all__ = ["Error", "product_beat_layout", "result_beat_layout", "rounding_fields"]


class Error(enum.Enum, shape=2):  # type: ignore[call-arg]  # Amaranth's metaclass takes it
    """The reason for refusing a product. A refused product changes nothing."""

    NONE = 0
    #: fp32 (level 0, or the outer format of level 1) in an odd register: a pair starts at an even one.
    ALIGNMENT = 1
    #: A format, level or rounding mode (behind AXI4-Stream, also a register) for which the unit was not built.
    UNSUPPORTED = 2


def rounding_fields(parameters: MacParameters, lanes: int | None = None) -> dict[str, Any]:
    """Return the layout of the rounding fields of products; often there are none.

    ``rounding``
        Code of the mode (NUMERICS section 9) of a product's step, and of the promotion of a chunk that it ends. Absent
        with a single mode.
    ``random``
        The random number of the step, `random_bits` bits (NUMERICS section 10). Absent unless ``stochastic`` is among
        the modes.
    ``random_promotion``
        The random number of the promotion. Also absent in a unit without chunks.

    Parameters
    ----------
    parameters : MacParameters
    lanes : int, optional
        Number of lanes, if several share a mode; each has separate random numbers.
    """
    shapes = {name: field.shape for name, field in parameters.formats.controls}
    if "random" in shapes:
        numbers = data.ArrayLayout(shapes["random"], lanes) if lanes else shapes["random"]
        shapes |= {"random": numbers} | ({"random_promotion": numbers} if parameters.has_chunks else {})
    return shapes


def product_beat_layout(parameters: MacParameters) -> data.StructLayout:
    """Return the input of the unit, least significant first.

    ``a``
        First factor: a code of the operand format, in the low bits.
    ``b``
        Second factor.
    ``format``
        Index into the operand formats (no bits if there is one).
    ``level``
        Precision level 0, 1 or 2.
    ``register``
        The accumulator; even at levels 0 and 1.
    ``first``
        Start a new reduction from +0; otherwise continue from the register's value.
    ``last``
        End the reduction: the result leaves. The register keeps it, so a product without ``first`` continues from
        there.
    ``rounding``, ``random``, ``random_promotion``
        The fields of `rounding_fields`, if there are any.
    """
    return data.StructLayout(
        {
            "a": parameters.code_width,
            "b": parameters.code_width,
            "format": select_width(len(parameters.operands)),
            "level": 2,
            "register": parameters.register_width,
            "first": 1,
            "last": 1,
            **rounding_fields(parameters),
        }
    )


def result_beat_layout(parameters: MacParameters) -> data.StructLayout:
    """Return the output of the unit, least significant first.

    ``result``
        Code of the outer format, in the low bits: fp32 at levels 0 and 1, the operand format at level 2.
    ``flags``
        The OR of the flags of all steps and promotions of the reduction; absent in a unit without flags.
    ``error``
        An `Error`; result and flags are 0 if it is not NONE.
    ``register``
        The accumulator of the result.
    """
    fields: dict[str, Any] = {"result": parameters.formats.accumulator_width}
    if parameters.flags:
        fields["flags"] = flags_layout()
    return data.StructLayout(fields | {"error": Error, "register": parameters.register_width})
