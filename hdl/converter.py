"""The format converter: a pipelined stream unit around the conversion cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.conversion import ConversionRound, conversion_shifts
from hdl.cores.result import flags_layout
from hdl.definitions import Format, Stages, Switch
from hdl.parameters import Parameters, built_from, documented
from hdl.pipeline import rank

__all__ = ["ConverterParameters", "FloatConverter"]

_EXACT, _ROUNDED = 1, 2


@dataclass(frozen=True, kw_only=True)
class ConverterParameters(Parameters):
    """Parameters of `hdl.FloatConverter`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    source: Annotated[FloatFormat, Format("format of the codes that enter")]
    destination: Annotated[FloatFormat, Format("format of the results")]
    stages: Annotated[
        int,
        Stages(
            "register ranks",
            3,
            f"{_EXACT} for an exact conversion, {_ROUNDED} for one that rounds",
            note="1: at the output. 2: also before rounding. 3: also in the middle of the shift.",
        ),
    ] = None  # type: ignore[assignment]  # None only between the call and the check
    flags: Annotated[bool, Switch("exception flags", note="Without them the output has no field ``flags``.")] = True

    @property
    def recommended_stages(self) -> int:
        """The default depth: the fastest."""
        return _EXACT if self.destination.holds(self.source) else _ROUNDED


@documented(ConverterParameters)
class FloatConverter(wiring.Component):
    """Convert a stream of codes from one format to another (NUMERICS section 3).

    One conversion enters and one leaves in every cycle. The result follows its code after `latency` cycles. While a
    result is not accepted, everything waits.

    Attributes
    ----------
    latency : int
        Cycles from input to output.
    i : stream of unsigned(source.width), in
        Codes of `source`.
    o : stream of struct, out
        - ``bits``: code of `destination`
        - ``flags``: five bits in the order of `golden.Flag`; absent in a unit without flags

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If `stages` is out of range.
    """

    @built_from(ConverterParameters)
    def __init__(self, parameters: ConverterParameters) -> None:
        self.latency = self.stages
        #: What the generated Verilog says about ports that are no struct.
        self.port_notes = {"i__payload": f"code of {self.source}"}
        fields = {"bits": self.destination.width} | ({"flags": flags_layout()} if self.flags else {})
        super().__init__(
            {
                "i": In(stream.Signature(self.source.width)),
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
