"""A Verilog shell around the design: the same few signals for every unit, and a register that records transfers.

The testbench wakes once a cycle, on the falling edge. It reads the effects of the last rising edge and sets the inputs
for the next one. The input's ``ready`` depends on these inputs, so it is read one cycle later, as ``accepted``.
"""

from __future__ import annotations

from collections.abc import Mapping

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

_AXI_STREAM = """    .aclk(clk), .aresetn(~rst), {payloads},
    .s_axis_tvalid(valid), .s_axis_tready(ready),
    .m_axis_tvalid(answered), .m_axis_tready(take)"""


def _payloads(signals: Mapping[str, int]) -> str:
    """Return the connections of the signals that carry payloads."""
    made, low = [], {"payload": 0, "answer": 0}
    for name, width in signals.items():
        word = "payload" if name.startswith("s_") else "answer"
        made.append(f".{name}({word}[{low[word] + width - 1}:{low[word]}])")
        low[word] += width
    return ", ".join(made)


def shell(unit: str, port: Port) -> str:
    """Return the Verilog of the shell around the module `unit`."""
    chunk = f"  input [{port.chunk_bits - 1}:0] chunk,\n" if port.chunk_bits else ""
    counts = len(COUNTERS) * COUNTER_BITS
    counters = f"  input clear_counts,\n  output [{counts - 1}:0] counts,\n" if port.counters == "ports" else ""
    streams = _AXI_STREAM.format(payloads=_payloads(port.axi_stream)) if port.axi_stream else _STREAM
    connections = streams + (",\n    .chunk(chunk)" if port.chunk_bits else "")
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
