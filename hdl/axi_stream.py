# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The multiply-accumulate unit behind AXI4-Stream names, as FPGA users wire it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from amaranth import ClockDomain, Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from golden.rounding import Rounding
from hdl.axi_lite import CounterRegisters, axi_lite_ports
from hdl.cores.result import flags_layout
from hdl.definitions import Roundings, shown
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error
from hdl.parameters import built_from, documented

__all__ = ["AxiStreamMac"]

#: A level that no unit has: its products are refused as unsupported.
_NO_LEVEL = 3
_MOST_REGISTERS, _MOST_FORMATS = 256, 16
_MAC = MacParameters.definitions()


@dataclass(frozen=True)
class _OneMode(Roundings):
    """One rounding mode that takes no random number."""

    written = ""

    @property
    def allowed(self) -> str:
        return f"one mode of {shown(tuple(mode for mode in Rounding if mode is not Rounding.STOCHASTIC))}"

    def check(self, name: str, value: Any, given: Any) -> tuple[Rounding, ...]:
        modes = super().check(name, value, given)
        if len(modes) > 1 or Rounding.STOCHASTIC in modes:
            raise ValueError(
                f"{name}: got {shown(modes)}, must be one mode that takes no random number: "
                "s_axis_tuser has no field for a mode; mac (hdl.MultiplyAccumulate) has one"
            )
        return modes


@dataclass(frozen=True, kw_only=True)
class AxiStreamParameters(MacParameters):
    """Parameters of `AxiStreamMac`: as `hdl.MultiplyAccumulate`, limited to the fields of ``s_axis_tuser``.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    operands: Annotated[
        Sequence[FloatFormat], replace(_MAC["operands"], meaning=f"operand formats, at most {_MOST_FORMATS}")
    ] = MacParameters.operands
    registers: Annotated[int, replace(_MAC["registers"], most=_MOST_REGISTERS)] = MacParameters.registers
    roundings: Annotated[Sequence[Rounding | str], _OneMode("rounding mode", is_rare=True)] = MacParameters.roundings
    random_bits: Annotated[int, replace(_MAC["random_bits"], meaning="without effect, as no mode takes a number")] = (
        MacParameters.random_bits
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.operands) > _MOST_FORMATS:
            raise ValueError(f"operands: got {len(self.operands)}, must be at most {_MOST_FORMATS} to fit s_axis_tuser")


@documented(AxiStreamParameters)
class AxiStreamMac(wiring.Component):
    """A `MultiplyAccumulate` with AXI4-Stream ports: products on ``s_axis``, results on ``m_axis``.

    Attributes
    ----------
    unit : MultiplyAccumulate
    aclk, aresetn : in
        Clock; synchronous reset, active low.
    s_axis_tdata : struct of 32 bits, in
        - ``a``: bits 15:0
        - ``b``: bits 31:16
    s_axis_tuser : struct of 16 bits, in
        A format or register that the unit lacks gives the error UNSUPPORTED.

        - ``register``: bits 7:0
        - ``format``: bits 11:8
        - ``level``: bits 13:12
        - ``first``: bit 14
    s_axis_tlast : in
        Last product of its reduction.
    m_axis_tdata : unsigned(32), out
        ``result``, zero-extended.
    m_axis_tuser : struct of 16 bits, out
        - ``register``: bits 7:0; of a refused register its low bits, as many as the unit's registers need
        - ``flags``: bits 12:8; 0 in a unit without flags
        - ``error``: bits 14:13
    m_axis_tlast : out
        Always 1: every result is a packet.
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length.
    s_axil_awaddr, ..., s_axil_rready
        Only with ``counters``: an AXI4-Lite bus of 6 address bits that reads and clears them, see
        `hdl.axi_lite.CounterRegisters`.

    Raises
    ------
    TypeError, ValueError
        As `MultiplyAccumulate`; also if `registers` is above 256, there are more than 16 operand formats, or several
        modes in `roundings`, or one that takes random numbers.
    """

    #: Comments in the generated Verilog for ports that are not structs.
    port_notes: ClassVar = {
        "aclk": "clock, rising edge",
        "aresetn": "synchronous reset, active low",
        "s_axis_tlast": "last product of its reduction",
        "m_axis_tdata": "result, zero-extended",
        "m_axis_tlast": "always 1",
        **MultiplyAccumulate.port_notes,
    }

    @built_from(AxiStreamParameters)
    def __init__(self, parameters: AxiStreamParameters) -> None:
        self.unit = MultiplyAccumulate(**parameters.arguments())
        self.latency, self.accumulate_latency = parameters.latency, parameters.accumulate_latency
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                "s_axis_tdata": In(data.StructLayout({"a": 16, "b": 16})),
                "s_axis_tuser": In(
                    data.StructLayout({"register": 8, "format": 4, "level": 2, "first": 1, "unused": 1})
                ),
                "s_axis_tlast": In(1),
                "s_axis_tvalid": In(1),
                "s_axis_tready": Out(1),
                "m_axis_tdata": Out(32),
                "m_axis_tuser": Out(
                    data.StructLayout({"register": 8, "flags": flags_layout(), "error": Error, "unused": 1})
                ),
                "m_axis_tlast": Out(1),
                "m_axis_tvalid": Out(1),
                "m_axis_tready": In(1),
                "chunk": In(self.unit.chunk_bits),
                **({f"s_axil_{name}": port for name, port in axi_lite_ports().items()} if self.unit.counters else {}),
            }
        )
        #: The counters' registers, if the unit has any.
        self.counter_registers = CounterRegisters() if self.unit.counters else None

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.submodules.unit = unit = self.unit
        beat, result = unit.i.payload, unit.o.payload
        # The unit's fields may be narrower: a format or register that it lacks must not wrap around to a valid one.
        is_there = (self.s_axis_tuser.format < len(unit.operands)) & (self.s_axis_tuser.register < unit.registers)
        m.d.comb += [
            sync.clk.eq(self.aclk),
            sync.rst.eq(~self.aresetn),
            unit.chunk.eq(self.chunk),
            beat.a.eq(self.s_axis_tdata.a),
            beat.b.eq(self.s_axis_tdata.b),
            beat.register.eq(self.s_axis_tuser.register),
            beat.format.eq(self.s_axis_tuser.format),
            beat.level.eq(Mux(is_there, self.s_axis_tuser.level, _NO_LEVEL)),
            beat.first.eq(self.s_axis_tuser.first),
            beat.last.eq(self.s_axis_tlast),
            unit.i.valid.eq(self.s_axis_tvalid),
            self.s_axis_tready.eq(unit.i.ready),
            self.m_axis_tdata.eq(result.result),
            self.m_axis_tuser.register.eq(result.register),
            self.m_axis_tuser.error.eq(result.error),
            self.m_axis_tlast.eq(1),
            self.m_axis_tvalid.eq(unit.o.valid),
            unit.o.ready.eq(self.m_axis_tready),
        ]
        if unit.flags:
            m.d.comb += self.m_axis_tuser.flags.eq(result.flags)
        if self.counter_registers:
            m.submodules.counters = bus = self.counter_registers
            m.d.comb += [bus.counts.eq(unit.counts), unit.clear_counts.eq(bus.clear)]
            for name, port in axi_lite_ports().items():
                outside, inside = getattr(self, f"s_axil_{name}"), getattr(bus, name)
                m.d.comb += inside.eq(outside) if port.flow is In else outside.eq(inside)
        return m
