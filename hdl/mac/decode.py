"""The part of decoding a beat that does not depend on operations in flight."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data

from hdl.cores.words import named
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error

__all__ = ["decode_control", "decoded_control"]

_KEPT = ("format", "register", "first", "last", "rounding")


def decoded_control(beat: data.StructLayout) -> dict[str, Any]:
    """Return the layout of a decoded beat, without its operands.

    ``format``, ``register``, ``first``, ``last``, and ``rounding`` if there is one
        As in the beat.
    ``is_chain``
        Level 0: no chunks. It and ``wide_total`` have a meaning only for a beat that is accepted.
    ``wide_total``
        The total is fp32.
    ``gives_result``
        The reduction ends, or the beat is refused.
    ``is_sound``, ``error``
        Whether the beat is accepted, and the reason if it is refused.
    """
    kept = {name: beat[name].shape for name in _KEPT if name in beat.members}
    return {**kept, "is_chain": 1, "wide_total": 1, "gives_result": 1, "is_sound": 1, "error": Error}


def decode_control(m: Module, parameters: MacParameters, beat: Any, wide_needs_even: Value) -> dict[str, Value]:
    """Decode a beat, except for its operands.

    Parameters
    ----------
    m : Module
    parameters : MacParameters
    beat : Value
        With ``format``, ``level``, ``register``, ``first``, ``last``.
    wide_needs_even : Value
        Whether a beat of this level with an fp32 total must name an even register.

    Returns
    -------
    dict of str to Value
        The fields of `decoded_control`.
    """
    wide_total = named(m, "wide_total", beat.level != 2 if parameters.has_fp32 else C(0, 1))
    supported = Cat(beat.level == level for level in parameters.levels).any()
    if len(beat.format):
        supported &= beat.format < len(parameters.operands)
    kept = {name: beat[name] for name in _KEPT if name in beat.shape().members}
    if "rounding" in kept:
        supported &= Cat(beat.rounding == mode.value for mode in parameters.formats.roundings).any()
    misaligned = wide_total & wide_needs_even & beat.register[0]
    error = named(m, "error", Mux(~supported, Error.UNSUPPORTED, Mux(misaligned, Error.ALIGNMENT, Error.NONE)))
    return {
        **kept,
        "is_chain": beat.level == 0 if 0 in parameters.levels else C(0, 1),
        "wide_total": wide_total,
        "gives_result": beat.last | (error != Error.NONE),
        "is_sound": error == Error.NONE,
        "error": error,
    }
