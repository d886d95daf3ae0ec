"""A Verilog shell around the design: the same few signals for every unit, and a register that records transfers.

The testbench wakes once a cycle, on the falling edge. It reads the effects of the last rising edge and sets the inputs
for the next one. The input's ``ready`` depends on these inputs, so it is read one cycle later, as ``accepted``.
"""

from __future__ import annotations

from amaranth import Shape

from hdl.axi_lite import axi_lite_ports
from sim.counts import COUNTER_BITS, COUNTERS
from sim.port import Port

__all__ = ["TOP", "shell"]

#: Name of the shell's module.
TOP = "testbench"

_STREAM = """    .clk(clk), .rst(rst),
    .i__payload(payload), .i__valid(valid), .i__ready(ready),
    .o__payload(answer), .o__valid(answered), .o__ready(take)"""

_AXI_STREAM = """    .aclk(clk), .aresetn(~rst),
    .s_axis_tdata(payload[31:0]), .s_axis_tuser(payload[47:32]), .s_axis_tlast(payload[48]),
    .s_axis_tvalid(valid), .s_axis_tready(ready),
    .m_axis_tdata(answer[31:0]), .m_axis_tuser(answer[47:32]), .m_axis_tlast(answer[48]),
    .m_axis_tvalid(answered), .m_axis_tready(take)"""


def shell(unit: str, port: Port, *, axi_stream: bool) -> str:
    """Return the Verilog of the shell around the module `unit`."""
    chunk = f"  input [{port.chunk_bits - 1}:0] chunk,\n" if port.chunk_bits else ""
    counts = len(COUNTERS) * COUNTER_BITS
    counters = f"  input clear_counts,\n  output [{counts - 1}:0] counts,\n" if port.counters == "ports" else ""
    connections = (_AXI_STREAM if axi_stream else _STREAM) + (",\n    .chunk(chunk)" if port.chunk_bits else "")
    if port.counters == "ports":
        connections += ",\n    .clear_counts(clear_counts), .counts(counts)"
    if port.counters == "bus":
        bus = {f"s_axil_{name}": member for name, member in axi_lite_ports().items()}
        connections += "".join(f",\n    .{name}({name})" for name in bus)
        for name, member in bus.items():
            counters += f"  {member.flow.name.lower()}put [{Shape.cast(member.shape).width - 1}:0] {name},\n"
    return f"""module {TOP} (
  input clk,
  input rst,
  input [{port.request.width - 1}:0] payload,
  input valid,
  input take,
{chunk}{counters}  output reg accepted,
  output answered,
  output [{port.answer.width - 1}:0] answer
);
  wire ready;
  always @(posedge clk) accepted <= valid & ready;
  {unit} dut (
{connections}
  );
endmodule
"""
