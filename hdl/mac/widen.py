"""The rank that widens narrow operands exactly, in front of a unit with a wider inner format."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.widen import Widen
from hdl.mac.parameters import MacParameters
from hdl.pipeline import rank

__all__ = ["WidenBeat", "Widening", "widened"]

#: A level that no unit has: its products are refused as unsupported.
_NO_LEVEL = 3


class WidenBeat(wiring.Component):
    """Widen the operands of a beat to the inner format. Combinational.

    A beat of an unsupported format gets a level that no unit has, and is therefore refused.

    Parameters
    ----------
    parameters : MacParameters
    beat, wide : StructLayout
        Layouts of the input, and of the input of the unit behind. ``a`` and ``b`` are one code or an array of codes.

    Ports
    -----
    i : beat, in
    o : wide, out
    """

    def __init__(self, parameters: MacParameters, beat: data.StructLayout, wide: data.StructLayout) -> None:
        self.parameters, self.is_array = parameters, isinstance(wide["a"].shape, data.ArrayLayout)
        super().__init__({"i": In(beat), "o": Out(wide)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o, parameters = self.i, self.o, self.parameters
        assert parameters.widened, "there is nothing to widen to"
        for name in ("a", "b"):
            words = []
            for number, code in enumerate(i[name] if self.is_array else [i[name]]):
                m.submodules[f"{name}_{number}"] = widen = Widen(
                    parameters.operands, parameters.widened, flushes=parameters.formats.flushes
                )
                m.d.comb += [widen.code.eq(code), widen.format.eq(i.format)]
                words.append(widen.o)
            m.d.comb += o[name].eq(Cat(words))
        is_there = i.format < len(parameters.operands) if len(i.format) else C(1, 1)
        m.d.comb += [
            o.level.eq(Mux(is_there, i.level, _NO_LEVEL)),
            *(o[name].eq(i[name]) for name in i.shape().members if name not in ("a", "b", "format", "level")),
        ]
        return m


class Widening(wiring.Component):
    """A rank of registers behind `WidenBeat`.

    Ports
    -----
    i : stream of beat, in
    o : stream of wide, out
    """

    def __init__(self, parameters: MacParameters, beat: data.StructLayout, wide: data.StructLayout) -> None:
        self.core = WidenBeat(parameters, beat, wide)
        super().__init__({"i": In(stream.Signature(beat)), "o": Out(stream.Signature(wide))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        enable = ~self.o.valid | self.o.ready
        m.d.comb += [
            core.i.eq(self.i.payload),
            self.i.ready.eq(enable),
            self.o.valid.eq(rank(m, "valid", self.i.valid, enable, reset=True)),
            self.o.payload.eq(rank(m, "beat", core.o, enable)),
        ]
        return m


def widened(
    m: Module, parameters: MacParameters, beats: Any, chunk: Value, wide: data.StructLayout
) -> tuple[Any, Value]:
    """Return a stream of beats with operands in the inner format, and their chunk length.

    Without an inner format, these are `beats` and `chunk`.

    Parameters
    ----------
    m : Module
    parameters : MacParameters
    beats : stream
        The input.
    chunk : Value
        The port.
    wide : StructLayout
        Layout of the input of the unit behind.
    """
    if not parameters.widened:
        return beats, chunk
    m.submodules.widening = widening = Widening(parameters, beats.payload.shape(), wide)
    m.d.comb += [
        widening.i.payload.eq(beats.payload),
        widening.i.valid.eq(beats.valid),
        beats.ready.eq(widening.i.ready),
    ]
    # The port may change once the last beat is in the rank, while the beat before it may still wait for its issue.
    return widening.o, rank(m, "widened_chunk", chunk, widening.i.ready)
