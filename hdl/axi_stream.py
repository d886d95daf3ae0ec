"""The multiply-accumulate unit behind AXI4-Stream names, as FPGA users wire it up."""

from __future__ import annotations

from amaranth import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.multiply_accumulate import MultiplyAccumulate

__all__ = ["AxiStreamMac"]


class AxiStreamMac(wiring.Component):
    """A `MultiplyAccumulate` with AXI4-Stream ports: products on ``s_axis``, results on ``m_axis``.

    Parameters
    ----------
    **parameters
        Those of `MultiplyAccumulate`.

    Attributes
    ----------
    unit : MultiplyAccumulate
    aclk, aresetn : in
        Clock; synchronous reset, active low.
    s_axis_tdata : unsigned(32), in
        ``a`` in bits 15:0, ``b`` in bits 31:16.
    s_axis_tuser : unsigned(16), in
        ``register`` in bits 7:0, ``format`` in bits 11:8, ``level`` in bits 13:12, ``first`` in bit 14.
    s_axis_tlast : in
        ``last``.
    m_axis_tdata : unsigned(32), out
        ``result``, zero-extended.
    m_axis_tuser : unsigned(16), out
        ``register`` in bits 7:0, ``flags`` in bits 12:8 (0 without flags), ``error`` in bits 14:13.
    m_axis_tlast : out
        Always 1: every result is a packet.
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length.

    Raises
    ------
    TypeError, ValueError
        As `MultiplyAccumulate`; also if `registers` is above 256 or there are more than 16 operand formats.
    """

    def __init__(self, **parameters: object) -> None:
        self.unit = MultiplyAccumulate(**parameters)  # type: ignore[arg-type]
        if self.unit.registers > 256:
            raise ValueError(f"registers: got {self.unit.registers}, must be at most 256 to fit s_axis_tuser")
        if len(self.unit.operands) > 16:
            raise ValueError(f"operands: got {len(self.unit.operands)}, must be at most 16 to fit s_axis_tuser")
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                "s_axis_tdata": In(32),
                "s_axis_tuser": In(16),
                "s_axis_tlast": In(1),
                "s_axis_tvalid": In(1),
                "s_axis_tready": Out(1),
                "m_axis_tdata": Out(32),
                "m_axis_tuser": Out(16),
                "m_axis_tlast": Out(1),
                "m_axis_tvalid": Out(1),
                "m_axis_tready": In(1),
                "chunk": In(self.unit.chunk_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.submodules.unit = unit = self.unit
        beat, result = unit.i.payload, unit.o.payload
        m.d.comb += [
            sync.clk.eq(self.aclk),
            sync.rst.eq(~self.aresetn),
            unit.chunk.eq(self.chunk),
            beat.a.eq(self.s_axis_tdata[:16]),
            beat.b.eq(self.s_axis_tdata[16:]),
            beat.register.eq(self.s_axis_tuser[:8]),
            beat.format.eq(self.s_axis_tuser[8:12]),
            beat.level.eq(self.s_axis_tuser[12:14]),
            beat.first.eq(self.s_axis_tuser[14]),
            beat.last.eq(self.s_axis_tlast),
            unit.i.valid.eq(self.s_axis_tvalid),
            self.s_axis_tready.eq(unit.i.ready),
            self.m_axis_tdata.eq(result.result),
            self.m_axis_tuser[:8].eq(result.register),
            self.m_axis_tuser[13:15].eq(result.error),
            self.m_axis_tlast.eq(1),
            self.m_axis_tvalid.eq(unit.o.valid),
            unit.o.ready.eq(self.m_axis_tready),
        ]
        if unit.flags:
            m.d.comb += self.m_axis_tuser[8:13].eq(result.flags)
        return m
