"""The rank in front of a unit whose operands are narrower than what it multiplies: it widens them, exactly."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream

from hdl.cores.widen import Widen
from hdl.mac.parameters import MacParameters
from hdl.pipeline import rank

__all__ = ["widened"]

#: A level that no unit has: its products are refused as unsupported.
_NO_LEVEL = 3


def widened(m: Module, parameters: MacParameters, beats: Any, layout: data.StructLayout) -> Any:
    """Return a stream of beats with operands in the inner format; the stream itself if there is none.

    A beat of a format for which the unit was not built gets a level that no unit has, and is refused for that.

    Parameters
    ----------
    m : Module
    parameters : MacParameters
    beats : stream
        Of what comes in.
    layout : StructLayout
        Of what the unit behind takes.
    """
    if not parameters.inner:
        return beats
    taken, beat = stream.Signature(layout).create(path=("widened",)), beats.payload
    wide: Any = Signal(layout, name="wide")
    enable = ~taken.valid | taken.ready
    for name in ("a", "b"):
        codes = beat[name] if isinstance(layout[name].shape, data.ArrayLayout) else [beat[name]]
        words = []
        for number, code in enumerate(codes):
            m.submodules[f"widen_{name}_{number}"] = widen = Widen(parameters.operands, parameters.inner)
            m.d.comb += [widen.code.eq(code), widen.format.eq(beat.format)]
            words.append(widen.o)
        m.d.comb += wide[name].eq(Cat(words))
    is_there = beat.format < len(parameters.operands) if len(beat.format) else C(1, 1)
    m.d.comb += [
        wide.level.eq(Mux(is_there, beat.level, _NO_LEVEL)),
        *(wide[name].eq(beat[name]) for name in ("register", "first", "last")),
        beats.ready.eq(enable),
        taken.valid.eq(rank(m, "widened_valid", beats.valid, enable, reset=True)),
        taken.payload.eq(rank(m, "widened_beat", wide, enable)),
    ]
    return taken
