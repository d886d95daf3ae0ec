"""The format converter: a pipelined stream unit around the conversion cores."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.conversion import ConversionRound, conversion_shifts
from hdl.cores.result import flags_layout
from hdl.pipeline import check_flags, check_stages, rank

__all__ = ["FloatConverter"]


class FloatConverter(wiring.Component):
    """Convert a stream of codes from one format to another (NUMERICS section 3).

    One conversion enters and one leaves in every cycle; the result follows its code after `latency` cycles. While a
    result is refused, everything stands still.

    Parameters
    ----------
    source, destination : FloatFormat
    stages : int, optional
        Register ranks, 1 to 3; unless given, 1 for an exact conversion and 2 for one that rounds. 1: at the output.
        2: also before rounding. 3: also in the middle of the shift.
    flags : bool
        Whether flags are computed; without them the output has no field ``flags``.

    Attributes
    ----------
    latency : int
        Cycles from input to output.
    i : stream of unsigned(source.width), in
        Codes of `source`.
    o : stream of struct, out
        ``bits``, a code of `destination`, and ``flags``, five bits in the order of `golden.Flag`.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If `stages` is out of range.
    """

    def __init__(
        self, *, source: FloatFormat, destination: FloatFormat, stages: int | None = None, flags: bool = True
    ) -> None:
        for argument, fmt in (("source", source), ("destination", destination)):
            if not isinstance(fmt, FloatFormat):
                raise TypeError(f"{argument}: got {fmt!r}, must be a golden.FloatFormat")
        self.source, self.destination, self.flags = source, destination, check_flags(flags)
        self.stages = check_stages(stages, 3, 1 if destination.holds(source) else 2)
        self.latency = self.stages
        #: What the generated Verilog says about ports that are no struct.
        self.port_notes = {"i__payload": f"code of {source}"}
        fields = {"bits": destination.width} | ({"flags": flags_layout()} if flags else {})
        super().__init__(
            {
                "i": In(stream.Signature(source.width)),
                "o": Out(stream.Signature(data.StructLayout(fields))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first, second = conversion_shifts(self.source, self.destination)
        m.submodules.first_shift, m.submodules.second_shift = first, second
        m.submodules.round = rounder = ConversionRound(self.source, self.destination, with_flags=self.flags)

        enable = ~self.o.valid | self.o.ready
        m.d.comb += [self.i.ready.eq(enable), first.code.eq(self.i.payload)]
        valid, half_shifted = self.i.valid, first.o
        if self.stages >= 3:
            valid = rank(m, "half_shifted_valid", valid, enable, reset=True)
            half_shifted = rank(m, "half_shifted", half_shifted, enable)
        m.d.comb += second.i.eq(half_shifted)
        shifted = second.o
        if self.stages >= 2:
            valid = rank(m, "shifted_valid", valid, enable, reset=True)
            shifted = rank(m, "shifted", shifted, enable)
        m.d.comb += rounder.i.eq(shifted)
        m.d.comb += self.o.valid.eq(rank(m, "result_valid", valid, enable, reset=True))
        # Every NaN is the same code: where the register powers up with it, its synchronous set and reset make it.
        result = rank(m, "result", rounder.o, enable, init={"bits": self.destination.nan})
        m.d.comb += self.o.payload.bits.eq(result.bits)
        if self.flags:
            m.d.comb += self.o.payload.flags.eq(result.flags)
        return m
